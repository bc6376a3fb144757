// The explanation of a hit: the bits of both codes, and the words that set them.

import * as api from "./api.js";
import * as router from "./router.js";
import { bar, el, plural } from "./dom.js";
import { distance, highlight, highlightLegend } from "./hits.js";

const MAX_WORDS = 8;

/** Explain why a document is a hit of the query of the route. */
export async function renderExplanation(collection, params, doc, signal) {
  const like = params.get("like");
  const body = like ? { query_id: like, id: doc.id } : { text: params.get("q").trim(), id: doc.id };
  const [explanation, meanings] = await Promise.all([
    api.explain(collection.name, body, signal),
    api.cached(collection.name, "bits", api.bits).then(
      (response) => response.meanings,
      () => [],
    ),
  ]);
  const agreeing = explanation.bits.length - explanation.distance;
  return el(
    "div",
    { class: "why" },
    el(
      "div",
      { class: "why-head" },
      distance(explanation.distance, explanation.bits.length),
      el(
        "p",
        {},
        `${agreeing} of ${plural(explanation.bits.length, "bit")} agree. The words below determine them: the contributions of all words add up to each bit.`,
      ),
    ),
    bitGrid(explanation.bits, meanings),
    el("h3", {}, like ? "The document you started from" : "Your query"),
    el("p", { class: "marked-text" }, highlight(explanation.query_fragments)),
    wordTable(explanation.query_words, "Words of the query"),
    el("h3", {}, "This document"),
    el("p", { class: "marked-text" }, highlight(explanation.hit_fragments)),
    wordTable(explanation.hit_words, "Words of this document"),
    highlightLegend([
      { fragments: [...explanation.query_fragments, ...explanation.hit_fragments] },
    ]),
  );
}

/** One cell per bit; arrow keys move through them, and the selected one is described. */
function bitGrid(bits, meanings) {
  const hint = "Select a bit to see what it stands for.";
  const description = el("p", { class: "bit-description", role: "status" }, hint);
  const cells = bits.map((pair, index) => {
    const agrees = pair.query === pair.hit;
    const name = `Bit ${pair.bit}: ${agrees ? `both ${Number(pair.hit)}` : `${Number(pair.query)} in the query, ${Number(pair.hit)} here`}`;
    return el(
      "button",
      {
        type: "button",
        class: `bit ${agrees ? "agrees" : "differs"} ${pair.hit ? "one" : "zero"}`,
        tabindex: index ? "-1" : "0",
        title: name,
        aria: { label: name },
        on: {
          focus: () => describe(pair, name),
          mouseenter: () => describe(pair, name),
          click: () => describe(pair, name),
        },
      },
      String(Number(pair.hit)),
    );
  });
  const describe = (pair, name) =>
    description.replaceChildren(
      el("b", {}, name),
      ...meaningOf(meanings[pair.bit], pair.hit),
      " ",
      el(
        "a",
        { href: router.changed({ bit: String(pair.bit), open: null, why: null }, { view: "bits" }) },
        "More on this bit",
      ),
    );
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -16, ArrowDown: 16, Home: -Infinity, End: Infinity };
  const moveFocus = (event) => {
    const step = steps[event.key];
    const index = cells.indexOf(document.activeElement);
    if (step === undefined || index < 0) return;
    event.preventDefault();
    const next = cells[Math.max(0, Math.min(cells.length - 1, index + step))];
    cells[index].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };
  return el(
    "div",
    { class: "bits-block" },
    el(
      "div",
      {
        class: "bit-grid",
        role: "group",
        aria: { label: "Bits of this document; use the arrow keys to move" },
        on: { keydown: moveFocus },
      },
      cells,
    ),
    el(
      "p",
      { class: "bit-legend" },
      el("span", { class: "bit agrees one", aria: { hidden: "true" } }),
      "agrees",
      el("span", { class: "bit differs one", aria: { hidden: "true" } }),
      "differs",
    ),
    description,
  );
}

function meaningOf(meaning, isOne) {
  const themes = meaning ? (isOne ? meaning.on : meaning.off) : [];
  return themes.length
    ? [
        ". ",
        `${isOne ? "1" : "0"} stands for: ${themes
          .slice(0, 3)
          .map((theme) => theme.slice(0, 3).join(" "))
          .join("; ")}.`,
      ]
    : ["."];
}

/** The words with the largest contributions. */
function wordTable(words, caption) {
  const contribution = (word) => word.agreeing - word.differing;
  const strongest = words
    .filter((word) => contribution(word) !== 0)
    .sort((a, b) => Math.abs(contribution(b)) - Math.abs(contribution(a)))
    .slice(0, MAX_WORDS);
  if (!strongest.length) return el("p", { class: "faint" }, "No words that the model knows.");
  const largest = Math.abs(contribution(strongest[0]));
  return el(
    "table",
    { class: "words" },
    el("caption", { class: "hidden" }, caption),
    el(
      "thead",
      { class: "hidden" },
      el(
        "tr",
        {},
        ["Word", "Strength", "Contribution"].map((name) => el("th", { scope: "col" }, name)),
      ),
    ),
    el(
      "tbody",
      {},
      strongest.map((word) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, word.word),
          el(
            "td",
            { class: "words-bar" },
            bar(Math.abs(contribution(word)) / largest, contribution(word) > 0 ? "" : "apart"),
          ),
          el(
            "td",
            { class: "number" },
            `${contribution(word) > 0 ? "+" : "−"}${Math.abs(contribution(word)).toFixed(2)}`,
          ),
        ),
      ),
    ),
  );
}
