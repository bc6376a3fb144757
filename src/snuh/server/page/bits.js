// The view of what each bit stands for.

import * as address from "./address.js";
import * as api from "./api.js";
import { bar, el, percent, plural } from "./dom.js";
import { refusal } from "./notices.js";

export function mount(root, collection) {
  const place = el("div", { class: "bits-list" }, el("p", { class: "faint" }, "Reading the bits …"));
  const field = el("input", {
    type: "search",
    id: "bit-word",
    placeholder: "a word",
    autocomplete: "off",
    spellcheck: "false",
    on: { input: () => address.go(address.changed({ word: field.value }), { replace: true }) },
  });
  const told = el("p", { class: "summary", role: "status" });
  root.append(
    el(
      "div",
      { class: "view-head" },
      el("h1", {}, "What each bit stands for"),
      el(
        "p",
        { class: "lead" },
        "A bit splits the documents into two halves, and each half has several themes. The next bit splits them otherwise. Choose a theme to search for it.",
      ),
      el("div", { class: "find-bit" }, el("label", { for: "bit-word" }, "Bits with"), field, told),
    ),
    place,
  );
  let rows = [];
  let wanted = null;

  async function load() {
    try {
      const { meanings } = await api.once(collection.name, "bits", api.bits);
      rows = meanings.map((meaning) => ({ meaning, row: bitRow(meaning) }));
      place.replaceChildren(
        el(
          "ol",
          { class: "bit-rows" },
          rows.map(({ row }) => row),
        ),
      );
      update(address.read());
    } catch (error) {
      place.replaceChildren(refusal(error, load));
    }
  }
  function update({ ask }) {
    const word = (ask.get("word") ?? "").trim().toLowerCase();
    if (field !== document.activeElement) field.value = ask.get("word") ?? "";
    for (const { meaning, row } of rows)
      row.hidden = word !== "" && ![...meaning.on, ...meaning.off].flat().some((one) => one.includes(word));
    const left = rows.filter(({ row }) => !row.hidden).length;
    told.textContent = rows.length ? plural(left, "bit") : "";
    const bit = ask.get("bit");
    for (const { meaning, row } of rows) row.classList.toggle("wanted", String(meaning.bit) === bit);
    if (bit !== null && bit !== wanted && rows.length) {
      wanted = bit;
      rows.find(({ meaning }) => String(meaning.bit) === bit)?.row.scrollIntoView({ block: "center" });
    }
  }
  load();
  return { update, leave: () => {} };
}

function bitRow({ bit, on, off, balance }) {
  return el(
    "li",
    { class: "bit-row", id: `bit-${bit}` },
    el(
      "div",
      { class: "bit-name" },
      el("h2", {}, `Bit ${bit}`),
      balance !== null &&
        el("div", { class: "balance" }, bar(balance), el("small", {}, `1 in ${percent(balance)}`)),
    ),
    side("1", on),
    side("0", off),
  );
}

function side(value, themes) {
  return el(
    "div",
    { class: "bit-side" },
    el(
      "span",
      {
        class: `bit ${value === "1" ? "one" : "zero"} agrees`,
        aria: { label: `when ${value}` },
        role: "img",
      },
      value,
    ),
    el(
      "ul",
      {},
      themes.length
        ? themes.map((theme) =>
            el(
              "li",
              {},
              el(
                "a",
                {
                  class: "theme-link",
                  href: address.changed(
                    { q: theme.join(" "), like: null, word: null, bit: null },
                    { view: "search" },
                  ),
                },
                theme.join(" "),
              ),
            ),
          )
        : el("li", { class: "faint" }, "no clear theme"),
    ),
  );
}
