// Runs before the first paint, so that the page does not flash in the other theme.
"use strict";
(() => {
  const stored = (() => {
    try {
      return localStorage.getItem("snuh-theme");
    } catch {
      return null; // storage may be disabled
    }
  })();
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
})();
