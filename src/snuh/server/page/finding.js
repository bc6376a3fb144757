// One search: what the address asks for, sent to the server, the one before given up.

import * as api from "./api.js";
import { whereOf } from "./where.js";

export const MOST = 100; // hits that the server explains at once
export const STEP = 20;

/** What a search needs to know from the address; null where nothing is asked. */
export function askOf(ask) {
  const text = (ask.get("q") ?? "").trim();
  const id = ask.get("like");
  if (!text && !id) return null;
  const body = id ? { id } : { text };
  const where = whereOf(ask);
  if (where.text) body.where = where.text;
  if (ask.get("order")) body.rerank = ask.get("order");
  return body;
}

/** Searches one after the other; only the newest is ever answered. */
export class Finder {
  #controller = null;
  #asked = null;

  constructor(collection, { onStart, onFound, onRefused }) {
    Object.assign(this, { collection, onStart, onFound, onRefused });
  }

  /** Search, unless the same was asked last. */
  async find(body) {
    const asked = JSON.stringify(body);
    if (asked === this.#asked) return;
    this.stop();
    this.#asked = asked;
    if (!body) return;
    const controller = (this.#controller = new AbortController());
    this.onStart(body);
    try {
      const found = await api.search(this.collection, body, controller.signal);
      if (!controller.signal.aborted) this.onFound(found, body);
    } catch (error) {
      if (controller.signal.aborted) return;
      this.#asked = null; // the same may be asked again
      this.onRefused(error, body);
    }
  }

  stop() {
    this.#controller?.abort();
    this.#controller = null;
    this.#asked = null;
  }
}
