// The search field, which search and map share. What is typed goes into the address; the views listen to that.

import * as address from "./address.js";
import * as api from "./api.js";
import { el, icon } from "./dom.js";
import { titleOf } from "./titles.js";

const WAIT = 140; // milliseconds after the last key

/** The field; `onEnter` is told when someone wants to know again, since documents may have come. */
export function searchBox(collection, { onEnter }) {
  let timer;
  let isTyping = false; // the keys of one go are one step for the back button
  const field = el("input", {
    id: "query",
    type: "search",
    placeholder: `Search ${collection}`,
    autocomplete: "off",
    spellcheck: "false",
    enterkeyhint: "search",
    maxlength: "10000",
    aria: { label: `Search ${collection}`, keyshortcuts: "/" },
    on: { input: () => later(WAIT), keydown: press, blur: () => ((isTyping = false), flush()) },
  });
  const like = el("div", { class: "like", hidden: true });
  const submit = (event) => {
    event.preventDefault();
    const isNew = Boolean(timer);
    flush();
    isTyping = false;
    if (!isNew) onEnter();
  };
  const element = el(
    "form",
    { class: "searchbox", role: "search", on: { submit } },
    el("div", { class: "field" }, icon("search"), like, field, el("kbd", { aria: { hidden: "true" } }, "/")),
  );

  function later(wait) {
    clearTimeout(timer);
    timer = setTimeout(go, wait);
  }
  function flush() {
    if (timer) go();
  }
  function go() {
    clearTimeout(timer);
    timer = undefined;
    const replace = isTyping;
    isTyping = true;
    address.go(address.changed({ q: field.value, like: null, open: null, why: null, k: null }), { replace });
  }
  function press(event) {
    if (event.key !== "Escape" || !(field.value || address.read().ask.get("like"))) return;
    event.preventDefault();
    field.value = "";
    later(0);
  }
  function update(ask) {
    const words = ask.get("q") ?? "";
    if (field.value !== words && !timer) field.value = words;
    showLike(ask.get("like"));
  }
  function showLike(id) {
    like.hidden = !id;
    field.placeholder = id ? "or words" : `Search ${collection}`;
    if (!id || like.dataset.id === id) return;
    like.dataset.id = id;
    const name = el("b", {}, id);
    const away = () => (address.go(address.changed({ like: null, open: null })), field.focus());
    like.replaceChildren(
      el("span", {}, "Like ", name),
      el(
        "button",
        { type: "button", class: "quiet", aria: { label: "Search for words again" }, on: { click: away } },
        icon("close"),
      ),
    );
    api.documentOf(collection, id).then(
      (found) => (name.textContent = titleOf(found)),
      () => {},
    );
  }
  return { element, field, update };
}
