// The chart of the map: the canvas, its tooltip, buttons and legend.

import * as router from "./router.js";
import { announce, count, el, icon, plural } from "./dom.js";
import { addMapControls } from "./mapcontrols.js";
import { colourName, FEW_HUES, MAX_HUES, OTHER_HUE, Painter } from "./painter.js";
import { Projection } from "./projection.js";
import { withEllipsis } from "./titles.js";

const VIEW_DELAY = 400; // milliseconds
const SNIPPET_DELAY = 120; // milliseconds of rest on a point
const TITLE_CHARACTERS = 60; // that the map has of each title
const DATE = /^\d{4}-\d{2}(-\d{2}([T ].*)?)?$/;
const LEVEL_ZOOMS = [1, 2.2, 6]; // from which on the regions of each level are named

/**
 * Draw the response of the API into `stage`; `readSnippet` returns the beginning of a document,
 * `onPick` gets the ids of the documents that the lasso encloses.
 */
export function drawChart(stage, map, { readSnippet, onPick }) {
  let colouring = assignHues(map.labels, map.ids.length);
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
    "Arrow keys move, + and − zoom, 0 shows all, n and p select the next and previous hit, Enter opens it. Drag with Shift to select an area.",
  );
  const painter = new Painter(canvas, projection, colouring.hues);
  const names = regionNames(map.regions ?? []);
  let key = legend(colouring);
  const keyBox = el("div", {}, key.element);
  let hits = [];

  const actions = {
    open: (point) => router.go(router.changed({ open: map.ids[point] })),
    select(point, isAnnounced = false) {
      if (point === painter.selected && point >= 0) return;
      clearTimeout(snippetTimer);
      painter.selected = point;
      painter.requestDraw();
      tip.hidden = point < 0;
      if (point < 0) return;
      const label = map.labels[point];
      const snippet = el("span", { class: "tip-snippet" });
      tip.replaceChildren(
        el("b", {}, titleAt(point)),
        snippet,
        label ? el("small", {}, label) : "",
      );
      moveTip();
      snippetTimer = setTimeout(async () => {
        const text = await readSnippet(map.ids[point]).catch(() => ""); // the title is enough
        if (painter.selected !== point || !text) return;
        snippet.textContent = text;
        moveTip();
      }, SNIPPET_DELAY);
      if (isAnnounced) announce(map.titles[point]);
    },
    moved: () => (painter.requestDraw(), moveTip(), names.place(projection), rememberView()),
    hits: () => hits,
    selected: () => painter.selected,
    isSelecting: () => lassoButton.getAttribute("aria-pressed") === "true",
    drawLasso: (polygon) => ((painter.lasso = polygon), painter.requestDraw()),
    pick(points) {
      if (!points.length && !painter.picked) return;
      painter.picked = points.length ? new Set(points) : null;
      painter.requestDraw();
      lassoButton.setAttribute("aria-pressed", "false");
      onPick(points.map((point) => map.ids[point]));
    },
  };
  const titleAt = (point) => withEllipsis(map.titles[point], TITLE_CHARACTERS) || map.ids[point];
  let snippetTimer;
  function moveTip() {
    if (painter.selected < 0) return;
    const { x, y } = projection.toScreen(painter.selected);
    const width = Math.min(320, projection.width - 16);
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
  const lassoButton = tool("Select an area: draw around it", "lasso", () =>
    lassoButton.setAttribute("aria-pressed", String(!actions.isSelecting())),
  );
  lassoButton.setAttribute("aria-pressed", "false");
  const tools = el(
    "div",
    { class: "map-tools" },
    tool("Zoom in", "plus", () => projection.zoomAt(1.6)),
    tool("Zoom out", "minus", () => projection.zoomAt(1 / 1.6)),
    tool("Show all", "fit", () => projection.fit()),
    lassoButton,
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
    /** Colour the points by the values of a field (null: by their labels), with more colours on demand. */
    colourBy(values, hasMore) {
      colouring = assignHues(values ?? map.labels, map.ids.length, hasMore ? MAX_HUES : FEW_HUES);
      const { hues, isScale } = colouring;
      Object.assign(painter, { hues, isScale, onlyHue: null });
      key = legend(colouring);
      keyBox.replaceChildren(key.element);
      painter.requestDraw();
    },
    has: (id) => pointOf.has(id),
    titleOf: (id) => titleAt(pointOf.get(id)),
    clearPick: () => actions.pick([]),
    /** Add documents as [id, title, [x, y]], in the colour of those without a value. */
    place(added) {
      for (const [id, title] of added) {
        pointOf.set(id, map.ids.length);
        map.ids.push(id);
        map.titles.push(title);
        map.labels.push(null);
      }
      projection.add(added.map(([, , [x]]) => x), added.map(([, , [, y]]) => y));
      painter.hues = colouring.hues = Uint8Array.from([...colouring.hues, ...added.map(() => OTHER_HUE)]);
    },
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
      const row = colouring.named.find(({ name }) => name === label);
      painter.onlyHue = row ? row.hue : null;
      key.select(label);
      painter.requestDraw();
    },
    leave() {
      clearTimeout(viewTimer);
      clearTimeout(snippetTimer);
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
    const taken = [{ left: projection.width - 64, right: projection.width, top: 0, bottom: 185 }]; // the buttons
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

/**
 * Assign a hue to each of the most frequent values, or to ranges of numbers or dates, and another one to all
 * others; `points` may be more than the values.
 */
function assignHues(values, points, limit = FEW_HUES) {
  const known = values.filter((value) => value !== null);
  const counts = new Map();
  for (const value of known) counts.set(value, (counts.get(value) ?? 0) + 1);
  const hues = new Uint8Array(points).fill(counts.size ? OTHER_HUE : 0);
  if (counts.size > FEW_HUES) {
    if (known.every((value) => typeof value === "number")) return assignSteps(values, hues, Number, String);
    if (known.every((value) => DATE.test(value) && Date.parse(value)))
      return assignSteps(values, hues, Date.parse, (time) => new Date(time).toISOString().slice(0, 10));
  }
  const frequent = [...counts].sort(([, a], [, b]) => b - a).slice(0, limit);
  const hueOf = new Map(frequent.map(([value], hue) => [value, hue]));
  values.forEach((value, point) => hueOf.has(value) && (hues[point] = hueOf.get(value)));
  const named = frequent.map(([name, documents], hue) => ({ name: String(name), documents, hue }));
  const others = known.length - named.reduce((sum, { documents }) => sum + documents, 0);
  return { hues, named, others, isScale: false, distinct: counts.size };
}

/** Divide numbers, or what `parse` makes of the values, into ranges with about the same number of documents. */
function assignSteps(values, hues, parse, format) {
  const numbers = values.map((value) => (value === null ? NaN : parse(value)));
  const sorted = Float64Array.from(numbers.filter((number) => !Number.isNaN(number))).sort();
  const bounds = [...Array(FEW_HUES - 1).keys()].map(
    (step) => sorted[Math.floor(((step + 1) * sorted.length) / FEW_HUES)],
  );
  const stepOf = (number) => bounds.filter((bound) => number >= bound).length;
  numbers.forEach((number, point) => Number.isNaN(number) || (hues[point] = stepOf(number)));
  const named = [...Array(FEW_HUES).keys()].flatMap((hue) => {
    const inside = sorted.filter((number) => stepOf(number) === hue);
    const ends = [...new Set([inside[0], inside.at(-1)])].map(format);
    return inside.length ? [{ name: ends.join(" – "), documents: inside.length, hue }] : [];
  });
  return { hues, named, others: 0, isScale: true, distinct: 0 };
}

/** The legend; selecting a label fades the others. */
function legend({ named, others, isScale, distinct }) {
  const hint = el("p", { class: "faint" }, "Search to highlight the hits, or drag with Shift to select an area.");
  if (!named.length) return { element: hint, select: () => {} };
  const parts = (name, documents, hue) => {
    const swatch = el("span", { class: "swatch", aria: { hidden: "true" } });
    swatch.style.background = `var(${colourName(hue, isScale)})`;
    return [swatch, el("span", {}, name), el("small", {}, count(documents))];
  };
  const buttons = named.map(({ name, documents, hue }) => {
    const choose = () =>
      router.go(router.changed({ label: router.read().params.get("label") === name ? null : name }), {
        replace: true,
      });
    const data = { name, ...(isScale && { scale: "" }) };
    return el(
      "button",
      { type: "button", class: "legend-row", data, on: { click: choose } },
      parts(name, documents, hue),
    );
  });
  const hasMore = Boolean(router.read().params.get("colours"));
  const more = () => router.go(router.changed({ colours: hasMore ? null : "more" }), { replace: true });
  const canChange = !isScale && distinct > FEW_HUES;
  return {
    element: el(
      "div",
      {},
      el(
        "ul",
        { class: "legend" },
        buttons.map((button) => el("li", {}, button)),
        others > 0 && el("li", { class: "legend-row rest" }, parts("all others", others, OTHER_HUE)),
      ),
      canChange &&
        el("button", { type: "button", class: "link", on: { click: more } }, hasMore ? "Fewer colours" : "More colours"),
      hint,
    ),
    select: (label) =>
      buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.name === label))),
  };
}
