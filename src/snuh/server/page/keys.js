// Keys that work everywhere: / goes to the search field, arrows go through whatever is listed.

import * as address from "./address.js";

const ITEM = "[data-item]";

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "/" && !isTyping(event.target)) {
      event.preventDefault();
      toSearch();
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") move(event);
  });
}

function toSearch() {
  if (!document.getElementById("query")) address.go(address.changed({ open: null }, { view: "search" }));
  const field = document.getElementById("query");
  field.focus();
  field.select();
}

function move(event) {
  const field = document.getElementById("query");
  const items = [...document.querySelectorAll(ITEM)];
  const here = items.indexOf(event.target);
  const isDown = event.key === "ArrowDown";
  if (here < 0 && !(event.target === field && isDown)) return;
  const next = isDown ? items[here + 1] : (items[here - 1] ?? field);
  if (!next) return;
  event.preventDefault();
  next.focus();
  next.closest("li")?.scrollIntoView({ block: "nearest" });
}

function isTyping(element) {
  return element.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");
}
