// The view of documents that repeat others. Nothing is deleted here.

import * as address from "./address.js";
import * as api from "./api.js";
import { bar, count, el, percent, plural, say } from "./dom.js";
import { making, notice, refusal } from "./notices.js";
import { cut } from "./titles.js";

const USUAL = "0.85";
const THRESHOLDS = ["0.7", "0.8", "0.85", "0.9", "0.95", "1"];
const FOLDED = 6; // documents of a cluster that are shown at first

export function mount(root, collection) {
  const place = el("div", { class: "clusters-place" });
  const choose = el("select", {
    id: "threshold",
    on: { change: () => address.go(address.changed({ threshold: choose.value })) },
  });
  root.append(
    el(
      "div",
      { class: "view-head" },
      el("h1", {}, "Duplicates"),
      el(
        "p",
        { class: "lead" },
        "Documents that repeat another one, word for word or nearly so. One of each group is worth keeping; nothing is deleted here.",
      ),
      el("div", { class: "find-bit" }, el("label", { for: "threshold" }, "Similar by at least"), choose),
    ),
    place,
  );
  let asked = null;
  let controller = new AbortController();

  async function load(threshold) {
    controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    const wait = making(
      "Looking for duplicates …",
      "Every document is compared with those whose codes are near.",
    );
    place.replaceChildren(wait.box);
    try {
      const found = await api.made(collection.name, "duplicates", {
        signal,
        onWait: wait.wait,
        query: `?threshold=${encodeURIComponent(threshold)}`,
      });
      place.replaceChildren(...report(found));
      say(`${plural(found.clusters, "group")} of duplicates`);
    } catch (error) {
      if (!signal.aborted) place.replaceChildren(refusal(error, () => load(threshold)));
    }
  }
  function update({ ask }) {
    const threshold = ask.get("threshold") ?? USUAL;
    const names = THRESHOLDS.includes(threshold) ? THRESHOLDS : [...THRESHOLDS, threshold];
    choose.replaceChildren(
      ...names.map((value) =>
        el(
          "option",
          { value, selected: value === threshold },
          Number.isFinite(Number(value)) ? percent(Number(value)) : value,
        ),
      ),
    );
    if (threshold === asked) return;
    asked = threshold;
    load(threshold);
  }
  return { update, leave: () => controller.abort() };
}

function report(found) {
  if (!found.clusters) {
    return [
      notice(
        "No duplicates",
        `None of the ${count(found.documents)} documents repeats another by ${percent(found.threshold)} or more.`,
        { kind: "good" },
      ),
    ];
  }
  const numbers = [
    [found.clusters, "groups"],
    [found.duplicates, "could go"],
    [found.left, "would be left"],
  ];
  const isCut = found.biggest.length < found.clusters;
  return [
    !found.current &&
      el(
        "p",
        { class: "aside" },
        "Documents came or went since; this is being made anew. Load the page again in a while.",
      ),
    el(
      "dl",
      { class: "numbers" },
      numbers.map(([value, name]) => el("div", {}, el("dd", {}, count(value)), el("dt", {}, name))),
    ),
    isCut && el("p", { class: "faint" }, `The ${count(found.biggest.length)} biggest groups:`),
    el("ol", { class: "clusters" }, found.biggest.map(cluster)),
  ].filter(Boolean);
}

function cluster(documents, number) {
  const rows = documents.map(row);
  const rest = rows.slice(FOLDED);
  for (const one of rest) one.hidden = true;
  const unfold = (event) => {
    for (const one of rest) one.hidden = false;
    rest[0].querySelector("a").focus();
    event.target.remove();
  };
  return el(
    "li",
    { class: "cluster" },
    el(
      "h2",
      {},
      el("span", { class: "hidden" }, `Group ${number + 1}, `),
      plural(documents.length, "document"),
    ),
    el("ul", {}, rows),
    rest.length > 0 &&
      el("button", { type: "button", class: "link", on: { click: unfold } }, `${count(rest.length)} more`),
  );
}

function row(one) {
  const isKept = one.action === "keep";
  return el(
    "li",
    { class: `twin ${isKept ? "kept" : ""}` },
    el("span", { class: "twin-word" }, isKept ? "keep" : percent(one.similarity)),
    isKept ? el("span", { class: "bar-place" }) : bar(one.similarity),
    el("a", { href: address.changed({ open: one.id }), data: { item: one.id } }, cut(one.title) || one.id),
    el("small", {}, one.id),
  );
}
