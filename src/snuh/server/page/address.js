// What the page shows is written in its address: #/collection/view?q=words&open=document
// so every state can be shared, and the back button works.

export const VIEWS = ["search", "map", "bits", "duplicates", "facts"];

/** Read an address: the collection, the view and the rest as pairs in their order. */
export function read(hash = location.hash) {
  const [path, query = ""] = split(hash.replace(/^#\/?/, ""));
  const [collection = "", view = ""] = path.split("/").map(decoded);
  return {
    collection,
    view: VIEWS.includes(view) ? view : "search",
    ask: new URLSearchParams(query),
  };
}

/** Write an address; values that are empty are left out. */
export function write({ collection, view, ask }) {
  const kept = new URLSearchParams([...ask].filter(([, value]) => value !== ""));
  const query = kept.toString();
  return `#/${encodeURIComponent(collection)}/${view}${query ? `?${query}` : ""}`;
}

/** The address of now with some values changed: a value, a list of values, or null to drop it. */
export function changed(changes, { view, only } = {}) {
  const now = read();
  const ask = new URLSearchParams(only ? [...now.ask].filter(([name]) => only(name)) : [...now.ask]);
  for (const [name, value] of Object.entries(changes)) {
    ask.delete(name);
    for (const one of Array.isArray(value) ? value : [value]) if (one !== null) ask.append(name, one);
  }
  return write({ collection: now.collection, view: view ?? now.view, ask });
}

/** Go to an address; `replace` leaves no step behind for the back button. */
export function go(address, { replace = false } = {}) {
  if (address === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", address);
  window.dispatchEvent(new Event("addresschange"));
}

/** Call whenever the address becomes another one, however that came about. */
export function onChange(listen) {
  window.addEventListener("addresschange", listen);
  window.addEventListener("popstate", listen);
}

function split(text) {
  const place = text.indexOf("?");
  return place < 0 ? [text] : [text.slice(0, place), text.slice(place + 1)];
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray percent sign
  }
}
