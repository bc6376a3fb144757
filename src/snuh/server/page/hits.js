// Hits, each with its distance, its words and what can be done with it.

import * as address from "./address.js";
import { bar, el, plural } from "./dom.js";
import { facts, headingOf, titleOf } from "./titles.js";

const LONGEST_FACT = 40;

/** A list of hits; arrow keys go through their titles. */
export function hitList({ hits, bits }) {
  return el(
    "ol",
    { class: "hits" },
    hits.map((hit) => hitRow(hit, bits)),
  );
}

function hitRow(hit, bits) {
  const heading = headingOf(hit);
  const words = hit.fragments ? marked(hit.fragments) : [hit.text.slice(0, 300)];
  const title = el(
    "a",
    { href: address.changed({ open: hit.id, why: null }), data: { item: hit.id }, class: "hit-title" },
    heading ?? words,
  );
  const name = titleOf(hit);
  return el(
    "li",
    { class: "hit", data: { id: hit.id } },
    distance(hit.distance, bits, hit.score),
    el(
      "article",
      { class: "hit-body" },
      el("h3", { class: heading ? "" : "as-text" }, title),
      heading && el("p", { class: "snippet" }, words),
      el(
        "div",
        { class: "hit-foot" },
        described(hit),
        el(
          "span",
          { class: "hit-actions" },
          el(
            "a",
            { href: address.changed({ open: hit.id, why: "1" }), aria: { label: `Why this hit: ${name}` } },
            "Why this hit",
          ),
          el(
            "a",
            {
              href: address.changed({ like: hit.id, q: null, open: null, k: null }),
              aria: { label: `More like this: ${name}` },
            },
            "More like this",
          ),
        ),
      ),
    ),
  );
}

/** The distance in words and as a bar: what is filled agrees. */
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
    bar(1 - differing / bits),
    score !== null && el("span", { class: "distance-score" }, `score ${score.toFixed(2)}`),
  );
}

/** Labels and metadata in one line. */
export function described(one, most = 4) {
  return el(
    "ul",
    { class: "tags", aria: { label: "About this document" } },
    (one.labels ?? []).map((label) => el("li", { class: "tag label" }, label)),
    facts(one, { most }).map(([name, value]) =>
      el(
        "li",
        { class: "tag" },
        el("span", { class: "tag-name" }, name),
        value.length > LONGEST_FACT ? `${value.slice(0, LONGEST_FACT)}…` : value,
      ),
    ),
  );
}

/** Pieces of text; those that pulled the codes together or apart are marked, the strong ones more. */
export function marked(fragments) {
  return fragments.map(([text, weight]) => {
    if (Math.abs(weight) < 0.12) return text; // what hardly counts would only distract
    const strength = Math.abs(weight) >= 0.6 ? "strong" : Math.abs(weight) >= 0.25 ? "middle" : "weak";
    return el("mark", { class: `${weight > 0 ? "together" : "apart"} ${strength}` }, text);
  });
}
