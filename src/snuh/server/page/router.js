// The state of the page is in the hash of its URL, #/collection/view?q=words&open=document,
// so that it can be shared and the back button works.

export const VIEWS = ["search", "map", "bits", "duplicates", "info"];

/** Parse a hash into collection, view and parameters. */
export function read(hash = location.hash) {
  const [path, query = ""] = split(hash.replace(/^#\/?/, ""));
  const [collection = "", view = ""] = path.split("/").map(decode);
  return {
    collection,
    view: VIEWS.includes(view) ? view : "search",
    params: new URLSearchParams(query),
  };
}

/** Format a route as a hash; empty parameters are omitted. */
export function write({ collection, view, params }) {
  const query = new URLSearchParams([...params].filter(([, value]) => value !== "")).toString();
  return `#/${encodeURIComponent(collection)}/${view}${query ? `?${query}` : ""}`;
}

/** The current hash with some parameters changed: to a value, a list of values, or null to remove it. */
export function changed(changes, { view, only } = {}) {
  const route = read();
  const params = new URLSearchParams([...route.params].filter(([name]) => !only || only(name)));
  for (const [name, value] of Object.entries(changes)) {
    params.delete(name);
    for (const item of Array.isArray(value) ? value : [value]) if (item !== null) params.append(name, item);
  }
  return write({ collection: route.collection, view: view ?? route.view, params });
}

/** Navigate to a hash; `replace` adds no entry to the history. */
export function go(hash, { replace = false } = {}) {
  if (hash === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", hash);
  window.dispatchEvent(new Event("routechange"));
}

/** Call `listener` after every change of the route. */
export function onChange(listener) {
  window.addEventListener("routechange", listener);
  window.addEventListener("popstate", listener);
}

function split(text) {
  const index = text.indexOf("?");
  return index < 0 ? [text] : [text.slice(0, index), text.slice(index + 1)];
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // an invalid escape sequence
  }
}
