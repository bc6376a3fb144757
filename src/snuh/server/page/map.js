// The map view: similar documents close together, with the hits of a search highlighted.

import * as api from "./api.js";
import * as router from "./router.js";
import { drawChart } from "./chart.js";
import { announce, count, el, plural } from "./dom.js";
import { filterCount } from "./filters.js";
import { button, errorNotice, jobNotice, notice } from "./notices.js";
import { searchBox } from "./searchbox.js";
import { searchBody, Searcher } from "./searcher.js";
import { snippetOf, titleOf } from "./titles.js";

const MAX_HIGHLIGHTED = 50; // hits
const MAX_LISTED = 12;
const MAX_PICKED = 100; // listed of an area
const MAX_FILTER = 9_000; // characters of a filter by ids

export function mount(root, collection) {
  const box = searchBox(collection.name, { onEnter: () => (searcher.stop(), update(router.read())) });
  const stage = el("div", { class: "stage" });
  const side = el("div", { class: "map-side" });
  root.append(
    el("h1", { class: "hidden" }, `Map of ${collection.name}`),
    box.element,
    el("div", { class: "map-body" }, stage, side),
  );
  const controller = new AbortController();
  let chart = null;
  let currentHits = null; // they may arrive before the map
  let currentColouring = "null"; // the field that colours the points, and whether with more colours
  let picked = []; // ids of the documents in the selected area
  const colours = el("select", {
    id: "colour",
    on: { change: () => router.go(router.changed({ colour: colours.value, label: null }), { replace: true }) },
  });
  const colourBox = el("div", { class: "colour" }, el("label", { for: "colour" }, "Colour by"), colours);

  const searcher = new Searcher(collection.name, {
    onStart: () => side.setAttribute("aria-busy", "true"),
    onResult: ({ hits }) => highlight(hits),
    onError: (error) => {
      currentHits = null;
      chart?.highlight([]);
      side.removeAttribute("aria-busy");
      side.replaceChildren(errorNotice(error, () => update(router.read())));
    },
  });

  async function load() {
    const wait = jobNotice(
      "Computing the map …",
      "This happens only once. You can search in the meantime.",
    );
    const timer = setTimeout(() => stage.replaceChildren(wait.box), 200);
    try {
      const projection = await api.waitForJob(collection.name, "map", {
        signal: controller.signal,
        onWait: wait.wait,
      });
      clearTimeout(timer);
      if (!projection.ids.length) {
        stage.replaceChildren(
          notice("Nothing to show yet", "This collection has no searchable documents."),
        );
        return;
      }
      chart = drawChart(stage, projection, { readSnippet, onPick: pick });
      await offerColours();
      update(router.read());
      if (currentHits) highlight(currentHits);
    } catch (error) {
      clearTimeout(timer);
      if (!controller.signal.aborted) stage.replaceChildren(errorNotice(error, load));
    }
  }
  const readSnippet = async (id) =>
    snippetOf(await api.cached(collection.name, `document ${id}`, (name) => api.getDocument(name, id)));

  /** Offer the fields of the documents, if they can be read. */
  async function offerColours() {
    const { facets } = await api.cached(collection.name, "facets", api.facets).catch(() => ({ facets: [] }));
    const names = facets.filter(({ name, distinct }) => name !== "labels" && distinct > 1).map(({ name }) => name);
    const options = [["", "labels"], ...names.map((name) => [name, name])];
    colours.replaceChildren(...options.map(([value, name]) => el("option", { value }, name)));
    colourBox.hidden = options.length < 2;
  }
  async function colour(field, hasMore) {
    colours.value = field;
    const colouring = JSON.stringify([field, hasMore]);
    if (!chart || colouring === currentColouring) return;
    currentColouring = colouring;
    const values = field
      ? await api.mapValues(collection.name, field, controller.signal).catch(() => null)
      : null;
    if (colouring !== currentColouring) return;
    chart.colourBy(values?.length === chart.points ? values : null, hasMore); // the map may have been computed again
    chart.selectLabel(router.read().params.get("label"));
  }
  async function highlight(hits) {
    side.removeAttribute("aria-busy");
    currentHits = hits;
    await placeMissing(hits ?? []);
    if (currentHits !== hits) return;
    chart?.highlight(hits ? hits.map((hit) => hit.id) : []);
    showSide();
  }
  /** Place the hits that the map does not have, next to the documents with the nearest codes. */
  async function placeMissing(hits) {
    const missing = chart ? hits.filter(({ id }) => !chart.has(id)) : [];
    if (!missing.length) return;
    const ids = missing.map(({ id }) => id);
    const positions = await api.mapPositions(collection.name, ids, controller.signal).catch(() => []);
    const placed = missing.map((hit, index) => [hit.id, titleOf(hit), positions[index]]);
    chart.place(placed.filter(([id, , position]) => position && !chart.has(id)));
  }
  function pick(ids) {
    picked = ids;
    if (ids.length) announce(`${plural(ids.length, "document")} selected`);
    showSide();
  }
  /** What was selected last, the hits, or the legend. */
  function showSide() {
    if (picked.length) showPicked();
    else if (currentHits) showHits(currentHits);
    else side.replaceChildren(...(chart ? [colourBox, chart.legend] : []));
  }
  function showPicked() {
    const ids = picked.map((id) => JSON.stringify(id)).join(", ");
    const where = `id in (${ids})`;
    const search = el(
      "a",
      { class: "link", href: router.changed({ where }, { view: "search" }) },
      "Search within them",
    );
    side.replaceChildren(
      el("p", { class: "summary" }, `${plural(picked.length, "document")} selected`),
      el(
        "div",
        { class: "actions" },
        where.length <= MAX_FILTER ? search : el("span", { class: "faint" }, "Select fewer to search within them."),
        button("Clear", () => chart.clearPick(), "link"),
      ),
      el(
        "ol",
        { class: "map-picked" },
        picked.slice(0, MAX_PICKED).map((id) => el("li", {}, documentLink(id, chart.titleOf(id)))),
      ),
      picked.length > MAX_PICKED ? el("p", { class: "faint" }, `and ${count(picked.length - MAX_PICKED)} more`) : "",
    );
  }
  function showHits(hits) {
    const shown = hits.filter((hit) => chart?.has(hit.id)).length;
    const filters = filterCount(router.read().params);
    const missing = shown < hits.length ? `, ${count(hits.length - shown)} not on the map` : "";
    const text = chart ? `${plural(shown, "hit")} highlighted${missing}` : plural(hits.length, "hit");
    announce(text);
    side.replaceChildren(
      el("p", { class: "summary" }, text, filters > 0 && ` (with ${plural(filters, "filter")})`),
      el("ol", { class: "map-hits" }, hits.slice(0, MAX_LISTED).map(hitLink)),
      el(
        "a",
        { class: "link", href: router.changed({}, { view: "search" }) },
        "All hits with highlighted words",
      ),
    );
  }
  const hitLink = (hit) =>
    el("li", {}, el("span", { class: "number" }, String(hit.distance)), documentLink(hit.id, titleOf(hit)));
  function documentLink(id, title) {
    const select = () => chart?.select(id);
    return el(
      "a",
      { href: router.changed({ open: id }), data: { item: id }, on: { focus: select, mouseenter: select } },
      title,
    );
  }
  function update({ params }) {
    box.update(params);
    colour(params.get("colour") ?? "", Boolean(params.get("colours")));
    chart?.selectLabel(params.get("label"));
    const point = params.get("point");
    if (point) chart?.goTo(point);
    const body = searchBody(params);
    if (body) {
      searcher.search({ ...body, k: MAX_HIGHLIGHTED });
      return;
    }
    searcher.stop();
    highlight(null);
  }
  load();
  return { update, leave: () => (controller.abort(), searcher.stop(), chart?.leave()) };
}
