// Controls for the fields that the documents have.

import * as address from "./address.js";
import * as api from "./api.js";
import { choice, later, range } from "./controls.js";
import { el } from "./dom.js";
import { button, notice } from "./notices.js";
import { chosen, hasFilters } from "./where.js";

const MOST_FIELDS = 12;
const FEW = 12; // values that are worth choosing from however rare they are

/** A panel of controls; `update` makes it agree with the address. */
export function filterPanel(collection) {
  const controls = el(
    "div",
    { class: "filter-fields" },
    el("p", { class: "faint" }, "Looking at the fields …"),
  );
  const clear = el("button", { type: "button", class: "link", on: { click: clearAll } }, "Clear all");
  const own = ownFilter();
  const element = el(
    "aside",
    { class: "filters", id: "filters", aria: { label: "Filters" } },
    el("div", { class: "filters-head" }, el("h2", {}, "Filters"), clear),
    controls,
    own.element,
  );
  let rows = [];
  let now = address.read().ask;
  let isAsked = false; // the fields are there, or on their way

  async function load() {
    isAsked = true;
    try {
      const { fields } = await api.once(collection, "fields", api.fields);
      const useful = fields.filter(isUseful).slice(0, MOST_FIELDS);
      rows = useful.map((field) => (field.kind === "number" ? range(field) : choice(field)));
      const none = el("p", { class: "faint" }, "The documents have no fields to filter by.");
      controls.replaceChildren(...(rows.length ? rows.map((row) => row.element) : [none]));
      update(now);
    } catch (error) {
      controls.replaceChildren(el("p", { class: "faint" }, error.message));
      isAsked = false; // the next search tries again
    }
  }
  function update(ask) {
    now = ask;
    if (!isAsked) load();
    clear.hidden = !hasFilters(ask);
    own.update(ask);
    for (const row of rows) row.update(ask);
  }
  return { element, update, refuse: own.refuse };
}

export function clearAll() {
  const names = new Set(
    [...address.read().ask.keys()].filter((name) => /^(in|has|from|to)\.|^where$/.test(name)),
  );
  address.go(address.changed(Object.fromEntries([...names].map((name) => [name, null]))));
}

/** A field whose values are all different, such as an address or a title, is nothing to choose from. */
function isUseful({ kind, distinct, documents, values }) {
  if (kind === "number" || distinct < 2) return distinct > 1;
  const covered = values.reduce((sum, value) => sum + value.documents, 0);
  return distinct <= FEW ? distinct < documents : covered >= 3 * values.length;
}

/** A filter written by hand; a mistake is shown under the place where it is. */
function ownFilter() {
  const change = later(() =>
    address.go(address.changed({ where: field.value, open: null }), { replace: true }),
  );
  const field = el("input", {
    id: "where",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "none",
    placeholder: "year >= 2020",
    aria: { describedby: "where-wrong" },
    on: { input: change },
  });
  const wrong = el("div", { id: "where-wrong", class: "wrong" });
  const element = el(
    "div",
    { class: "own-filter" },
    el("label", { for: "where" }, "Your own filter"),
    field,
    wrong,
  );
  return {
    element,
    update(ask) {
      const value = ask.get("where") ?? "";
      if (field.value.trim() !== value.trim()) field.value = value;
      field.removeAttribute("aria-invalid");
      wrong.replaceChildren();
    },
    refuse(error, position, unfold) {
      field.setAttribute("aria-invalid", "true");
      const text = field.value.trim();
      const place = Math.max(0, Math.min(text.length, position));
      const told = `Character ${place + 1}: ${error.message.replace(/^filter, character \d+: /, "")}.`;
      wrong.replaceChildren(el("p", {}, told));
      const edit = () => (unfold(), field.focus(), field.setSelectionRange(place, place));
      return notice(
        "The filter cannot be read",
        [el("pre", { class: "caret", aria: { hidden: "true" } }, `${text}\n${" ".repeat(place)}^`), told],
        {
          kind: "trouble",
          actions: [button("Edit the filter", edit), button("Clear all filters", clearAll)],
        },
      );
    },
  };
}

export const filterCount = (ask) =>
  new Set(chosen(ask).map(([, field]) => field)).size + (ask.get("where") ? 1 : 0);
