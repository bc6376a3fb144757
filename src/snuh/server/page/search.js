// The search view: type and see hits.

import * as address from "./address.js";
import * as api from "./api.js";
import { count, el, icon, plural, say } from "./dom.js";
import { clearAll, filterCount, filterPanel } from "./filters.js";
import { Finder, MOST, STEP, askOf } from "./finding.js";
import { hitList } from "./hits.js";
import { button, notice, refusal } from "./notices.js";
import { searchBox } from "./searchbox.js";
import { hasFilters, whereOf } from "./where.js";

const ORDERS = [
  ["", "by bits"],
  ["asymmetric", "by weighted bits"],
  ["cosine", "by words"],
];
const SUGGESTED = 6; // searches to try
const SLOW = 250; // milliseconds before the page says that it is waiting

export function mount(root, collection) {
  const box = searchBox(collection.name, { onEnter: () => (finder.stop(), update(address.read())) });
  const filters = filterPanel(collection.name);
  const summary = el("p", { class: "summary" });
  const list = el("div", { class: "found" });
  const toggle = el("button", {
    type: "button",
    class: "filter-toggle",
    aria: { expanded: "false", controls: "filters" },
    on: { click: fold },
  });
  const order = el(
    "select",
    {
      id: "order",
      aria: { label: "Order" }, // a phone has no room for the other label
      on: { change: () => address.go(address.changed({ order: order.value, open: null })) },
    },
    ORDERS.map(([value, name]) => el("option", { value }, name)),
  );
  const tools = el("div", { class: "results-tools" }, el("label", { for: "order" }, "Order"), order, toggle);
  const results = el(
    "section",
    { class: "results", aria: { label: "Hits" } },
    el("div", { class: "results-head" }, summary, tools),
    list,
  );
  root.append(
    el("h1", { class: "hidden" }, `Search ${collection.name}`),
    box.element,
    el("div", { class: "search-body" }, filters.element, results),
  );
  let slow;

  const finder = new Finder(collection.name, {
    onStart() {
      results.setAttribute("aria-busy", "true");
      clearTimeout(slow);
      slow = setTimeout(() => list.querySelector(".hits") || list.replaceChildren(skeleton()), SLOW);
    },
    onFound(found, body) {
      settle();
      if (found.hits.length) show(found, body);
      else showNone();
    },
    onRefused(error) {
      settle();
      summary.textContent = "";
      if (error.kind === "filter") showFilter(error);
      else if (error.kind === "unknown-words") showUnknown();
      else list.replaceChildren(refusal(error, () => update(address.read())));
    },
  });

  function settle() {
    clearTimeout(slow);
    results.removeAttribute("aria-busy");
  }
  function show(found, body) {
    const words = `${plural(found.hits.length, "nearest document")} of ${count(collection.documents)}`;
    summary.textContent = words;
    say(words);
    const kept = document.activeElement?.dataset?.item;
    list.replaceChildren(hitList(found));
    if (kept) list.querySelector(`[data-item="${CSS.escape(kept)}"]`)?.focus();
    const isMore = found.hits.length === body.k && body.k < MOST;
    if (isMore) list.append(button("Show more", more, "more"));
  }
  function more() {
    const last = [...list.querySelectorAll("[data-item]")].at(-1);
    last?.focus({ preventScroll: true });
    address.go(address.changed({ k: String(Math.min(MOST, hitsAsked() + STEP)) }), { replace: true });
  }
  function showNone() {
    summary.textContent = "";
    const isFiltered = hasFilters(address.read().ask);
    say("No hits");
    list.replaceChildren(
      isFiltered
        ? notice("No document passes these filters", "The filters leave nothing to search in.", {
            actions: [button("Clear all filters", clearAll)],
          })
        : notice("No hits", "This collection has no document to find. Add some with snuh add."),
    );
  }
  function showFilter(error) {
    const place = (error.position ?? 0) - whereOf(address.read().ask).before;
    list.replaceChildren(filters.refuse(error, place, unfold));
    say(`The filter cannot be read. ${error.message}`);
  }
  function showUnknown() {
    say("None of these words is known");
    list.replaceChildren(
      notice(
        "None of these words is known",
        [
          "The model has never seen any of these words, so it cannot tell what they are about.",
          "Try other words, or a whole sentence. Words it knows:",
        ],
        { kind: "unknown" },
      ),
    );
    suggest(list.firstElementChild);
  }
  function showStart() {
    summary.textContent = "";
    const start = notice(
      "What are you looking for?",
      [
        `${plural(collection.documents, "document")}, each with a code of ${collection.bits} bits. Type a few words or paste a whole text: the documents whose codes differ in the fewest bits come first.`,
      ],
      { kind: "start" },
    );
    list.replaceChildren(start);
    suggest(start);
  }
  async function suggest(place) {
    try {
      const { meanings } = await api.once(collection.name, "bits", api.bits);
      place.append(
        el("ul", { class: "suggestions", aria: { label: "Searches to try" } }, suggestions(meanings)),
      );
    } catch {
      // suggestions are a courtesy: without them the page works as well
    }
  }
  function fold() {
    const isOpen = filters.element.classList.toggle("unfolded");
    toggle.setAttribute("aria-expanded", String(isOpen));
  }
  function unfold() {
    filters.element.classList.add("unfolded");
    toggle.setAttribute("aria-expanded", "true");
  }
  function update({ ask }) {
    box.update(ask);
    filters.update(ask);
    order.value = ask.get("order") ?? "";
    const number = filterCount(ask);
    toggle.replaceChildren(icon("filter"), number ? `Filters (${number})` : "Filters");
    const body = askOf(ask);
    if (!body) {
      settle();
      finder.stop();
      if (!list.querySelector(".start")) showStart();
      return;
    }
    finder.find({ ...body, k: hitsAsked(), explain: true });
  }
  if (!matchMedia("(pointer: coarse)").matches) box.field.focus({ preventScroll: true });
  return { update, leave: () => (clearTimeout(slow), finder.stop()) };
}

const hitsAsked = () => Math.max(1, Math.min(MOST, Math.floor(Number(address.read().ask.get("k"))) || STEP));

/** Words that the model knows, each from a theme of its own. */
function suggestions(meanings) {
  const seen = new Set();
  const themes = [];
  for (const theme of meanings.flatMap(({ on, off }) => [on[0] ?? [], off[0] ?? []])) {
    if (!theme.length || theme.some((word) => seen.has(word))) continue;
    for (const word of theme) seen.add(word);
    themes.push(theme.slice(0, 3).join(" "));
  }
  return themes
    .slice(0, SUGGESTED)
    .map((words) =>
      el("li", {}, el("a", { class: "chip", href: address.changed({ q: words, like: null }) }, words)),
    );
}

function skeleton() {
  const row = () =>
    el(
      "li",
      { class: "ghost" },
      el("div", { class: "distance" }),
      el("div", { class: "hit-body" }, el("div"), el("div"), el("div")),
    );
  return el(
    "div",
    {},
    el("p", { class: "hidden" }, "Searching …"),
    el("ol", { class: "ghosts", aria: { hidden: "true" } }, row(), row(), row(), row()),
  );
}
