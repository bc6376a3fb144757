// Entry point: shows the collection and view of the current route.

import * as api from "./api.js";
import * as bits from "./bits.js";
import * as duplicates from "./duplicates.js";
import * as info from "./info.js";
import * as map from "./map.js";
import * as router from "./router.js";
import * as search from "./search.js";
import { showDocument } from "./document.js";
import { el } from "./dom.js";
import { renderHeader, startTheme } from "./header.js";
import { errorNotice, unknownCollection } from "./notices.js";
import { installShortcuts } from "./shortcuts.js";

const views = { search, map, bits, duplicates, info };
const main = document.getElementById("main");
let collections = [];
let current = { collection: null, view: null, update: () => {}, leave: () => {} };

async function start() {
  startTheme();
  installShortcuts();
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the hash holds the route
    main.focus();
  });
  router.onChange(show);
  await load();
}

async function load() {
  main.setAttribute("aria-busy", "true");
  try {
    collections = (await api.collections()).collections;
  } catch (error) {
    showNotice(errorNotice(error, load));
    return;
  } finally {
    main.removeAttribute("aria-busy");
  }
  show();
}

function show() {
  const state = router.read();
  if (!state.collection && collections.length) {
    router.go(router.write({ ...state, collection: collections[0].name }), { replace: true });
    return;
  }
  const collection = collections.find(({ name }) => name === state.collection);
  renderHeader(collections, state);
  if (!collection) {
    leave();
    showNotice(unknownCollection(state.collection, collections));
    return;
  }
  if (current.collection !== state.collection || current.view !== state.view) {
    leave();
    main.className = `view-${state.view}`;
    main.replaceChildren();
    const view = views[state.view].mount(main, collection);
    current = { ...view, collection: state.collection, view: state.view };
    window.scrollTo(0, 0);
  }
  current.update(state);
  showDocument(collection, state);
}

/** Show a notice in place of a view, with a heading for screen readers. */
function showNotice(notice) {
  main.className = "";
  main.replaceChildren(el("h1", { class: "hidden" }, "snuh"), notice);
}

function leave() {
  current.leave();
  current = { collection: null, view: null, update: () => {}, leave: () => {} };
}

start();
