// Requests to the API. Every failure becomes an ApiError with a kind and a message.

const TOKEN_KEY = "snuh-token";
const POLL_DELAYS = [400, 700, 1000, 1500, 2000]; // milliseconds; the last one is repeated

export class ApiError extends Error {
  constructor(kind, message, details = {}) {
    super(message);
    this.kind = kind;
    this.position = details.position;
    this.seconds = details.seconds;
  }
}

export function storeToken(token) {
  sessionStorage.setItem(TOKEN_KEY, token);
}

export const hasToken = () => sessionStorage.getItem(TOKEN_KEY) !== null;

/** Send a request, a POST if it has a body; return the response and whether its job is still running. */
async function request(path, { body, signal } = {}) {
  const headers = {};
  const token = sessionStorage.getItem(TOKEN_KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    const method = body ? "POST" : "GET";
    response = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("offline", "The server does not respond. Is it still running?");
  }
  const content = await response.json().catch(() => ({}));
  if (response.ok) return { content, isRunning: response.status === 202 };
  const seconds = Number(response.headers.get("Retry-After")) || undefined;
  const message = content.error ?? `The server responded with status ${response.status}.`;
  throw new ApiError(content.kind ?? "other", message, {
    position: content.position,
    seconds,
  });
}

const get = async (path, signal) => (await request(path, { signal })).content;
const post = async (path, body, signal) => (await request(path, { body, signal })).content;
const collectionPath = (name) => `/v1/collections/${encodeURIComponent(name)}`;

export const collections = (signal) => get("/v1/collections", signal);
export const examples = (name, signal) => get(`${collectionPath(name)}/examples`, signal);
export const info = (name, signal) => get(collectionPath(name), signal);
export const facets = (name, signal) => get(`${collectionPath(name)}/facets`, signal);
export const bits = (name, signal) => get(`${collectionPath(name)}/bits?words=12`, signal);
export const search = (name, body, signal) => post(`${collectionPath(name)}/search`, body, signal);
export const explain = (name, body, signal) => post(`${collectionPath(name)}/explain`, body, signal);

/** The number of documents that match a filter. */
export async function countWhere(name, where, signal) {
  const { documents } = await get(`${collectionPath(name)}/count?where=${encodeURIComponent(where)}`, signal);
  return documents;
}

/** The values of a field of the documents on the map, in their order. */
export async function mapValues(name, field, signal) {
  const { values } = await get(`${collectionPath(name)}/map/values?field=${encodeURIComponent(field)}`, signal);
  return values;
}

/** The positions of documents that the map may not have; null for those without a code. */
export async function mapPositions(name, ids, signal) {
  const query = ids.map((id) => `id=${encodeURIComponent(id)}`).join("&");
  return (await get(`${collectionPath(name)}/map/positions?${query}`, signal)).positions;
}

export async function getDocument(name, id, signal) {
  const { documents } = await get(`${collectionPath(name)}/documents?id=${encodeURIComponent(id)}`, signal);
  return documents[0];
}

/** Repeat a request until its job is done; `onWait` gets the seconds that the job has been running and the fraction done. */
export async function waitForJob(name, job, { signal, onWait, query = "" }) {
  for (let attempt = 0; ; attempt += 1) {
    const { content, isRunning } = await request(`${collectionPath(name)}/${job}${query}`, { signal });
    if (!isRunning) return content;
    onWait(content.seconds, content.done);
    await pause(POLL_DELAYS[Math.min(attempt, POLL_DELAYS.length - 1)], signal);
  }
}

/** Wait; an abort rejects the promise at once. */
export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    });
  });
}

const cache = new Map();

/** Send a request once per page load and cache its result; failures are not cached. */
export function cached(name, resource, fetchResource) {
  const key = `${resource} ${name}`;
  if (!cache.has(key))
    cache.set(
      key,
      fetchResource(name).catch((error) => (cache.delete(key), Promise.reject(error))),
    );
  return cache.get(key);
}
