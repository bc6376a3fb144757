// The server's answers. Whatever goes wrong becomes a Refused with a kind and one sentence.

const KEY = "snuh-token";
const POLL = [400, 700, 1000, 1500, 2000]; // milliseconds between questions, the last one for ever

export class Refused extends Error {
  constructor(kind, sentence, more = {}) {
    super(sentence);
    this.kind = kind;
    this.position = more.position;
    this.seconds = more.seconds;
  }
}

export function keepToken(token) {
  sessionStorage.setItem(KEY, token);
}

export const hasToken = () => sessionStorage.getItem(KEY) !== null;

/** Ask the server; `body` makes it a POST. Returns the answer and whether it is still being made. */
async function ask(path, { body, signal } = {}) {
  const headers = {};
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    const method = body ? "POST" : "GET";
    response = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("gone", "The server does not answer. Is it still running?");
  }
  const told = await response.json().catch(() => ({}));
  if (response.ok) return { told, making: response.status === 202 };
  const seconds = Number(response.headers.get("Retry-After")) || undefined;
  throw new Refused(told.kind ?? "other", told.error ?? `The server answered ${response.status}.`, {
    position: told.position,
    seconds,
  });
}

const get = async (path, signal) => (await ask(path, { signal })).told;
const post = async (path, body, signal) => (await ask(path, { body, signal })).told;
const place = (name) => `/v1/collections/${encodeURIComponent(name)}`;

export const collections = (signal) => get("/v1/collections", signal);
export const info = (name, signal) => get(place(name), signal);
export const fields = (name, signal) => get(`${place(name)}/fields`, signal);
export const bits = (name, signal) => get(`${place(name)}/bits?words=12`, signal);
export const search = (name, body, signal) => post(`${place(name)}/search`, body, signal);
export const explain = (name, body, signal) => post(`${place(name)}/explain`, body, signal);
export const health = (signal) => get("/health", signal);

export async function documentOf(name, id, signal) {
  const found = await get(`${place(name)}/documents?id=${encodeURIComponent(id)}`, signal);
  return found.documents[0];
}

/** Ask for what takes long until it is there; `onWait` hears for how many seconds it has been in the making. */
export async function made(name, what, { signal, onWait, query = "" }) {
  for (let tries = 0; ; tries += 1) {
    const { told, making } = await ask(`${place(name)}/${what}${query}`, { signal });
    if (!making) return told;
    onWait(told.seconds);
    await pause(POLL[Math.min(tries, POLL.length - 1)], signal);
  }
}

/** Wait; an abort ends the wait at once. */
export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("left", "AbortError"));
    });
  });
}

const kept = new Map();

/** Ask once for what does not change while someone looks; a failure is not kept. */
export function once(name, what, ask) {
  const key = `${what} ${name}`;
  if (!kept.has(key))
    kept.set(
      key,
      ask(name).catch((error) => (kept.delete(key), Promise.reject(error))),
    );
  return kept.get(key);
}
