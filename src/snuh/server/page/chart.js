// The chart of the map: the canvas, its tooltip, buttons and legend.

import * as router from "./router.js";
import { announce, count, el, icon, plural } from "./dom.js";
import { addMapControls } from "./mapcontrols.js";
import { MAX_HUES, Painter } from "./painter.js";
import { Projection } from "./projection.js";
import { withEllipsis } from "./titles.js";

const VIEW_DELAY = 400; // milliseconds
const LEVEL_ZOOMS = [1, 2.2, 6]; // from which on the regions of each level are named

/** Draw the response of the API into `stage`. */
export function drawChart(stage, map) {
  let { hues, named, isScale } = assignHues(map.labels);
  const projection = new Projection(map.x, map.y);
  const pointOf = new Map(map.ids.map((id, point) => [id, point]));
  const canvas = el("canvas", {
    tabindex: "0",
    role: "application",
    aria: { label: `Map of ${plural(map.ids.length, "document")}`, describedby: "map-help" },
  });
  const tip = el("div", { class: "tip", hidden: true });
  const help = el(
    "p",
    { class: "map-help", id: "map-help" },
    "Arrow keys move, + and − zoom, 0 shows all, n and p select the next and previous hit, Enter opens it.",
  );
  const painter = new Painter(canvas, projection, hues);
  const names = regionNames(map.regions ?? []);
  let key = legend(named, hues, isScale);
  const keyBox = el("div", {}, key.element);
  let hits = [];

  const actions = {
    open: (point) => router.go(router.changed({ open: map.ids[point] })),
    select(point, isAnnounced = false) {
      painter.selected = point;
      painter.requestDraw();
      tip.hidden = point < 0;
      if (point < 0) return;
      const label = map.labels[point];
      tip.replaceChildren(
        el("b", {}, withEllipsis(map.titles[point]) || map.ids[point]),
        label ? el("span", {}, label) : "",
      );
      moveTip();
      if (isAnnounced) announce(map.titles[point]);
    },
    moved: () => (painter.requestDraw(), moveTip(), names.place(projection), rememberView()),
    hits: () => hits,
    selected: () => painter.selected,
  };
  function moveTip() {
    if (painter.selected < 0) return;
    const { x, y } = projection.toScreen(painter.selected);
    const width = Math.min(280, projection.width - 16);
    tip.style.inlineSize = "max-content";
    tip.style.maxInlineSize = `${width}px`;
    const left = Math.max(8, Math.min(projection.width - tip.offsetWidth - 8, x - tip.offsetWidth / 2));
    const isAbove = y - tip.offsetHeight - 14 > 0;
    tip.style.transform = `translate(${left}px, ${isAbove ? y - tip.offsetHeight - 14 : y + 14}px)`;
  }
  let viewTimer;
  /** Keep position and zoom in the URL, once they have settled. */
  function rememberView() {
    clearTimeout(viewTimer);
    viewTimer = setTimeout(() => {
      const { centre, zoom } = projection;
      const at = zoom > 1 ? [centre.x, centre.y, zoom].map((value) => value.toFixed(3)).join(",") : null;
      router.go(router.changed({ at }), { replace: true });
    }, VIEW_DELAY);
  }
  const removeControls = addMapControls(canvas, projection, actions);
  const tool = (name, iconName, action) =>
    el(
      "button",
      {
        type: "button",
        class: "quiet",
        aria: { label: name },
        title: name,
        on: { click: () => (action(), actions.moved()) },
      },
      icon(iconName),
    );
  const tools = el(
    "div",
    { class: "map-tools" },
    tool("Zoom in", "plus", () => projection.zoomAt(1.6)),
    tool("Zoom out", "minus", () => projection.zoomAt(1 / 1.6)),
    tool("Show all", "fit", () => projection.fit()),
  );
  const shown =
    map.ids.length < map.documents
      ? `${count(map.ids.length)} of ${count(map.documents)} documents`
      : plural(map.ids.length, "document");
  const note = el("p", { class: "map-note" }, shown, !map.current && " · the collection has changed since");
  stage.replaceChildren(canvas, names.element, tip, tools, note, help);
  const [x, y, zoom] = (router.read().params.get("at") ?? "").split(",").map(Number);
  if (zoom > 1 && Number.isFinite(x) && Number.isFinite(y)) projection.goTo(x, y, zoom);
  const observer = new ResizeObserver(() => (painter.resize(), moveTip(), names.place(projection)));
  observer.observe(canvas);
  const repaint = () => painter.resetColours();
  window.addEventListener("themechange", repaint);
  canvas.painter = painter; // for tests

  return {
    legend: keyBox,
    points: map.ids.length,
    /** Colour the points by the values of a field; null: by their labels. */
    colourBy(values) {
      ({ hues, named, isScale } = assignHues(values ?? map.labels));
      Object.assign(painter, { hues, isScale, onlyHue: null });
      key = legend(named, hues, isScale);
      keyBox.replaceChildren(key.element);
      painter.requestDraw();
    },
    has: (id) => pointOf.has(id),
    select: (id) => actions.select(pointOf.get(id) ?? -1),
    highlight(ids) {
      hits = ids.map((id) => pointOf.get(id)).filter((point) => point !== undefined);
      painter.highlighted = new Set(hits);
      canvas.dataset.highlighted = String(hits.length);
      painter.requestDraw();
    },
    goTo(id) {
      if (!pointOf.has(id)) note.textContent = `The document is not on the map: it shows ${shown}`;
      if (!pointOf.has(id) || map.ids[painter.selected] === id) return;
      projection.show(pointOf.get(id));
      actions.select(pointOf.get(id));
      actions.moved();
    },
    selectLabel(label) {
      const row = named.find(({ name }) => name === label);
      painter.onlyHue = row ? row.hue : null;
      key.select(label);
      painter.requestDraw();
    },
    leave() {
      clearTimeout(viewTimer);
      observer.disconnect();
      removeControls();
      window.removeEventListener("themechange", repaint);
    },
  };
}

