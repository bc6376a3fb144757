// Helpers to create elements. Text from documents only ever becomes a text node.

/** Create an element with attributes (`on`: listeners; `data`, `aria`: prefixed attributes) and children. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on")
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "aria")
      for (const [key, text] of Object.entries(value)) element.setAttribute(`aria-${key}`, text);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

const ICON_PATHS = {
  search: "M10.5 4a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Zm5 11.5L20 20",
  close: "M6 6l12 12M18 6L6 18",
  filter: "M4 7h16M7 12h10M10 17h4",
  sun: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8ZM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z",
  auto: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18ZM12 3v18M12 8l5-2M12 12.5l7.5-3M12 17l7-3",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  lasso: "M7 15.5C4 14 3 12 3 10c0-4 4-6 9-6s9 2 9 6-4 6-9 6c-1.5 0-3-.2-4.2-.6M7 15.5a1.8 1.8 0 1 1-1 3.3M7.5 19c0 1.5-.5 2.500-2 3",
  out: "M7 17L17 7M9 7h8v8",
};

/** Create a line icon, hidden from screen readers. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" })) {
    svg.setAttribute(key, value);
  }
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICON_PATHS[name]);
  svg.append(path);
  return svg;
}

/** A bar filled to a fraction from 0 to 1; hidden from screen readers, so the value must also be text. */
export function bar(fraction, kind = "") {
  const fill = el("span", { class: "bar-fill" });
  fill.style.inlineSize = `${Math.max(0, Math.min(1, fraction)) * 100}%`;
  return el("span", { class: `bar ${kind}`.trim(), aria: { hidden: "true" } }, fill);
}

/** Announce a text to screen readers, even if it is the same as before. */
export function announce(text) {
  const announcer = document.getElementById("announcer");
  announcer.textContent = announcer.textContent === text ? `${text}\u00a0` : text;
}

export const count = (number) => Number(number).toLocaleString("en");
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
export const percent = (fraction) => `${(fraction * 100).toFixed(fraction > 0 && fraction < 0.1 ? 1 : 0)}%`;

export function bytes(number) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let power = 0;
  while (number >= 1000 && power < units.length - 1) {
    number /= 1000;
    power += 1;
  }
  return `${power && number < 100 ? number.toFixed(1) : Math.round(number)} ${units[power]}`;
}
