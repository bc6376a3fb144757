// The search field of the search and map views. It updates the route, to which the views react.

import * as api from "./api.js";
import * as router from "./router.js";
import { el, icon } from "./dom.js";
import { titleOf } from "./titles.js";

const DEBOUNCE = 140; // milliseconds

/** The field; `onEnter` is called when Enter repeats a search, since documents may have been added. */
export function searchBox(collection, { onEnter }) {
  let timer;
  let isTyping = false; // consecutive keys are one entry of the history
  const field = el("input", {
    id: "query",
    type: "search",
    placeholder: `Search ${collection}`,
    autocomplete: "off",
    spellcheck: "false",
    enterkeyhint: "search",
    maxlength: "10000",
    aria: { label: `Search ${collection}`, keyshortcuts: "/" },
    on: {
      input: () => schedule(DEBOUNCE),
      keydown: clearOnEscape,
      blur: () => ((isTyping = false), flush()),
    },
  });
  const similarTo = el("div", { class: "similar-to", hidden: true });
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
    el(
      "div",
      { class: "field" },
      icon("search"),
      similarTo,
      field,
      el("kbd", { aria: { hidden: "true" } }, "/"),
    ),
  );

  function schedule(delay) {
    clearTimeout(timer);
    timer = setTimeout(apply, delay);
  }
  function flush() {
    if (timer) apply();
  }
  function apply() {
    clearTimeout(timer);
    timer = undefined;
    const replace = isTyping;
    isTyping = true;
    router.go(router.changed({ q: field.value, like: null, open: null, why: null, k: null }), { replace });
  }
  function clearOnEscape(event) {
    if (event.key !== "Escape" || !(field.value || router.read().params.get("like"))) return;
    event.preventDefault();
    field.value = "";
    schedule(0);
  }
  function update(params) {
    const words = params.get("q") ?? "";
    if (field.value !== words && !timer) field.value = words;
    showSimilarTo(params.get("like"));
  }
  function showSimilarTo(id) {
    similarTo.hidden = !id;
    field.placeholder = id ? "or type words" : `Search ${collection}`;
    if (!id || similarTo.dataset.id === id) return;
    similarTo.dataset.id = id;
    const name = el("b", {}, id);
    const remove = () => (router.go(router.changed({ like: null, open: null })), field.focus());
    similarTo.replaceChildren(
      el("span", {}, "Similar to ", name),
      el(
        "button",
        {
          type: "button",
          class: "quiet",
          aria: { label: "Search for words instead" },
          on: { click: remove },
        },
        icon("close"),
      ),
    );
    api.getDocument(collection, id).then(
      (document) => (name.textContent = titleOf(document)),
      () => {},
    );
  }
  return { element, field, update };
}
