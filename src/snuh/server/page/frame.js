// What surrounds every view: the choice of the collection, the views, the theme.

import * as address from "./address.js";
import { el, icon } from "./dom.js";

const NAMES = { search: "Search", map: "Map", bits: "Bits", duplicates: "Duplicates", facts: "Facts" };
const THEMES = { auto: "as the system has it", light: "light", dark: "dark" };
const isSearch = (name) =>
  ["q", "like", "where", "order", "k"].includes(name) || /^(in|has|from|to)\./.test(name);

/** Draw the header for where the page is. */
export function drawFrame(known, state) {
  document.title = [state.ask.get("q"), NAMES[state.view], state.collection, "snuh"]
    .filter(Boolean)
    .join(" · ");
  document.getElementById("brand").href = address.write({
    ...state,
    view: "search",
    ask: new URLSearchParams(),
  });
  document.getElementById("collection").replaceChildren(chooser(known, state));
  document.getElementById("views").replaceChildren(
    ...address.VIEWS.map((view) =>
      el(
        "a",
        {
          href: address.changed({}, { view, only: isSearch }),
          aria: view === state.view ? { current: "page" } : {},
        },
        NAMES[view],
      ),
    ),
  );
}

function chooser(known, state) {
  if (known.length < 2) return el("span", { class: "collection-name" }, state.collection);
  const choose = (event) =>
    address.go(address.write({ collection: event.target.value, view: state.view, ask: query(state) }));
  return el(
    "select",
    { aria: { label: "Collection" }, on: { change: choose } },
    known.map(({ name }) => el("option", { value: name, selected: name === state.collection }, name)),
  );
}

/** What is worth taking along to another collection: the words. */
function query(state) {
  return new URLSearchParams([...state.ask].filter(([name]) => name === "q"));
}

/** Let the button go through the themes, and remember the choice. */
export function startTheme() {
  const button = document.getElementById("theme");
  const names = Object.keys(THEMES);
  const draw = () => {
    const now = document.documentElement.dataset.theme ?? "auto";
    button.replaceChildren(icon({ auto: "auto", light: "sun", dark: "moon" }[now]));
    button.setAttribute("aria-label", `Theme: ${THEMES[now]}`);
    button.title = button.getAttribute("aria-label");
    window.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    const now = document.documentElement.dataset.theme ?? "auto";
    const next = names[(names.indexOf(now) + 1) % names.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    localStorage.setItem("snuh-theme", next);
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}
