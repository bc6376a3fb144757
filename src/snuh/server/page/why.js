// Why a document was found: the bits of both codes, and the words that set them.

import * as address from "./address.js";
import * as api from "./api.js";
import { bar, el, plural } from "./dom.js";
import { distance, marked } from "./hits.js";

const WORDS = 8;

/** Everything that led from what was searched for to this document. */
export async function whyFound(collection, ask, one, signal) {
  const like = ask.get("like");
  const body = like ? { query_id: like, id: one.id } : { text: ask.get("q").trim(), id: one.id };
  const [reason, meanings] = await Promise.all([
    api.explain(collection.name, body, signal),
    api.once(collection.name, "bits", api.bits).then(
      (told) => told.meanings,
      () => [],
    ),
  ]);
  const agreeing = reason.bits.length - reason.distance;
  return el(
    "div",
    { class: "why" },
    el(
      "div",
      { class: "why-head" },
      distance(reason.distance, reason.bits.length),
      el(
        "p",
        {},
        `${agreeing} of ${plural(reason.bits.length, "bit")} agree. The words below set them: each word pushes each bit up or down, and nothing else does.`,
      ),
    ),
    bitGrid(reason.bits, meanings),
    el("h3", {}, like ? "The document you started from" : "Your words"),
    el("p", { class: "marked-text" }, marked(reason.query_fragments)),
    wordTable(reason.query_words, "Words of what you searched for"),
    el("h3", {}, "This document"),
    el("p", { class: "marked-text" }, marked(reason.hit_fragments)),
    wordTable(reason.hit_words, "Words of this document"),
    el(
      "p",
      { class: "legend-line" },
      el("mark", { class: "together strong" }, "together"),
      " pushed the two codes together, ",
      el("mark", { class: "apart strong" }, "apart"),
      " pushed them apart.",
    ),
  );
}

/** One cell a bit; arrow keys go through them and tell what each stands for. */
function bitGrid(bits, meanings) {
  const told = el("p", { class: "bit-told", role: "status" }, "Choose a bit to see what it stands for.");
  const cells = bits.map((pair, number) => {
    const agrees = pair.query === pair.hit;
    const name = `Bit ${pair.bit}: ${agrees ? `both ${Number(pair.hit)}` : `${Number(pair.query)} in the query, ${Number(pair.hit)} here`}`;
    return el(
      "button",
      {
        type: "button",
        class: `bit ${agrees ? "agrees" : "differs"} ${pair.hit ? "one" : "zero"}`,
        tabindex: number ? "-1" : "0",
        title: name,
        aria: { label: name },
        on: {
          focus: () => tell(pair, name),
          mouseenter: () => tell(pair, name),
          click: () => tell(pair, name),
        },
      },
      String(Number(pair.hit)),
    );
  });
  const tell = (pair, name) =>
    told.replaceChildren(
      el("b", {}, name),
      ...meaningOf(meanings[pair.bit], pair.hit),
      " ",
      el(
        "a",
        { href: address.changed({ bit: String(pair.bit), open: null, why: null }, { view: "bits" }) },
        "More on this bit",
      ),
    );
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -16, ArrowDown: 16, Home: -Infinity, End: Infinity };
  const press = (event) => {
    const step = steps[event.key];
    const here = cells.indexOf(document.activeElement);
    if (step === undefined || here < 0) return;
    event.preventDefault();
    const next = cells[Math.max(0, Math.min(cells.length - 1, here + step))];
    cells[here].tabIndex = -1;
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
        aria: { label: "Bits of this document; arrow keys go through them" },
        on: { keydown: press },
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
    told,
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

/** The strongest words and their exact shares. */
function wordTable(words, caption) {
  const push = (word) => word.agreeing - word.differing;
  const strongest = words
    .filter((word) => push(word) !== 0)
    .sort((a, b) => Math.abs(push(b)) - Math.abs(push(a)))
    .slice(0, WORDS);
  if (!strongest.length) return el("p", { class: "faint" }, "No word that the model knows.");
  const most = Math.abs(push(strongest[0]));
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
        ["Word", "Strength", "Push"].map((name) => el("th", { scope: "col" }, name)),
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
          el("td", { class: "words-bar" }, bar(Math.abs(push(word)) / most, push(word) > 0 ? "" : "apart")),
          el("td", { class: "number" }, `${push(word) > 0 ? "+" : "−"}${Math.abs(push(word)).toFixed(2)}`),
        ),
      ),
    ),
  );
}
