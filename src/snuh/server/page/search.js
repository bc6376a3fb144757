// The search view: hits appear while the user types.

import * as api from "./api.js";
import * as router from "./router.js";
import { announce, count, el, icon, plural } from "./dom.js";
import { filterExpression, hasFilters } from "./filterexpression.js";
import { clearAll, filterCount, filterPanel } from "./filters.js";
import { hitList } from "./hits.js";
import { button, errorNotice, notice } from "./notices.js";
import { searchBox } from "./searchbox.js";
import { MAX_HITS, PAGE_SIZE, searchBody, Searcher } from "./searcher.js";

const ORDERS = [
  ["", "by bits"],
  ["asymmetric", "by weighted bits"],
  ["cosine", "by words"],
];
const MAX_SUGGESTIONS = 6;
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
      aria: { label: "Order" }, // the visible label is hidden on phones
      on: { change: () => router.go(router.changed({ order: order.value, open: null })) },
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
  let skeletonTimer;

  const searcher = new Searcher(collection.name, {
    onStart() {
      results.setAttribute("aria-busy", "true");
      clearTimeout(skeletonTimer);
      skeletonTimer = setTimeout(() => {
        if (!list.querySelector(".hits")) list.replaceChildren(skeleton());
      }, SKELETON_DELAY);
    },
    onResult(result, body) {
      stopWaiting();
      if (result.hits.length) show(result, body);
      else showNoHits();
    },
    onError(error) {
      stopWaiting();
      summary.textContent = "";
      if (error.kind === "filter") showFilterError(error);
      else if (error.kind === "unknown-words") showUnknownWords();
      else list.replaceChildren(errorNotice(error, () => update(router.read())));
    },
  });

  function stopWaiting() {
    clearTimeout(skeletonTimer);
    results.removeAttribute("aria-busy");
  }
  function show(result, body) {
    const text = `${plural(result.hits.length, "nearest document")} of ${count(collection.documents)}`;
    summary.textContent = text;
    announce(text);
    const focusedId = document.activeElement?.dataset?.item;
    list.replaceChildren(hitList(result));
    if (focusedId) list.querySelector(`[data-item="${CSS.escape(focusedId)}"]`)?.focus();
    const hasMore = result.hits.length === body.k && body.k < MAX_HITS;
    if (hasMore) list.append(button("Show more", showMore, "more"));
  }
  function showMore() {
    const last = [...list.querySelectorAll("[data-item]")].at(-1);
    last?.focus({ preventScroll: true });
    router.go(router.changed({ k: String(Math.min(MAX_HITS, hitLimit() + PAGE_SIZE)) }), { replace: true });
  }
  function showNoHits() {
    summary.textContent = "";
    const isFiltered = hasFilters(router.read().params);
    announce("No hits");
    list.replaceChildren(
      isFiltered
        ? notice("No document matches these filters", "Remove or change a filter to search more documents.", {
            actions: [button("Clear all filters", clearAll)],
          })
        : notice("No hits", "This collection has no searchable documents. Add some with snuh add."),
    );
  }
  function showFilterError(error) {
    const position = (error.position ?? 0) - filterExpression(router.read().params).before;
    list.replaceChildren(filters.showError(error, position, expandFilters));
    announce(`The filter is invalid. ${error.message}`);
  }
  function showUnknownWords() {
    announce("No known words");
    list.replaceChildren(
      notice(
        "No known words",
        [
          "None of these words occurred in the documents the model was trained on, so it cannot encode them.",
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
  async function suggest(parent) {
    try {
      const { meanings } = await api.cached(collection.name, "bits", api.bits);
      parent.append(
        el("ul", { class: "suggestions", aria: { label: "Searches to try" } }, suggestions(meanings)),
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
    searcher.search({ ...body, k: hitLimit(), explain: true });
  }
  if (!matchMedia("(pointer: coarse)").matches) box.field.focus({ preventScroll: true });
  return { update, leave: () => (clearTimeout(skeletonTimer), searcher.stop()) };
}

const hitLimit = () => {
  const k = Math.floor(Number(router.read().params.get("k"))) || PAGE_SIZE;
  return Math.max(1, Math.min(MAX_HITS, k));
};

/** Links to searches for words that the model knows, each from another theme. */
function suggestions(meanings) {
  const seen = new Set();
  const themes = [];
  for (const theme of meanings.flatMap(({ on, off }) => [on[0] ?? [], off[0] ?? []])) {
    if (!theme.length || theme.some((word) => seen.has(word))) continue;
    for (const word of theme) seen.add(word);
    themes.push(theme.slice(0, 3).join(" "));
  }
  return themes
    .slice(0, MAX_SUGGESTIONS)
    .map((words) =>
      el("li", {}, el("a", { class: "chip", href: router.changed({ q: words, like: null }) }, words)),
    );
}

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
