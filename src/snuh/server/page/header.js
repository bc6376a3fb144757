// The header: the collection, the views and the theme.

import * as router from "./router.js";
import { el, icon } from "./dom.js";

const VIEW_NAMES = { search: "Search", map: "Map", bits: "Bits", duplicates: "Duplicates", info: "Info" };
const THEMES = { auto: "system", light: "light", dark: "dark" };
const isSearchParam = (name) =>
  ["q", "like", "where", "order", "k"].includes(name) || /^(in|has|from|to)\./.test(name);

/** Render the header for the current route. */
export function renderHeader(collections, state) {
  document.title = [state.params.get("q"), VIEW_NAMES[state.view], state.collection, "snuh"]
    .filter(Boolean)
    .join(" · ");
  document.getElementById("brand").href = router.write({
    ...state,
    view: "search",
    params: new URLSearchParams(),
  });
  document.getElementById("collection").replaceChildren(collectionSelect(collections, state));
  document.getElementById("views").replaceChildren(
    ...router.VIEWS.map((view) =>
      el(
        "a",
        {
          href: router.changed({}, { view, only: isSearchParam }),
          aria: view === state.view ? { current: "page" } : {},
        },
        VIEW_NAMES[view],
      ),
    ),
  );
}

function collectionSelect(collections, state) {
  if (collections.length < 2) return el("span", { class: "collection-name" }, state.collection);
  const choose = (event) =>
    router.go(router.write({ collection: event.target.value, view: state.view, params: queryOnly(state) }));
  return el(
    "select",
    { aria: { label: "Collection" }, on: { change: choose } },
    collections.map(({ name }) => el("option", { value: name, selected: name === state.collection }, name)),
  );
}

/** The parameters to keep when another collection is chosen: the query. */
function queryOnly(state) {
  return new URLSearchParams([...state.params].filter(([name]) => name === "q"));
}

/** Let the button cycle through the themes, and store the choice. */
export function startTheme() {
  const button = document.getElementById("theme");
  const names = Object.keys(THEMES);
  const update = () => {
    const theme = document.documentElement.dataset.theme ?? "auto";
    button.replaceChildren(icon({ auto: "auto", light: "sun", dark: "moon" }[theme]));
    button.setAttribute("aria-label", `Theme: ${THEMES[theme]}`);
    button.title = button.getAttribute("aria-label");
    window.dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme ?? "auto";
    const next = names[(names.indexOf(theme) + 1) % names.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    localStorage.setItem("snuh-theme", next);
    update();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
  update();
}
