// Starts the page: which collection and view the address asks for, and what surrounds them.

import * as address from "./address.js";
import * as api from "./api.js";
import * as bits from "./bits.js";
import * as duplicates from "./duplicates.js";
import * as facts from "./facts.js";
import * as map from "./map.js";
import * as search from "./search.js";
import { showDocument } from "./document.js";
import { el } from "./dom.js";
import { drawFrame, startTheme } from "./frame.js";
import { listenToKeys } from "./keys.js";
import { noSuchCollection, refusal } from "./notices.js";

const mounts = { search, map, bits, duplicates, facts };
const main = document.getElementById("main");
let known = []; // the collections
let shown = { collection: null, view: null, update: () => {}, leave: () => {} };

async function start() {
  startTheme();
  listenToKeys();
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address is not for places on the page
    main.focus();
  });
  address.onChange(show);
  await load();
}

async function load() {
  main.setAttribute("aria-busy", "true");
  try {
    known = (await api.collections()).collections;
  } catch (error) {
    instead(refusal(error, load));
    return;
  } finally {
    main.removeAttribute("aria-busy");
  }
  show();
}

function show() {
  const state = address.read();
  if (!state.collection && known.length) {
    address.go(address.write({ ...state, collection: known[0].name }), { replace: true });
    return;
  }
  const collection = known.find((one) => one.name === state.collection);
  drawFrame(known, state);
  if (!collection) {
    leave();
    instead(noSuchCollection(state.collection, known));
    return;
  }
  if (shown.collection !== state.collection || shown.view !== state.view) {
    leave();
    main.className = `view-${state.view}`;
    main.replaceChildren();
    shown = { ...mounts[state.view].mount(main, collection), collection: state.collection, view: state.view };
    window.scrollTo(0, 0);
  }
  shown.update(state);
  showDocument(collection, state);
}

/** Show a notice where a view would be, with a heading for those who go by headings. */
function instead(notice) {
  main.className = "";
  main.replaceChildren(el("h1", { class: "hidden" }, "snuh"), notice);
}

function leave() {
  shown.leave();
  shown = { collection: null, view: null, update: () => {}, leave: () => {} };
}

start();
