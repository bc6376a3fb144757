// The map view: similar documents close together, with the hits of a search highlighted.

import * as api from "./api.js";
import * as router from "./router.js";
import { drawChart } from "./chart.js";
import { announce, count, el, plural } from "./dom.js";
import { filterCount } from "./filters.js";
import { errorNotice, jobNotice, notice } from "./notices.js";
import { searchBox } from "./searchbox.js";
import { searchBody, Searcher } from "./searcher.js";
import { titleOf } from "./titles.js";

const MAX_HIGHLIGHTED = 50; // hits
const MAX_LISTED = 12;

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
  let currentField = ""; // that colours the points
  const colours = el("select", {
    id: "colour",
    on: { change: () => router.go(router.changed({ colour: colours.value, label: null }), { replace: true }) },
  });
  const colourBox = el("div", { class: "colour" }, el("label", { for: "colour" }, "Colour by"), colours);

  const searcher = new Searcher(collection.name, {
    onStart: () => side.setAttribute("aria-busy", "true"),
    onResult: ({ hits }) => highlight(hits),
    onError: (error) => {
      highlight(null);
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
      chart = drawChart(stage, projection);
      await offerColours();
      update(router.read());
      if (currentHits) highlight(currentHits);
    } catch (error) {
      clearTimeout(timer);
      if (!controller.signal.aborted) stage.replaceChildren(errorNotice(error, load));
    }
  }
  /** Offer the fields of the documents, if they can be read. */
  async function offerColours() {
    const { facets } = await api.cached(collection.name, "facets", api.facets).catch(() => ({ facets: [] }));
    const names = facets.filter(({ name, distinct }) => name !== "labels" && distinct > 1).map(({ name }) => name);
    const options = [["", "labels"], ...names.map((name) => [name, name])];
    colours.replaceChildren(...options.map(([value, name]) => el("option", { value }, name)));
    colourBox.hidden = options.length < 2;
  }
  async function colour(field) {
    colours.value = field;
    if (!chart || field === currentField) return;
    currentField = field;
    const values = field
      ? await api.mapValues(collection.name, field, controller.signal).catch(() => null)
      : null;
    if (field !== currentField) return;
    chart.colourBy(values?.length === chart.points ? values : null); // the map may have been computed again
    chart.selectLabel(router.read().params.get("label"));
  }
  function highlight(hits) {
    side.removeAttribute("aria-busy");
    currentHits = hits;
    chart?.highlight(hits ? hits.map((hit) => hit.id) : []);
    if (!hits) return;
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
  function hitLink(hit) {
    const select = () => chart?.select(hit.id);
    return el(
      "li",
      {},
      el("span", { class: "number" }, String(hit.distance)),
      el(
        "a",
        {
          href: router.changed({ open: hit.id }),
          data: { item: hit.id },
          on: { focus: select, mouseenter: select },
        },
        titleOf(hit),
      ),
    );
  }
  function update({ params }) {
    box.update(params);
    colour(params.get("colour") ?? "");
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
    side.replaceChildren(...(chart ? [colourBox, chart.legend] : []));
  }
  load();
  return { update, leave: () => (controller.abort(), searcher.stop(), chart?.leave()) };
}
