// A control for one field: values to choose, or a range of numbers.

import * as address from "./address.js";
import { count, el } from "./dom.js";

const SHOWN = 6; // values before "more"
const WAIT = 350; // milliseconds after the last key

/** Boxes for the most frequent values. */
export function choice({ name, kind, values }) {
  const parameter = `${kind === "list" ? "has" : "in"}.${name}`;
  const boxes = values.map(({ value, documents }) => {
    const box = el("input", { type: "checkbox", value: JSON.stringify(value), on: { change: choose } });
    const row = el(
      "label",
      { class: "choice" },
      box,
      el("span", {}, String(value)),
      " ",
      el("small", {}, count(documents)),
    );
    return { box, row };
  });
  const rest = boxes.length - SHOWN;
  const more = el(
    "button",
    { type: "button", class: "link", on: { click: () => unfold(true) } },
    `${count(rest)} more`,
  );
  let unfolded = rest <= 1;

  function choose() {
    address.go(
      address.changed({
        [parameter]: boxes.filter(({ box }) => box.checked).map(({ box }) => box.value),
        open: null,
      }),
    );
  }
  function unfold(byHand) {
    unfolded = true;
    update(address.read().ask);
    if (byHand) boxes[SHOWN].box.focus();
  }
  function update(ask) {
    const values = ask.getAll(parameter);
    boxes.forEach(({ box, row }, number) => {
      box.checked = values.includes(box.value);
      row.hidden = !unfolded && number >= SHOWN && !box.checked;
    });
    more.hidden = unfolded;
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

/** Two fields for numbers, with the minimum and maximum as placeholders. */
export function range({ name, min, max }) {
  const fields = [
    ["from", min, "From"],
    ["to", max, "To"],
  ].map(([kind, edge, word]) => {
    const change = later(() => address.go(address.changed({ [`${kind}.${name}`]: field.value, open: null })));
    const field = el("input", {
      type: "number",
      step: "any",
      placeholder: String(edge),
      on: { input: change },
    });
    return { kind, field, label: el("label", {}, el("span", {}, word), field) };
  });
  const update = (ask) => {
    for (const { kind, field } of fields) {
      const told = ask.get(`${kind}.${name}`) ?? "";
      const value = Number.isFinite(Number(told)) ? told : ""; // someone changed the address by hand
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

/** Do something once nobody has typed for a moment. */
export function later(act) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, WAIT);
  };
}
