// One document in a drawer: its text, or why it was found.

import * as address from "./address.js";
import * as api from "./api.js";
import { el, icon } from "./dom.js";
import { described } from "./hits.js";
import { refusal } from "./notices.js";
import { facts, headingOf, titleOf } from "./titles.js";
import { whyFound } from "./why.js";

const dialog = document.getElementById("drawer");
let shown = ""; // what the drawer has in it
let opener = null; // where the focus goes back to
let controller = new AbortController();

dialog.addEventListener("close", () => address.go(address.changed({ open: null, why: null })));
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

/** Show the document that the address names, or none. */
export async function showDocument(collection, { ask }) {
  const id = ask.get("open");
  if (!id) {
    close();
    return;
  }
  const key = JSON.stringify([collection.name, id, ask.get("why"), ask.get("q"), ask.get("like")]);
  if (key === shown) return;
  shown = key;
  controller.abort();
  controller = new AbortController();
  const { signal } = controller;
  if (!dialog.open) open();
  const again = () => ((shown = ""), showDocument(collection, address.read()));
  try {
    const one = await api.documentOf(collection.name, id, signal);
    const body = el("div", { class: "drawer-body", id: "drawer-body" });
    const tabs = tabsFor(ask);
    dialog.replaceChildren(head(titleOf(one)), tabs ?? "", body);
    if (tabs)
      Object.entries({
        role: "tabpanel",
        "aria-labelledby": isWhy(ask) ? "tab-why" : "tab-text",
        tabindex: "0",
      }).forEach(([name, value]) => body.setAttribute(name, value));
    if (isWhy(ask)) body.append(await whyFound(collection, ask, one, signal));
    else body.append(...whole(one));
    (tabs?.querySelector("[aria-selected=true]") ?? dialog.querySelector("#drawer-title")).focus();
  } catch (error) {
    if (signal.aborted) return;
    dialog.replaceChildren(head(id), el("div", { class: "drawer-body" }, refusal(error, again)));
  }
}

function open() {
  opener = document.activeElement;
  dialog.replaceChildren(head("…"));
  dialog.showModal();
}

function close() {
  shown = "";
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

const isWhy = (ask) => Boolean(ask.get("why") && wasSought(ask));
const wasSought = (ask) => Boolean(ask.get("q")?.trim() || ask.get("like"));

/** Text or reason, where something was searched for; arrow keys change over. */
function tabsFor(ask) {
  if (!wasSought(ask)) return null;
  const make = (id, name, why) =>
    el(
      "button",
      {
        type: "button",
        role: "tab",
        id,
        tabindex: isWhy(ask) === Boolean(why) ? "0" : "-1",
        aria: { selected: String(isWhy(ask) === Boolean(why)), controls: "drawer-body" },
        on: { click: () => address.go(address.changed({ why }), { replace: true }) },
      },
      name,
    );
  const press = (event) =>
    ["ArrowLeft", "ArrowRight"].includes(event.key) &&
    address.go(address.changed({ why: isWhy(address.read().ask) ? null : "1" }), { replace: true });
  return el(
    "div",
    { class: "tabs", role: "tablist", aria: { label: "About this hit" }, on: { keydown: press } },
    make("tab-text", "Document", null),
    make("tab-why", "Why this hit", "1"),
  );
}

function whole(one) {
  const heading = headingOf(one);
  const isFirstLine = heading && one.text.trimStart().startsWith(heading);
  const text = isFirstLine ? one.text.trimStart().slice(heading.length).trimStart() : one.text;
  const pairs = [["id", one.id], ...facts(one)];
  return [
    described({ labels: one.labels }),
    el("p", { class: "whole-text" }, text),
    el(
      "dl",
      { class: "pairs" },
      pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
    ),
    el(
      "div",
      { class: "actions" },
      el(
        "a",
        {
          class: "button primary",
          href: address.changed(
            { like: one.id, q: null, open: null, why: null, k: null },
            { view: "search" },
          ),
        },
        "More like this",
      ),
      el(
        "a",
        { class: "button", href: address.changed({ point: one.id, open: null, why: null }, { view: "map" }) },
        "Show on the map",
      ),
    ),
  ];
}
