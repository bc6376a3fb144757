// Filter controls for one field: checkboxes for values, or a range of numbers.

import * as router from "./router.js";
import { count, el } from "./dom.js";

const COLLAPSED_VALUES = 6; // shown before "more"
const DEBOUNCE = 350; // milliseconds

/** Checkboxes for the most frequent values; counts of a sample are marked. */
export function choice({ name, kind, values }, isSampled) {
  const parameter = `${kind === "list" ? "has" : "in"}.${name}`;
  const boxes = values.map(({ value, documents }) => {
    const box = el("input", { type: "checkbox", value: JSON.stringify(value), on: { change: choose } });
    const row = el(
      "label",
      { class: "choice" },
      box,
      el("span", {}, String(value)),
      " ",
      isSampled
        ? el("small", { title: "estimated from a sample" }, `≈ ${count(Number(documents.toPrecision(2)))}`)
        : el("small", {}, count(documents)),
    );
    return { box, row };
  });
  const hiddenValues = boxes.length - COLLAPSED_VALUES;
  const more = el(
    "button",
    { type: "button", class: "link", on: { click: () => expand(true) } },
    `${count(hiddenValues)} more`,
  );
  let isExpanded = hiddenValues <= 1;

  function choose() {
    router.go(
      router.changed({
        [parameter]: boxes.filter(({ box }) => box.checked).map(({ box }) => box.value),
        open: null,
      }),
    );
  }
  function expand(byUser) {
    isExpanded = true;
    update(router.read().params);
    if (byUser) boxes[COLLAPSED_VALUES].box.focus();
  }
  function update(params) {
    const values = params.getAll(parameter);
    boxes.forEach(({ box, row }, index) => {
      box.checked = values.includes(box.value);
      row.hidden = !isExpanded && index >= COLLAPSED_VALUES && !box.checked;
    });
    more.hidden = isExpanded;
  }
  update(new URLSearchParams());
  return {
    element: el(
      "fieldset",
      {},
      el("legend", {}, name),
      boxes.map(({ row }) => row),
      more,
    ),
    update,
  };
}

/** Two number fields, with the minimum and maximum as placeholders. */
export function range({ name, min, max }) {
  const fields = [
    ["from", min, "From"],
    ["to", max, "To"],
  ].map(([kind, bound, caption]) => {
    const change = debounce(() =>
      router.go(router.changed({ [`${kind}.${name}`]: field.value, open: null })),
    );
    const field = el("input", {
      type: "number",
      step: "any",
      placeholder: String(bound),
      on: { input: change },
    });
    return { kind, field, label: el("label", {}, el("span", {}, caption), field) };
  });
  const update = (params) => {
    for (const { kind, field } of fields) {
      const text = params.get(`${kind}.${name}`) ?? "";
      const value = Number.isFinite(Number(text)) ? text : ""; // the URL may be edited by hand
      if (field !== document.activeElement && field.value !== value) field.value = value;
    }
  };
  return {
    element: el(
      "fieldset",
      { class: "range" },
      el("legend", {}, name),
      fields.map(({ label }) => label),
    ),
    update,
  };
}

/** Return a function that runs `action` once it has not been called for a moment. */
export function debounce(action) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, DEBOUNCE);
  };
}
