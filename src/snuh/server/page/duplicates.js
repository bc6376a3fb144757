// The duplicates view. It deletes nothing.

import * as api from "./api.js";
import * as router from "./router.js";
import { diff } from "./diff.js";
import { announce, bar, count, el, percent, plural } from "./dom.js";
import { errorNotice, jobNotice, notice } from "./notices.js";
import { withEllipsis } from "./titles.js";

const DEFAULT_THRESHOLD = "0.85";
const THRESHOLDS = ["0.7", "0.8", "0.85", "0.9", "0.95", "1"];
const COLLAPSED_ROWS = 6; // of a cluster, shown at first

export function mount(root, collection) {
  const content = el("div", { class: "cluster-list" });
  const select = el("select", {
    id: "threshold",
    on: { change: () => router.go(router.changed({ threshold: select.value })) },
  });
  root.append(
    el(
      "div",
      { class: "view-head" },
      el("h1", {}, "Duplicates"),
      el(
        "p",
        { class: "lead" },
        "Groups of documents with nearly the same text, each with the one to keep. Nothing is deleted here.",
      ),
      el("div", { class: "find-bit" }, el("label", { for: "threshold" }, "Minimum similarity"), select),
    ),
    content,
  );
  let current = null;
  let controller = new AbortController();

  async function load(threshold) {
    controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    const wait = jobNotice(
      "Looking for duplicates …",
      "Every document is compared with those that have similar codes.",
    );
    content.replaceChildren(wait.box);
    try {
      const duplicates = await api.waitForJob(collection.name, "duplicates", {
        signal,
        onWait: wait.wait,
        query: `?threshold=${encodeURIComponent(threshold)}`,
      });
      content.replaceChildren(...report(collection.name, duplicates));
      announce(`${plural(duplicates.clusters, "group")} of duplicates`);
    } catch (error) {
      if (!signal.aborted) content.replaceChildren(errorNotice(error, () => load(threshold)));
    }
  }
  function update({ params }) {
    const threshold = params.get("threshold") ?? DEFAULT_THRESHOLD;
    const names = THRESHOLDS.includes(threshold) ? THRESHOLDS : [...THRESHOLDS, threshold];
    select.replaceChildren(
      ...names.map((value) =>
        el(
          "option",
          { value, selected: value === threshold },
          Number.isFinite(Number(value)) ? percent(Number(value)) : value,
        ),
      ),
    );
    if (threshold === current) return;
    current = threshold;
    load(threshold);
  }
  return { update, leave: () => controller.abort() };
}

function report(name, duplicates) {
  if (!duplicates.clusters) {
    return [
      notice(
        "No duplicates",
        `None of the ${count(duplicates.documents)} documents has a duplicate with a similarity of ${percent(duplicates.threshold)} or more.`,
        { kind: "good" },
      ),
    ];
  }
  const numbers = [
    [duplicates.clusters, "groups"],
    [duplicates.duplicates, "can be dropped"],
    [duplicates.left, "remain"],
  ];
  const isCut = duplicates.largest.length < duplicates.clusters;
  return [
    !duplicates.current &&
      el(
        "p",
        { class: "aside" },
        "The collection has changed since. The duplicates are being computed again: reload the page later.",
      ),
    el(
      "dl",
      { class: "numbers" },
      numbers.map(([value, name]) => el("div", {}, el("dd", {}, count(value)), el("dt", {}, name))),
    ),
    isCut && el("p", { class: "faint" }, `The ${count(duplicates.largest.length)} largest groups:`),
    el("ol", { class: "clusters" }, duplicates.largest.map((documents, index) => cluster(name, documents, index))),
  ].filter(Boolean);
}

function cluster(name, documents, index) {
  const rows = documents.map((doc) => row(name, doc));
  const rest = rows.slice(COLLAPSED_ROWS);
  for (const hidden of rest) hidden.hidden = true;
  const expand = (event) => {
    for (const hidden of rest) hidden.hidden = false;
    rest[0].querySelector("a").focus();
    event.target.remove();
  };
  return el(
    "li",
    { class: "cluster" },
    el(
      "h2",
      {},
      el("span", { class: "hidden" }, `Group ${index + 1}, `),
      plural(documents.length, "document"),
    ),
    el("ul", {}, rows),
    rest.length > 0 &&
      el("button", { type: "button", class: "link", on: { click: expand } }, `${count(rest.length)} more`),
  );
}

function row(name, doc) {
  const isKept = doc.action === "keep";
  const comparison = el("div", { class: "comparison", hidden: true });
  const compare = async () => {
    const isOpen = comparison.hidden;
    comparison.hidden = !isOpen;
    toggle.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen || comparison.hasChildNodes()) return;
    try {
      comparison.replaceChildren(...(await sideBySide(name, doc)));
    } catch (error) {
      comparison.replaceChildren(el("p", {}, error.message));
    }
  };
  const toggle = el(
    "button",
    {
      type: "button",
      class: "link",
      aria: { expanded: "false", label: `Compare ${doc.id} with ${doc.representative}` },
      on: { click: compare },
    },
    "Compare",
  );
  return el(
    "li",
    { class: `duplicate ${isKept ? "kept" : ""}` },
    el("span", { class: "duplicate-score" }, isKept ? "keep" : percent(doc.similarity)),
    isKept ? el("span", { class: "bar-spacer" }) : bar(doc.similarity),
    el(
      "a",
      { href: router.changed({ open: doc.id }), data: { item: doc.id } },
      withEllipsis(doc.title) || doc.id,
    ),
    el("small", {}, doc.id),
    !isKept && [toggle, comparison],
  );
}

/** The texts of the document to keep and of a duplicate; the words that differ are marked. */
async function sideBySide(name, doc) {
  const [kept, other] = await Promise.all([doc.representative, doc.id].map((id) => api.getDocument(name, id)));
  const sides = diff(kept.text, other.text);
  if (kept.text === other.text) return [el("p", { class: "faint" }, "The texts are identical.")];
  return [kept, other].map(({ id }, side) =>
    el(
      "section",
      {},
      el("h3", {}, id),
      el("p", {}, sides[side].map(([text, isCommon]) => (isCommon ? text : el(side ? "ins" : "del", {}, text)))),
    ),
  );
}
