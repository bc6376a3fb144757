// Notices for errors, running jobs and empty results, each with a reason and a next step.

import * as api from "./api.js";
import * as router from "./router.js";
import { announce, el } from "./dom.js";
import { promptForToken } from "./token.js";

const TITLES = {
  offline: "The server is unreachable",
  rate: "Too many requests",
  filter: "The filter is invalid",
  "not-found": "Not found",
  unavailable: "Temporarily unavailable",
  token: "A token is required",
  forbidden: "Not allowed",
  internal: "This is a bug in snuh",
};
const RETRY_SECONDS = 3;
const MIN_ESTIMATED = 0.05; // the fraction of a job that must be done to estimate the rest

/** A box with a title, sentences and optional buttons. */
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

/** The notice for an error of the API; `retry` repeats the request. */
export function errorNotice(error, retry) {
  const title = TITLES[error.kind] ?? "The request failed";
  announce(`${title}. ${error.message}`);
  if (error.kind === "token") promptForToken({ wasInvalid: api.hasToken(), onToken: retry });
  const actions = [button("Try again", retry)];
  if (error.kind === "token")
    actions.unshift(button("Enter the token", () => promptForToken({ onToken: retry })));
  const reason = error.kind === "token" ? "This server requires an access token." : error.message;
  const box = notice(title, toSentence(reason), { kind: "error", actions });
  box.dataset.kind = error.kind ?? "other";
  if (error.kind === "offline" || error.kind === "rate") retryLater(box, error, retry);
  return box;
}

/** The notice for a running job, with the fraction done, the seconds so far and an estimate of the rest. */
export function jobNotice(title, reason) {
  const seconds = el("p", { class: "faint" });
  const progress = el("progress", { aria: { label: title } }); // indeterminate until the fraction is known
  const box = notice(title, [reason, progress, seconds], { kind: "running" });
  announce(`${title}. ${reason}`);
  const wait = (elapsed, done = 0) => {
    if (done > 0) progress.value = done;
    const rest = done >= MIN_ESTIMATED && elapsed >= 1 ? `, about ${Math.ceil((elapsed * (1 - done)) / done)} s left` : "";
    seconds.textContent = elapsed >= 1 ? `${Math.round(elapsed)} s so far${rest}` : "";
  };
  return { box, wait };
}

export function unknownCollection(name, collections) {
  const links = collections.map((other) =>
    el(
      "li",
      {},
      el(
        "a",
        { href: router.write({ collection: other.name, view: "search", params: new URLSearchParams() }) },
        other.name,
      ),
    ),
  );
  return notice("No such collection", [
    el("p", {}, "This server has no collection called ", el("b", {}, name), "."),
    el("ul", { class: "plain" }, links),
  ]);
}

/** Count down and retry, while the box is on the page. */
async function retryLater(box, error, retry) {
  const countdown = el("p", { class: "faint" });
  box.append(countdown);
  for (let seconds = error.seconds ?? RETRY_SECONDS; seconds > 0; seconds -= 1) {
    countdown.textContent = `Trying again in ${seconds} s.`;
    await api.pause(1000);
  }
  if (box.isConnected) retry();
}

export const toSentence = (text) =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
