// The view of facts: what is in the collection, what made its codes, and whether they are any good.

import * as api from "./api.js";
import { bytes, count, el, percent } from "./dom.js";
import { refusal } from "./notices.js";

export function mount(root, collection) {
  const place = el("div", { class: "facts" }, el("p", { class: "faint" }, "Reading …"));
  root.append(el("div", { class: "view-head" }, el("h1", {}, collection.name)), place);
  const controller = new AbortController();

  async function load() {
    try {
      const told = await api.info(collection.name, controller.signal);
      place.replaceChildren(...sections(told));
    } catch (error) {
      if (!controller.signal.aborted) place.replaceChildren(refusal(error, load));
    }
  }
  load();
  return { update: () => {}, leave: () => controller.abort() };
}

function sections(told) {
  const { model, health, index } = told;
  return [
    numbers([
      ["documents", count(told.documents)],
      ["bits a code", count(model.bits)],
      ["on the disk", bytes(told.store_bytes + told.code_bytes)],
      ["a search reads of each document", bytes(told.scanned_bytes_per_document)],
    ]),
    told.hints.length > 0 &&
      el(
        "section",
        { class: "card hints" },
        el("h2", {}, "Worth knowing"),
        el(
          "ul",
          {},
          told.hints.map((hint) => el("li", {}, hint)),
        ),
      ),
    card("Documents", [
      ["In the collection", count(told.documents)],
      ["Can be found", count(told.searchable)],
      ["Bytes a document", bytes(told.bytes_per_document)],
      ["Fields", told.fields.length ? told.fields.join(", ") : "none but text, labels and split"],
      ["Who asks may", told.writable ? "read and write" : "read"],
    ]),
    card("Model", [
      ["Method", model.method],
      [
        "Learnt from",
        [model.source, model.documents && `${count(model.documents)} documents`].filter(Boolean).join(", ") ||
          "not recorded",
      ],
      ["Fingerprint", el("code", {}, String(model.fingerprint).slice(0, 16))],
      ["Index", index ? "made by snuh index" : "none; searches read every code"],
    ]),
    health &&
      card(
        "Codes",
        [
          ["Different codes", `${count(health.distinct_codes)} of ${count(health.documents)}`],
          ["Most documents on one code", percent(health.biggest_bucket_share)],
          ["Bits that never change", count(health.constant_bits)],
          ["Mean balance", number(health.mean_balance)],
          ["Correlation between bits", number(health.bit_correlation)],
        ],
        health.ones_share?.length ? balances(health.ones_share) : null,
      ),
  ].filter(Boolean);
}

const number = (value) => (typeof value === "number" ? value.toFixed(2) : "—");

function numbers(pairs) {
  return el(
    "dl",
    { class: "numbers" },
    pairs.map(([name, value]) => el("div", {}, el("dd", {}, value), el("dt", {}, name))),
  );
}

function card(title, pairs, more = null) {
  return el(
    "section",
    { class: "card" },
    el("h2", {}, title),
    el(
      "dl",
      { class: "pairs" },
      pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
    ),
    more,
  );
}

/** A column a bit: in how many documents it is 1; half is best. */
function balances(shares) {
  const columns = shares.map((share, bit) => {
    const column = el("span", { title: `Bit ${bit}: 1 in ${percent(share)}` });
    column.style.blockSize = `${share * 100}%`;
    return column;
  });
  const told = `Share of documents with a 1, bit by bit: from ${percent(Math.min(...shares))} to ${percent(Math.max(...shares))}`;
  return el(
    "figure",
    { class: "balances" },
    el("div", { role: "img", aria: { label: told } }, columns),
    el("figcaption", {}, `${told}. Half is best.`),
  );
}
