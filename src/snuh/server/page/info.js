// The info view: the documents, the model and the quality of the codes.

import * as api from "./api.js";
import { bytes, count, el, percent } from "./dom.js";
import { errorNotice } from "./notices.js";

export function mount(root, collection) {
  const content = el("div", { class: "info" }, el("p", { class: "faint" }, "Loading …"));
  root.append(el("div", { class: "view-head" }, el("h1", {}, collection.name)), content);
  const controller = new AbortController();

  async function load() {
    try {
      const info = await api.info(collection.name, controller.signal);
      content.replaceChildren(...sections(info));
    } catch (error) {
      if (!controller.signal.aborted) content.replaceChildren(errorNotice(error, load));
    }
  }
  load();
  return { update: () => {}, leave: () => controller.abort() };
}

function sections(info) {
  const { model, health, index } = info;
  return [
    numbers([
      ["documents", count(info.documents)],
      ["bits per code", count(model.bits)],
      ["on disk", bytes(info.store_bytes + info.code_bytes)],
      ["scanned per document", bytes(info.scanned_bytes_per_document)],
    ]),
    info.hints.length > 0 &&
      el(
        "section",
        { class: "card hints" },
        el("h2", {}, "Hints"),
        el(
          "ul",
          {},
          info.hints.map((hint) => el("li", {}, hint)),
        ),
      ),
    card("Documents", [
      ["Total", count(info.documents)],
      ["Searchable", count(info.searchable)],
      ["Size per document", bytes(info.bytes_per_document)],
      ["Fields", info.fields.length ? info.fields.join(", ") : "only text, labels and split"],
      ["Permissions", info.writable ? "read and write" : "read"],
    ]),
    card("Model", [
      ["Method", model.method],
      [
        "Trained on",
        [model.source, model.documents && `${count(model.documents)} documents`].filter(Boolean).join(", ") ||
          "not recorded",
      ],
      ["Fingerprint", el("code", {}, String(model.fingerprint).slice(0, 16))],
      ["Index", index ? index.description : "none; searches scan all codes"],
    ]),
    health &&
      card(
        "Codes",
        [
          ["Distinct codes", `${count(health.distinct_codes)} of ${count(health.documents)}`],
          ["Largest group with one code", percent(health.largest_bucket_fraction)],
          ["Constant bits", count(health.constant_bits)],
          ["Mean balance", number(health.mean_balance)],
          ["Correlation between bits", number(health.bit_correlation)],
        ],
        health.ones_fraction?.length ? balanceChart(health.ones_fraction) : null,
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

/** One column per bit: the fraction of documents where it is 1; 0.5 is best. */
function balanceChart(fractions) {
  const columns = fractions.map((fraction, bit) => {
    const column = el("span", { title: `Bit ${bit}: 1 in ${percent(fraction)}` });
    column.style.blockSize = `${fraction * 100}%`;
    return column;
  });
  const caption = `Fraction of documents with a 1, by bit: from ${percent(Math.min(...fractions))} to ${percent(Math.max(...fractions))}`;
  return el(
    "figure",
    { class: "balances" },
    el("div", { role: "img", aria: { label: caption } }, columns),
    el("figcaption", {}, `${caption}. Half is best.`),
  );
}