/** Names of regions above the points: larger regions first, without overlaps, smaller ones with more zoom. */
function regionNames(regions) {
  const element = el("div", { class: "regions", aria: { hidden: "true" } });
  const rows = regions.map((region) => {
    const name = el("span", { class: "region" }, region.words.join(" · "));
    return { region, name, width: 0 };
  });
  element.append(...rows.map(({ name }) => name));
  const finest = Math.max(...regions.map(({ level }) => level));
  function place(projection) {
    const level = Math.min(finest, LEVEL_ZOOMS.findLastIndex((zoom) => projection.zoom >= zoom));
    const taken = [{ left: projection.width - 64, right: projection.width, top: 0, bottom: 140 }]; // the buttons
    for (const row of [...rows].sort((a, b) => b.region.documents - a.region.documents)) {
      const { x, y } = projection.screenOf(row.region.x, row.region.y);
      row.width ||= row.name.offsetWidth;
      const box = { left: x - row.width / 2 - 6, right: x + row.width / 2 + 6, top: y - 14, bottom: y + 14 };
      const isInside =
        box.left > 0 && box.right < projection.width && box.top > 0 && box.bottom < projection.height;
      const isFree = taken.every(
        (other) =>
          box.right < other.left || box.left > other.right || box.bottom < other.top || box.top > other.bottom,
      );
      const isShown = row.region.level === level && isInside && isFree;
      row.name.classList.toggle("shown", isShown);
      if (!isShown) continue;
      taken.push(box);
      row.name.style.transform = `translate(${x - row.width / 2}px, ${y - 12}px)`;
    }
  }
  return { element, place };
}

/** Assign a hue to each of the most frequent values, or to ranges of numbers, and another one to all others. */
function assignHues(values) {
  const known = values.filter((value) => value !== null);
  const counts = new Map();
  for (const value of known) counts.set(value, (counts.get(value) ?? 0) + 1);
  if (counts.size > MAX_HUES && known.every((value) => typeof value === "number")) return assignSteps(values, known);
  const frequent = [...counts].sort(([, a], [, b]) => b - a).slice(0, MAX_HUES);
  const named = frequent.map(([name, documents], hue) => ({ name: String(name), documents, hue }));
  const hueOf = new Map(frequent.map(([value], hue) => [value, hue]));
  const other = named.length ? MAX_HUES : 0;
  return { named, isScale: false, hues: Uint8Array.from(values, (value) => hueOf.get(value) ?? other) };
}

/** Divide numbers into ranges with about the same number of documents each. */
function assignSteps(values, known) {
  const sorted = Float64Array.from(known).sort();
  const bounds = [...Array(MAX_HUES - 1).keys()].map(
    (step) => sorted[Math.floor(((step + 1) * sorted.length) / MAX_HUES)],
  );
  const stepOf = (value) => bounds.filter((bound) => value >= bound).length;
  const hues = Uint8Array.from(values, (value) => (value === null ? MAX_HUES : stepOf(value)));
  const named = [...Array(MAX_HUES).keys()].map((hue) => {
    const inside = sorted.filter((value) => stepOf(value) === hue);
    const [first, last] = [inside[0], inside.at(-1)];
    return { name: first === last ? `${first}` : `${first} – ${last}`, documents: inside.length, hue };
  });
  return { named: named.filter(({ documents }) => documents), isScale: true, hues };
}

/** The legend; selecting a label fades the others. */
function legend(named, hues, isScale) {
  const hint = el("p", { class: "faint" }, "Search to highlight the hits.");
  if (!named.length) return { element: hint, select: () => {} };
  const buttons = named.map(({ name, documents, hue }) => {
    const choose = () =>
      router.go(router.changed({ label: router.read().params.get("label") === name ? null : name }), {
        replace: true,
      });
    const parts = [
      el("span", { class: "swatch", aria: { hidden: "true" } }),
      el("span", {}, name),
      el("small", {}, count(documents)),
    ];
    return el(
      "button",
      { type: "button", class: "legend-row", data: { [isScale ? "scale" : "hue"]: String(hue + 1), name }, on: { click: choose } },
      parts,
    );
  });
  const others = hues.reduce((sum, hue) => sum + (hue === MAX_HUES ? 1 : 0), 0);
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
      el(
        "ul",
        { class: "legend" },
        buttons.map((button) => el("li", {}, button)),
        rest,
      ),
      hint,
    ),
    select: (label) =>
      buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.name === label))),
  };
}
