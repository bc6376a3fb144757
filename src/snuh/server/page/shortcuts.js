// Keyboard shortcuts of all views: / focuses the search field, arrow keys move through lists.

import * as router from "./router.js";

const ITEM = "[data-item]";

export function installShortcuts() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "/" && !isTyping(event.target)) {
      event.preventDefault();
      focusSearch();
    }
    if (event.key === "ArrowDown" || event.key === "ArrowUp") moveFocus(event);
  });
}

function focusSearch() {
  if (!document.getElementById("query")) router.go(router.changed({ open: null }, { view: "search" }));
  const field = document.getElementById("query");
  field.focus();
  field.select();
}

function moveFocus(event) {
  const field = document.getElementById("query");
  const items = [...document.querySelectorAll(ITEM)];
  const index = items.indexOf(event.target);
  const isDown = event.key === "ArrowDown";
  if (index < 0 && !(event.target === field && isDown)) return;
  const next = isDown ? items[index + 1] : (items[index - 1] ?? field);
  if (!next) return;
  event.preventDefault();
  next.focus();
  next.closest("li")?.scrollIntoView({ block: "nearest" });
}

function isTyping(element) {
  return element.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");
}
