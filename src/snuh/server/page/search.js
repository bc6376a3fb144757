// The search view: hits appear while the user types.

import * as api from "./api.js";
import * as router from "./router.js";
import { announce, count, el, icon, plural } from "./dom.js";
import { filterExpression, hasFilters } from "./filterexpression.js";
import { clearAll, filterCount, filterPanel } from "./filters.js";
import { highlightLegend, hitList } from "./hits.js";
import { button, errorNotice, notice, toSentence } from "./notices.js";
import { searchBox } from "./searchbox.js";
import { MAX_HITS, PAGE_SIZE, searchBody, Searcher } from "./searcher.js";

// How to search: for a text, or for documents similar to one.
const TEXT_ORDERS = [
  ["", "words and codes"],
  ["words", "words only"],
  ["codes", "codes only"],
  ["asymmetric", "codes, weighted"],
  ["cosine", "codes, then words"],
];
const SIMILAR_ORDERS = [
  ["", "codes"],
  ["asymmetric", "codes, weighted"],
  ["cosine", "codes, then words"],
];
const SHOWN_CHARACTERS = 300; // of the text of a hit
const SKELETON_DELAY = 250; // milliseconds before a placeholder is shown

export function mount(root, collection) {
  const box = searchBox(collection.name, { onEnter: () => (searcher.stop(), update(router.read())) });
  const filters = filterPanel(collection.name);
  const summary = el("p", { class: "summary" });
  const list = el("div", { class: "result-list" });
  const toggle = el("button", {
    type: "button",
    class: "filter-toggle",
    aria: { expanded: "false", controls: "filters" },
    on: { click: toggleFilters },
  });
  const order = el(
    "select",
    {
      id: "order",
      aria: { label: "Search by" }, // the visible label is hidden on phones
      on: { change: () => router.go(router.changed({ order: order.value, open: null })) },
    },
  );
  const tools = el("div", { class: "results-tools" }, el("label", { for: "order" }, "Search by"), order, toggle);
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
  let skeletonTimer;
  let counting = new AbortController(); // of the documents that match the filters

  const searcher = new Searcher(collection.name, {
    onStart() {
      counting.abort();
      results.setAttribute("aria-busy", "true");
      clearTimeout(skeletonTimer);
      skeletonTimer = setTimeout(() => {
        if (!list.querySelector(".hits")) list.replaceChildren(skeleton());
      }, SKELETON_DELAY);
    },
    onResult(result, body) {
      stopWaiting();
      if (result.hits.length) show(result, body);
      else showNoHits(result.note);
    },
    onError(error) {
      stopWaiting();
      summary.textContent = "";
      if (error.kind === "filter") showFilterError(error);
      else list.replaceChildren(errorNotice(error, () => update(router.read())));
    },
  });

  function stopWaiting() {
    clearTimeout(skeletonTimer);
    results.removeAttribute("aria-busy");
  }
  function show(result, body) {
    summarize(result, body);
    const focusedId = document.activeElement?.dataset?.item;
    list.replaceChildren(
      ...(result.note ? [el("p", { class: "aside" }, toSentence(result.note))] : []),
      highlightLegend(result.hits),
      hitList(result),
    );
    if (focusedId) list.querySelector(`[data-item="${CSS.escape(focusedId)}"]`)?.focus();
    const hasMore = result.hits.length === body.k && body.k < MAX_HITS;
    if (hasMore) list.append(button("Show more", showMore, "more"));
  }
  /** "The best 20 of 967 documents that match the filters · 0.9 ms"; the number is exact. */
  async function summarize({ hits, took_ms }, { where }) {
    const time = `${took_ms < 10 ? took_ms.toFixed(1) : Math.round(took_ms)} ms`;
    const write = (documents) => {
      const text = `The best ${count(hits.length)} of ${documents}`;
      summary.replaceChildren(text, el("span", { class: "took" }, ` · ${time}`));
      announce(text);
    };
    if (!where) {
      write(plural(collection.documents, "document"));
      return;
    }
    write("the documents that match the filters");
    const controller = (counting = new AbortController());
    try {
      const matching = await api.countWhere(collection.name, where, controller.signal);
      if (!controller.signal.aborted) write(`${plural(matching, "document")} that match the filters`);
    } catch {
      // the number is left out
    }
  }
  function showMore() {
    const last = [...list.querySelectorAll("[data-item]")].at(-1);
    last?.focus({ preventScroll: true });
    router.go(router.changed({ k: String(Math.min(MAX_HITS, hitLimit() + PAGE_SIZE)) }), { replace: true });
  }
  function showNoHits(note) {
    summary.textContent = "";
    announce("No hits");
    if (hasFilters(router.read().params)) {
      const hint = "Remove or change a filter to search more documents.";
      const actions = [button("Clear all filters", clearAll)];
      list.replaceChildren(notice("No document matches these filters", hint, { actions }));
    } else if (note) {
      list.replaceChildren(notice("No hits", [toSentence(note), "Words to try:"], { kind: "unknown" }));
      suggest(list.firstElementChild);
    } else {
      list.replaceChildren(
        notice("No hits", "This collection has no searchable documents. Add some with snuh add."),
      );
    }
  }
  function showFilterError(error) {
    const position = (error.position ?? 0) - filterExpression(router.read().params).before;
    list.replaceChildren(filters.showError(error, position, expandFilters));
    announce(`The filter is invalid. ${error.message}`);
  }
  function showStart() {
    summary.textContent = "";
    const start = notice(
      "What are you looking for?",
      [
        `${plural(collection.documents, "document")}, each with a code of ${collection.bits} bits. Type a few words or paste a whole text: documents that contain the words, or have a similar code, come first.`,
      ],
      { kind: "start" },
    );
    list.replaceChildren(start);
    suggest(start);
  }
  async function suggest(parent) {
    try {
      const { queries } = await api.cached(collection.name, "examples", api.examples);
      parent.append(
        el("ul", { class: "suggestions", aria: { label: "Searches to try" } }, queries.map(suggestion)),
      );
    } catch {
      // suggestions are optional
    }
  }
  function toggleFilters() {
    const isOpen = filters.element.classList.toggle("unfolded");
    toggle.setAttribute("aria-expanded", String(isOpen));
  }
  function expandFilters() {
    filters.element.classList.add("unfolded");
    toggle.setAttribute("aria-expanded", "true");
  }
  function update({ params }) {
    box.update(params);
    filters.update(params);
    const orders = params.get("like") ? SIMILAR_ORDERS : TEXT_ORDERS;
    order.replaceChildren(...orders.map(([value, name]) => el("option", { value }, name)));
    order.value = params.get("order") ?? "";
    const filterTotal = filterCount(params);
    toggle.replaceChildren(icon("filter"), filterTotal ? `Filters (${filterTotal})` : "Filters");
    const body = searchBody(params);
    if (!body) {
      stopWaiting();
      searcher.stop();
      if (!list.querySelector(".start")) showStart();
      return;
    }
    searcher.search({ ...body, k: hitLimit(), explain: true, characters: SHOWN_CHARACTERS });
  }
  if (!matchMedia("(pointer: coarse)").matches) box.field.focus({ preventScroll: true });
  return { update, leave: () => (clearTimeout(skeletonTimer), searcher.stop()) };
}

const hitLimit = () => {
  const k = Math.floor(Number(router.read().params.get("k"))) || PAGE_SIZE;
  return Math.max(1, Math.min(MAX_HITS, k));
};

const suggestion = (query) =>
  el("li", {}, el("a", { class: "chip", href: router.changed({ q: query, like: null }) }, query));

function skeleton() {
  const row = () =>
    el(
      "li",
      { class: "skeleton" },
      el("div", { class: "distance" }),
      el("div", { class: "hit-body" }, el("div"), el("div"), el("div")),
    );
  return el(
    "div",
    {},
    el("p", { class: "hidden" }, "Searching …"),
    el("ol", { class: "skeleton-rows", aria: { hidden: "true" } }, row(), row(), row(), row()),
  );
}
