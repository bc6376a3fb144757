// The chart of the map: the canvas, its tooltip, buttons and legend.

import * as router from "./router.js";
import { announce, count, el, icon, plural } from "./dom.js";
import { addMapControls } from "./mapcontrols.js";
import { MAX_HUES, Painter } from "./painter.js";
import { Projection } from "./projection.js";
import { withEllipsis } from "./titles.js";

/** Draw the response of the API into `stage`. */
export function drawChart(stage, map) {
  const { hues, named } = assignHues(map.labels);
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
  const key = legend(named, hues);
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
    moved: () => (painter.requestDraw(), moveTip()),
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
  stage.replaceChildren(canvas, tip, tools, note, help);
  const observer = new ResizeObserver(() => (painter.resize(), moveTip()));
  observer.observe(canvas);
  const repaint = () => painter.resetColours();
  window.addEventListener("themechange", repaint);
  canvas.painter = painter; // for tests

  return {
    legend: key.element,
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
      observer.disconnect();
      removeControls();
      window.removeEventListener("themechange", repaint);
    },
  };
}

/** Assign a hue to each of the most frequent labels, and another one to all others. */
function assignHues(labels) {
  const counts = new Map();
  for (const label of labels) if (label !== null) counts.set(label, (counts.get(label) ?? 0) + 1);
  const frequent = [...counts].sort(([, a], [, b]) => b - a).slice(0, MAX_HUES);
  const named = frequent.map(([name, documents], hue) => ({ name, documents, hue }));
  const hueOf = new Map(named.map(({ name, hue }) => [name, hue]));
  return {
    named,
    hues: Uint8Array.from(labels, (label) => hueOf.get(label) ?? (named.length ? MAX_HUES : 0)),
  };
}

/** The legend; selecting a label fades the others. */
function legend(named, hues) {
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
      { type: "button", class: "legend-row", data: { hue: String(hue + 1), name }, on: { click: choose } },
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
      el("h2", {}, "Labels"),
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
