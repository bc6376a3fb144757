// A document in a drawer: its text, or the explanation of the hit.

import * as api from "./api.js";
import * as router from "./router.js";
import { el, icon } from "./dom.js";
import { tagList } from "./hits.js";
import { errorNotice } from "./notices.js";
import { headingOf, metadataPairs, titleOf } from "./titles.js";
import { renderExplanation } from "./why.js";

const dialog = document.getElementById("drawer");
let currentKey = ""; // of the content
let opener = null; // gets the focus back
let controller = new AbortController();

dialog.addEventListener("close", () => router.go(router.changed({ open: null, why: null })));
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

/** Show the document of the route, or close the drawer. */
export async function showDocument(collection, { params }) {
  const id = params.get("open");
  if (!id) {
    close();
    return;
  }
  const key = JSON.stringify([collection.name, id, params.get("why"), params.get("q"), params.get("like")]);
  if (key === currentKey) return;
  currentKey = key;
  controller.abort();
  controller = new AbortController();
  const { signal } = controller;
  if (!dialog.open) open();
  const retry = () => ((currentKey = ""), showDocument(collection, router.read()));
  try {
    const doc = await api.getDocument(collection.name, id, signal);
    const body = el("div", { class: "drawer-body", id: "drawer-body" });
    const tabs = tabsFor(params);
    dialog.replaceChildren(head(titleOf(doc)), tabs ?? "", body);
    if (tabs)
      Object.entries({
        role: "tabpanel",
        "aria-labelledby": showsExplanation(params) ? "tab-why" : "tab-text",
        tabindex: "0",
      }).forEach(([name, value]) => body.setAttribute(name, value));
    if (showsExplanation(params)) body.append(await renderExplanation(collection, params, doc, signal));
    else body.append(...documentContent(doc, await queryWords(collection, params, doc, signal)));
    (tabs?.querySelector("[aria-selected=true]") ?? dialog.querySelector("#drawer-title")).focus();
  } catch (error) {
    if (signal.aborted) return;
    dialog.replaceChildren(head(id), el("div", { class: "drawer-body" }, errorNotice(error, retry)));
  }
}

function open() {
  opener = document.activeElement;
  dialog.replaceChildren(head("…"));
  dialog.showModal();
}

function close() {
  currentKey = "";
  controller.abort();
  if (!dialog.open) return;
  dialog.close();
  const item = opener?.dataset?.item;
  (opener?.isConnected
    ? opener
    : item && document.querySelector(`[data-item="${CSS.escape(item)}"]`)
  )?.focus?.();
}

function head(title) {
  return el(
    "div",
    { class: "drawer-head" },
    el("h2", { id: "drawer-title", tabindex: "-1" }, title),
    el(
      "button",
      { type: "button", class: "quiet", aria: { label: "Close" }, on: { click: () => dialog.close() } },
      icon("close"),
    ),
  );
}

const showsExplanation = (params) => Boolean(params.get("why") && hasQuery(params));
const hasQuery = (params) => Boolean(params.get("q")?.trim() || params.get("like"));

/** Tabs for the text and the explanation, if there is a query; arrow keys switch. */
function tabsFor(params) {
  if (!hasQuery(params)) return null;
  const tab = (id, name, why) =>
    el(
      "button",
      {
        type: "button",
        role: "tab",
        id,
        tabindex: showsExplanation(params) === Boolean(why) ? "0" : "-1",
        aria: { selected: String(showsExplanation(params) === Boolean(why)), controls: "drawer-body" },
        on: { click: () => router.go(router.changed({ why }), { replace: true }) },
      },
      name,
    );
  const switchTab = (event) =>
    ["ArrowLeft", "ArrowRight"].includes(event.key) &&
    router.go(router.changed({ why: showsExplanation(router.read().params) ? null : "1" }), {
      replace: true,
    });
  return el(
    "div",
    { class: "tabs", role: "tablist", aria: { label: "About this hit" }, on: { keydown: switchTab } },
    tab("tab-text", "Document", null),
    tab("tab-why", "Why this hit", "1"),
  );
}

/** A pattern of the words of the query that a document has, in the forms in which it has them. */
async function queryWords(collection, params, doc, signal) {
  const text = params.get("q")?.trim();
  if (!text) return null;
  const words = text.match(/[\p{L}\p{N}]{4,}/gu) ?? []; // also those that the model does not know
  const explanation = await api.explain(collection.name, { text, id: doc.id }, signal).catch(() => null);
  if (explanation) {
    const known = new Set(explanation.query_words.map(({ word }) => word));
    const characters = [...doc.text]; // code points, as the spans count
    for (const { word, spans } of explanation.hit_words)
      if (known.has(word)) words.push(...spans.map(([from, to]) => characters.slice(from, to).join("")));
  }
  const patterns = [...new Set(words.map((word) => word.toLowerCase()))].map((word) =>
    word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"),
  );
  return patterns.length ? new RegExp(`(?<![\\p{L}\\p{N}])(${patterns.join("|")})(?![\\p{L}\\p{N}])`, "giu") : null;
}

/** Text with its words that match a pattern marked. */
const withMarks = (text, pattern) =>
  pattern ? text.split(pattern).map((piece, index) => (index % 2 ? el("mark", { class: "matched" }, piece) : piece)) : text;

/** Text whose web addresses are links; other schemes, such as javascript, stay text. */
function withLinks(text, pattern = null) {
  const pieces = text.split(/(\bhttps?:\/\/[^\s<>"']*[^\s<>"'.,;:!?)\]}])/i);
  return pieces.map((piece, index) =>
    index % 2 ? el("a", { href: piece, target: "_blank", rel: "noopener noreferrer" }, piece) : withMarks(piece, pattern),
  );
}

function documentContent(doc, pattern) {
  const heading = headingOf(doc);
  const isFirstLine = heading && doc.text.trimStart().startsWith(heading);
  const text = isFirstLine ? doc.text.trimStart().slice(heading.length).trimStart() : doc.text;
  const pairs = [["id", doc.id], ...metadataPairs(doc)];
  return [
    tagList({ labels: doc.labels }),
    el("p", { class: "whole-text" }, withLinks(text, pattern)),
    el(
      "dl",
      { class: "pairs" },
      pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, withLinks(value)))),
    ),
    el(
      "div",
      { class: "actions" },
      el(
        "a",
        {
          class: "button primary",
          href: router.changed(
            { like: doc.id, q: null, open: null, why: null, k: null },
            { view: "search" },
          ),
        },
        "More like this",
      ),
      el(
        "a",
        { class: "button", href: router.changed({ point: doc.id, open: null, why: null }, { view: "map" }) },
        "Show on the map",
      ),
    ),
  ];
}
