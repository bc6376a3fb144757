// The filter panel, with a control for each facet of the documents.

import * as api from "./api.js";
import * as router from "./router.js";
import { choice, debounce, range } from "./controls.js";
import { el } from "./dom.js";
import { activeFilters, hasFilters } from "./filterexpression.js";
import { button, notice } from "./notices.js";

const MAX_FACETS = 12;
const FEW_VALUES = 12; // always offered, however rare they are

/** The panel; `update` synchronizes it with the parameters of the route. */
export function filterPanel(collection) {
  const controls = el(
    "div",
    { class: "filter-fields" },
    el("p", { class: "faint" }, "Loading the fields …"),
  );
  const clear = el("button", { type: "button", class: "link", on: { click: clearAll } }, "Clear all");
  const typed = typedFilter();
  const element = el(
    "aside",
    { class: "filters", id: "filters", aria: { label: "Filters" } },
    el("div", { class: "filters-head" }, el("h2", {}, "Filters"), clear),
    controls,
    typed.element,
  );
  let rows = [];
  let current = router.read().params;
  let isLoaded = false; // or loading

  async function load() {
    isLoaded = true;
    try {
      const { facets, documents, total } = await api.cached(collection, "facets", api.facets);
      const useful = facets.filter(isUseful).slice(0, MAX_FACETS);
      const scaled = useful.map((facet) => scale(facet, total / Math.max(1, documents)));
      rows = scaled.map((facet) =>
        facet.kind === "number" ? range(facet) : choice(facet, documents < total),
      );
      const none = el("p", { class: "faint" }, "The documents have no fields to filter by.");
      controls.replaceChildren(...(rows.length ? rows.map((row) => row.element) : [none]));
      update(current);
    } catch (error) {
      controls.replaceChildren(el("p", { class: "faint" }, error.message));
      isLoaded = false; // retried at the next search
    }
  }
  function update(params) {
    current = params;
    if (!isLoaded) load();
    clear.hidden = !hasFilters(params);
    typed.update(params);
    for (const row of rows) row.update(params);
  }
  return { element, update, showError: typed.showError };
}

/** A facet whose counts are those of the whole collection, estimated if it was sampled. */
const scale = (facet, factor) => ({
  ...facet,
  values: facet.values.map(({ value, documents }) => ({ value, documents: documents * factor })),
});

export function clearAll() {
  const names = new Set(
    [...router.read().params.keys()].filter((name) => /^(in|has|from|to)\.|^where$/.test(name)),
  );
  router.go(router.changed(Object.fromEntries([...names].map((name) => [name, null]))));
}

/** Whether a facet narrows a search: a field whose values are all distinct, such as a title, does not. */
function isUseful({ kind, distinct, documents, values }) {
  if (kind === "number" || distinct < 2) return distinct > 1;
  const covered = values.reduce((sum, value) => sum + value.documents, 0);
  return distinct <= FEW_VALUES ? distinct < documents : covered >= 3 * values.length;
}

/** A filter expression typed by the user; an error is shown at its position. */
function typedFilter() {
  const change = debounce(() =>
    router.go(router.changed({ where: field.value, open: null }), { replace: true }),
  );
  const field = el("input", {
    id: "where",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "none",
    placeholder: "year >= 2020",
    aria: { describedby: "where-error" },
    on: { input: change },
  });
  const errorText = el("div", { id: "where-error", class: "error-text" });
  const element = el(
    "div",
    { class: "typed-filter" },
    el("label", { for: "where" }, "Filter expression"),
    field,
    errorText,
  );
  return {
    element,
    update(params) {
      const value = params.get("where") ?? "";
      if (field.value.trim() !== value.trim()) field.value = value;
      field.removeAttribute("aria-invalid");
      errorText.replaceChildren();
    },
    showError(error, position, expandFilters) {
      field.setAttribute("aria-invalid", "true");
      const text = field.value.trim();
      const column = Math.max(0, Math.min(text.length, position));
      const message = `Character ${column + 1}: ${error.message.replace(/^filter, character \d+: /, "")}.`;
      errorText.replaceChildren(el("p", {}, message));
      const edit = () => (expandFilters(), field.focus(), field.setSelectionRange(column, column));
      return notice(
        "The filter is invalid",
        [el("pre", { class: "caret", aria: { hidden: "true" } }, `${text}\n${" ".repeat(column)}^`), message],
        {
          kind: "error",
          actions: [button("Edit the filter", edit), button("Clear all filters", clearAll)],
        },
      );
    },
  };
}

export const filterCount = (params) =>
  new Set(activeFilters(params).map(([, field]) => field)).size + (params.get("where") ? 1 : 0);
