// Runs before anything is drawn, so that the page does not flash in the other theme.
"use strict";
(() => {
  const kept = (() => {
    try {
      return localStorage.getItem("snuh-theme");
    } catch {
      return null; // storage may be switched off
    }
  })();
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
