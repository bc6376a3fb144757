// The map: similar documents near each other, those that a search finds alight.

import * as address from "./address.js";
import * as api from "./api.js";
import { drawChart } from "./chart.js";
import { count, el, plural, say } from "./dom.js";
import { filterCount } from "./filters.js";
import { Finder, askOf } from "./finding.js";
import { making, notice, refusal } from "./notices.js";
import { searchBox } from "./searchbox.js";
import { titleOf } from "./titles.js";

const LIT = 50; // hits that light up
const LISTED = 12;

export function mount(root, collection) {
  const box = searchBox(collection.name, { onEnter: () => (finder.stop(), update(address.read())) });
  const stage = el("div", { class: "stage" });
  const side = el("div", { class: "map-side" });
  root.append(
    el("h1", { class: "hidden" }, `Map of ${collection.name}`),
    box.element,
    el("div", { class: "map-body" }, stage, side),
  );
  const controller = new AbortController();
  let chart = null;
  let found = null; // the hits; they may be there before the map is

  const finder = new Finder(collection.name, {
    onStart: () => side.setAttribute("aria-busy", "true"),
    onFound: ({ hits }) => light(hits),
    onRefused: (error) => {
      light(null);
      side.replaceChildren(refusal(error, () => update(address.read())));
    },
  });

  async function load() {
    const wait = making(
      "The map is being made …",
      "This happens once; the next time it is there at once. You can search meanwhile.",
    );
    const slow = setTimeout(() => stage.replaceChildren(wait.box), 200);
    try {
      const told = await api.made(collection.name, "map", { signal: controller.signal, onWait: wait.wait });
      clearTimeout(slow);
      if (!told.ids.length) {
        stage.replaceChildren(
          notice("Nothing to place yet", "This collection has no document that could be found."),
        );
        return;
      }
      chart = drawChart(stage, told);
      update(address.read());
      if (found) light(found);
    } catch (error) {
      clearTimeout(slow);
      if (!controller.signal.aborted) stage.replaceChildren(refusal(error, load));
    }
  }
  function light(hits) {
    side.removeAttribute("aria-busy");
    found = hits;
    chart?.light(hits ? hits.map((hit) => hit.id) : []);
    if (!hits) return;
    const there = hits.filter((hit) => chart?.has(hit.id)).length;
    const filters = filterCount(address.read().ask);
    const away = there < hits.length ? `, ${count(hits.length - there)} not on the map` : "";
    const words = chart ? `${plural(there, "hit")} alight${away}` : plural(hits.length, "hit");
    say(words);
    side.replaceChildren(
      el("p", { class: "summary" }, words, filters > 0 && ` (with ${plural(filters, "filter")})`),
      el("ol", { class: "map-hits" }, hits.slice(0, LISTED).map(listed)),
      el("a", { class: "link", href: address.changed({}, { view: "search" }) }, "All hits with their words"),
    );
  }
  function listed(hit) {
    const point = () => chart?.point(hit.id);
    return el(
      "li",
      {},
      el("span", { class: "number" }, String(hit.distance)),
      el(
        "a",
        {
          href: address.changed({ open: hit.id }),
          data: { item: hit.id },
          on: { focus: point, mouseenter: point },
        },
        titleOf(hit),
      ),
    );
  }
  function update({ ask }) {
    box.update(ask);
    chart?.only(ask.get("label"));
    const point = ask.get("point");
    if (point) chart?.goTo(point);
    const body = askOf(ask);
    if (body) {
      finder.find({ ...body, k: LIT });
      return;
    }
    finder.stop();
    light(null);
    side.replaceChildren(...(chart ? [chart.legend] : []));
  }
  load();
  return { update, leave: () => (controller.abort(), finder.stop(), chart?.leave()) };
}
