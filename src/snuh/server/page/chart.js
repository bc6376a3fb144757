// The chart of the map: the canvas, what is pointed at, the buttons, and what the colours stand for.

import * as address from "./address.js";
import { count, el, icon, plural, say } from "./dom.js";
import { steer } from "./mapkeys.js";
import { MOST_HUES, Painter } from "./painter.js";
import { Plane } from "./plane.js";
import { cut } from "./titles.js";

/** The canvas with its controls. */
export function drawChart(stage, told) {
  const { hues, named } = colours(told.labels);
  const plane = new Plane(told.x, told.y);
  const numbers = new Map(told.ids.map((id, number) => [id, number]));
  const canvas = el("canvas", {
    tabindex: "0",
    role: "application",
    aria: { label: `Map of ${plural(told.ids.length, "document")}`, describedby: "map-help" },
  });
  const tip = el("div", { class: "tip", hidden: true });
  const help = el(
    "p",
    { class: "map-help", id: "map-help" },
    "Arrows move, + and − zoom, 0 shows all, n and p go through the hits, Enter opens.",
  );
  const painter = new Painter(canvas, plane, hues);
  const key = legend(named, hues);
  let hits = [];

  const act = {
    open: (point) => address.go(address.changed({ open: told.ids[point] })),
    choose(point, speak = false) {
      painter.chosen = point;
      painter.ask();
      tip.hidden = point < 0;
      if (point < 0) return;
      const label = told.labels[point];
      tip.replaceChildren(
        el("b", {}, cut(told.titles[point]) || told.ids[point]),
        label ? el("span", {}, label) : "",
      );
      place();
      if (speak) say(told.titles[point]);
    },
    moved: () => (painter.ask(), place()),
    hits: () => hits,
    chosen: () => painter.chosen,
  };
  function place() {
    if (painter.chosen < 0) return;
    const { x, y } = plane.toScreen(painter.chosen);
    const width = Math.min(280, plane.width - 16);
    tip.style.inlineSize = "max-content";
    tip.style.maxInlineSize = `${width}px`;
    const left = Math.max(8, Math.min(plane.width - tip.offsetWidth - 8, x - tip.offsetWidth / 2));
    const isAbove = y - tip.offsetHeight - 14 > 0;
    tip.style.transform = `translate(${left}px, ${isAbove ? y - tip.offsetHeight - 14 : y + 14}px)`;
  }
  const stopSteering = steer(canvas, plane, act);
  const tool = (name, drawing, work) =>
    el(
      "button",
      {
        type: "button",
        class: "quiet",
        aria: { label: name },
        title: name,
        on: { click: () => (work(), act.moved()) },
      },
      icon(drawing),
    );
  const tools = el(
    "div",
    { class: "map-tools" },
    tool("Zoom in", "plus", () => plane.zoomAt(1.6)),
    tool("Zoom out", "minus", () => plane.zoomAt(1 / 1.6)),
    tool("Show all", "fit", () => plane.fit()),
  );
  const shown =
    told.ids.length < told.documents
      ? `${count(told.ids.length)} of ${count(told.documents)} documents`
      : plural(told.ids.length, "document");
  const note = el("p", { class: "map-note" }, shown, !told.current && " · older than the collection");
  stage.replaceChildren(canvas, tip, tools, note, help);
  const watcher = new ResizeObserver(() => (painter.resize(), place()));
  watcher.observe(canvas);
  const repaint = () => painter.forget();
  window.addEventListener("themechange", repaint);
  canvas.painter = painter; // for whoever measures how smooth it is

  return {
    legend: key.element,
    has: (id) => numbers.has(id),
    point: (id) => act.choose(numbers.get(id) ?? -1),
    light(ids) {
      hits = ids.map((id) => numbers.get(id)).filter((point) => point !== undefined);
      painter.lit = new Set(hits);
      canvas.dataset.lit = String(hits.length);
      painter.ask();
    },
    goTo(id) {
      if (!numbers.has(id)) note.textContent = `The document is not on the map: it shows ${shown}`;
      if (!numbers.has(id) || told.ids[painter.chosen] === id) return;
      plane.show(numbers.get(id));
      act.choose(numbers.get(id));
      act.moved();
    },
    only(label) {
      const row = named.find(({ name }) => name === label);
      painter.only = row ? row.hue : null;
      key.press(label);
      painter.ask();
    },
    leave() {
      watcher.disconnect();
      stopSteering();
      window.removeEventListener("themechange", repaint);
    },
  };
}

/** A hue for each of the most frequent labels, and one for all others. */
function colours(labels) {
  const counts = new Map();
  for (const label of labels) if (label !== null) counts.set(label, (counts.get(label) ?? 0) + 1);
  const frequent = [...counts].sort(([, a], [, b]) => b - a).slice(0, MOST_HUES);
  const named = frequent.map(([name, documents], hue) => ({ name, documents, hue }));
  const hueOf = new Map(named.map(({ name, hue }) => [name, hue]));
  return {
    named,
    hues: Uint8Array.from(labels, (label) => hueOf.get(label) ?? (named.length ? MOST_HUES : 0)),
  };
}

/** What the colours stand for; a label that is pressed stands out. */
function legend(named, hues) {
  const hint = el("p", { class: "faint" }, "Search, and what is found lights up.");
  if (!named.length) return { element: hint, press: () => {} };
  const buttons = named.map(({ name, documents, hue }) => {
    const choose = () =>
      address.go(address.changed({ label: address.read().ask.get("label") === name ? null : name }), {
        replace: true,
      });
    const parts = [
      el("span", { class: "swatch", aria: { hidden: "true" } }),
      el("span", {}, name),
      el("small", {}, count(documents)),
    ];
    return el(
      "button",
      { type: "button", class: "legend-row", data: { hue: String(hue + 1), name }, on: { click: choose } },
      parts,
    );
  });
  const others = hues.reduce((sum, hue) => sum + (hue === MOST_HUES ? 1 : 0), 0);
  const rest =
    others > 0 &&
    el(
      "li",
      { class: "legend-row rest" },
      el("span", { class: "swatch", aria: { hidden: "true" } }),
      el("span", {}, "all others"),
      el("small", {}, count(others)),
    );
  return {
    element: el(
      "div",
      {},
      el("h2", {}, "Labels"),
      el(
        "ul",
        { class: "legend" },
        buttons.map((one) => el("li", {}, one)),
        rest,
      ),
      hint,
    ),
    press: (label) =>
      buttons.forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.name === label))),
  };
}
