// The list of hits, each with its distance, highlighted text and links.

import * as router from "./router.js";
import { bar, el, plural } from "./dom.js";
import { headingOf, metadataPairs, titleOf } from "./titles.js";

const MAX_VALUE = 40; // characters of a metadata value

/** A list of hits; arrow keys move through their titles. */
export function hitList({ hits, bits }) {
  return el(
    "ol",
    { class: "hits" },
    hits.map((hit) => hitRow(hit, bits)),
  );
}

function hitRow(hit, bits) {
  const heading = headingOf(hit);
  const snippet = hit.fragments ? highlight(hit.fragments) : [hit.text.slice(0, 300)];
  const title = el(
    "a",
    { href: router.changed({ open: hit.id, why: null }), data: { item: hit.id }, class: "hit-title" },
    heading ?? snippet,
  );
  const name = titleOf(hit);
  return el(
    "li",
    { class: "hit", data: { id: hit.id } },
    hasCode(hit) ? distance(hit.distance, bits, hit.score) : wordScore(hit),
    el(
      "article",
      { class: "hit-body" },
      el("h3", { class: heading ? "" : "as-text" }, title),
      heading && el("p", { class: "snippet" }, snippet),
      el(
        "div",
        { class: "hit-foot" },
        tagList(hit),
        el(
          "span",
          { class: "hit-actions" },
          el(
            "a",
            { href: router.changed({ open: hit.id, why: "1" }), aria: { label: `Why this hit: ${name}` } },
            "Why this hit",
          ),
          el(
            "a",
            {
              href: router.changed({ like: hit.id, q: null, open: null, k: null }),
              aria: { label: `More like this: ${name}` },
            },
            "More like this",
          ),
        ),
      ),
    ),
  );
}

/** Whether the code had a part in the search: not if only words were searched, or known. */
const hasCode = (hit) => !hit.matched || (hit.code_score ?? null) !== null;

/** The score of a hit that was found by its words alone. */
function wordScore({ matched, score }) {
  return el(
    "div",
    { class: "distance", title: `Found by ${matched.join(", ")}` },
    el("span", { class: "distance-number" }, String(matched.length)),
    el("span", { class: "distance-words" }, matched.length === 1 ? " word found" : " words found"),
    el("span", { class: "distance-score" }, `score ${score.toFixed(2)}`),
  );
}

/** The distance as text and as a bar: full at 0, empty where unrelated codes are, at half of the bits. */
export function distance(differing, bits, score = null) {
  return el(
    "div",
    { class: "distance", title: `${differing} of ${plural(bits, "bit")} differ` },
    el("span", { class: "distance-number" }, String(differing)),
    el(
      "span",
      { class: "distance-words" },
      el("span", { class: "hidden" }, ` of ${bits}`),
      differing === 1 ? " bit differs" : " bits differ",
    ),
    bar(1 - differing / (bits / 2)),
    score !== null && el("span", { class: "distance-score" }, `score ${score.toFixed(2)}`),
  );
}

/** Labels and metadata on one line. */
export function tagList(doc, limit = 4) {
  return el(
    "ul",
    { class: "tags", aria: { label: "About this document" } },
    (doc.labels ?? []).map((label) => el("li", { class: "tag label" }, label)),
    metadataPairs(doc, { limit }).map(([name, value]) =>
      el(
        "li",
        { class: "tag" },
        el("span", { class: "tag-name" }, name),
        value.length > MAX_VALUE ? `${value.slice(0, MAX_VALUE)}…` : value,
      ),
    ),
  );
}

/** Text with two kinds of words highlighted: those of the query, and those that moved the code, by strength. */
export function highlight(fragments) {
  return fragments.map(({ text, weight = 0, matched = false }) => {
    if (!weight && !matched) return text;
    const strength = Math.abs(weight) >= 0.6 ? "strong" : Math.abs(weight) >= 0.25 ? "middle" : "weak";
    const kinds = [matched && "matched", weight && `${weight > 0 ? "together" : "apart"} ${strength}`];
    return el("mark", { class: kinds.filter(Boolean).join(" ") }, text);
  });
}

/** What the highlights of hits mean; only the kinds that occur. */
export function highlightLegend(hits) {
  const fragments = hits.flatMap((hit) => hit.fragments ?? []);
  const kinds = [
    [fragments.some(({ matched }) => matched), "matched", "word of your query"],
    [fragments.some(({ weight }) => weight > 0), "together strong", "made the codes agree"],
    [fragments.some(({ weight }) => weight < 0), "apart strong", "made them differ"],
  ].filter(([occurs]) => occurs);
  return el(
    "p",
    { class: "highlight-legend" },
    kinds.map(([, kind, name]) =>
      el("span", {}, el("mark", { class: kind, aria: { hidden: "true" } }, "word"), ` ${name}`),
    ),
  );
}
