// Searches for the query of the route; a new search cancels the previous one.

import * as api from "./api.js";
import { filterExpression } from "./filterexpression.js";

export const MAX_HITS = 100; // that the server explains at once
export const PAGE_SIZE = 20;
const RERANKS = ["asymmetric", "cosine"]; // of searches by codes

/** The request body for the parameters of a route; null if there is no query. */
export function searchBody(params) {
  const text = (params.get("q") ?? "").trim();
  const id = params.get("like");
  if (!text && !id) return null;
  const body = id ? { id } : { text };
  const where = filterExpression(params);
  if (where.text) body.where = where.text;
  const order = params.get("order") ?? "";
  if (RERANKS.includes(order)) Object.assign(body, { rerank: order }, id ? {} : { mode: "codes" });
  else if (order && !id) body.mode = order;
  return body;
}

/** Sends searches; only the results of the latest one are reported. */
export class Searcher {
  #controller = null;
  #query = null;

  constructor(collection, { onStart, onResult, onError }) {
    Object.assign(this, { collection, onStart, onResult, onError });
  }

  /** Search, unless the query is the same as the last one. */
  async search(body) {
    const query = JSON.stringify(body);
    if (query === this.#query) return;
    this.stop();
    this.#query = query;
    if (!body) return;
    const controller = (this.#controller = new AbortController());
    this.onStart(body);
    try {
      const result = await api.search(this.collection, body, controller.signal);
      if (!controller.signal.aborted) this.onResult(result, body);
    } catch (error) {
      if (controller.signal.aborted) return;
      this.#query = null; // the same query may be sent again
      this.onError(error, body);
    }
  }

  stop() {
    this.#controller?.abort();
    this.#controller = null;
    this.#query = null;
  }
}
