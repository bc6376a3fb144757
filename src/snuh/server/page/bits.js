// The bits view: the words that each bit stands for.

import * as api from "./api.js";
import * as router from "./router.js";
import { bar, el, percent, plural } from "./dom.js";
import { errorNotice } from "./notices.js";

export function mount(root, collection) {
  const list = el("div", { class: "bits-list" }, el("p", { class: "faint" }, "Loading the bits …"));
  const field = el("input", {
    type: "search",
    id: "bit-word",
    placeholder: "a word",
    autocomplete: "off",
    spellcheck: "false",
    on: { input: () => router.go(router.changed({ word: field.value }), { replace: true }) },
  });
  const summary = el("p", { class: "summary", role: "status" });
  root.append(
    el(
      "div",
      { class: "view-head" },
      el("h1", {}, "What each bit stands for"),
      el(
        "p",
        { class: "lead" },
        "Each bit splits the documents into halves with several themes each. Select a theme to search for it.",
      ),
      el(
        "div",
        { class: "find-bit" },
        el("label", { for: "bit-word" }, "Bits with the word"),
        field,
        summary,
      ),
    ),
    list,
  );
  let rows = [];
  let scrolledTo = null;

  async function load() {
    try {
      const { meanings } = await api.cached(collection.name, "bits", api.bits);
      rows = meanings.map((meaning) => ({ meaning, row: bitRow(meaning) }));
      list.replaceChildren(
        el(
          "ol",
          { class: "bit-rows" },
          rows.map(({ row }) => row),
        ),
      );
      update(router.read());
    } catch (error) {
      list.replaceChildren(errorNotice(error, load));
    }
  }
  function update({ params }) {
    const word = (params.get("word") ?? "").trim().toLowerCase();
    if (field !== document.activeElement) field.value = params.get("word") ?? "";
    for (const { meaning, row } of rows) {
      const words = [...meaning.on, ...meaning.off].flat();
      row.hidden = word !== "" && !words.some((other) => other.includes(word));
    }
    const visible = rows.filter(({ row }) => !row.hidden).length;
    summary.textContent = rows.length ? plural(visible, "bit") : "";
    const bit = params.get("bit");
    for (const { meaning, row } of rows) row.classList.toggle("selected", String(meaning.bit) === bit);
    if (bit !== null && bit !== scrolledTo && rows.length) {
      scrolledTo = bit;
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
                  href: router.changed(
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
