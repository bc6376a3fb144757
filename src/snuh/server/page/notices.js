// What is shown when there is nothing to show: each with a reason and a way on.

import * as address from "./address.js";
import * as api from "./api.js";
import { el, say } from "./dom.js";
import { askForToken } from "./token.js";

const TITLES = {
  gone: "The server is gone",
  rate: "Too many requests",
  "unknown-words": "None of these words is known",
  filter: "The filter cannot be read",
  "not-found": "There is no such thing",
  unavailable: "Not available now",
  token: "A token is needed",
  forbidden: "Not allowed",
  bug: "That is a bug in snuh",
};
const RETRY_SECONDS = 3;

/** A calm box: a title, sentences, and perhaps buttons. */
export function notice(title, sentences, { actions = [], kind = "" } = {}) {
  return el(
    "section",
    { class: `notice ${kind}`.trim() },
    el("h2", {}, title),
    [sentences].flat().map((sentence) => (sentence instanceof Node ? sentence : el("p", {}, sentence))),
    actions.length > 0 && el("div", { class: "actions" }, actions),
  );
}

export const button = (text, click, kind = "") =>
  el("button", { type: "button", class: kind, on: { click } }, text);

/** What the server refused, and how to go on; `again` asks once more. */
export function refusal(error, again) {
  const title = TITLES[error.kind] ?? "That did not work";
  say(`${title}. ${error.message}`);
  if (error.kind === "token") askForToken({ wasWrong: api.hasToken(), onToken: again });
  const actions = [button("Try again", again)];
  if (error.kind === "token")
    actions.unshift(button("Enter the token", () => askForToken({ onToken: again })));
  const reason = error.kind === "token" ? "This server answers those who have one." : error.message;
  const box = notice(title, sentence(reason), { kind: "trouble", actions });
  box.dataset.kind = error.kind ?? "other";
  if (error.kind === "gone" || error.kind === "rate") waitAndRetry(box, error, again);
  return box;
}

/** Being made: what is waited for, and for how long now. */
export function making(what, why) {
  const seconds = el("span", {}, "");
  const box = notice(what, [el("p", {}, why, " ", seconds)], { kind: "making" });
  box.prepend(el("div", { class: "pulse", aria: { hidden: "true" } }));
  say(`${what}. ${why}`);
  return { box, wait: (now) => (seconds.textContent = now >= 1 ? `${Math.round(now)} s so far.` : "") };
}

export function noSuchCollection(name, known) {
  const links = known.map((one) =>
    el(
      "li",
      {},
      el(
        "a",
        { href: address.write({ collection: one.name, view: "search", ask: new URLSearchParams() }) },
        one.name,
      ),
    ),
  );
  return notice("No such collection", [
    el("p", {}, "This server has no collection called ", el("b", {}, name), "."),
    el("ul", { class: "plain" }, links),
  ]);
}

/** Count down and ask again, as long as the box is on the page. */
async function waitAndRetry(box, error, again) {
  const left = el("p", { class: "faint" });
  box.append(left);
  for (let seconds = error.seconds ?? RETRY_SECONDS; seconds > 0; seconds -= 1) {
    left.textContent = `Trying again in ${seconds} s.`;
    await api.pause(1000);
  }
  if (box.isConnected) again();
}

const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
