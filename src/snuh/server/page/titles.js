// What to call a document in one line.

const LONGEST = 100;

/** The field "title", or the first line with something on it. */
export function titleOf(one) {
  const title = headingOf(one) ?? firstLine(one.text);
  return title.length > LONGEST ? `${title.slice(0, LONGEST - 1).trimEnd()}…` : title || one.id;
}

/** A title that the server gave: it leaves off what is beyond its limit. */
export const cut = (title) => (title.length >= LONGEST ? `${title.trimEnd()}…` : title);

/** A heading that is not the text itself: null where the document is one long paragraph. */
export function headingOf(one) {
  const named = one.metadata?.title;
  if (typeof named === "string" && named.trim()) return named.trim();
  const line = firstLine(one.text);
  const hasMore = one.text.trim().length > line.length;
  return line && line.length <= 120 && hasMore ? line : null;
}

const firstLine = (text) =>
  text
    .split("\n")
    .find((line) => line.trim())
    ?.trim() ?? "";

/** Metadata as [name, value] pairs of text; objects are taken apart. */
export function facts(one, { most = Infinity } = {}) {
  const pairs = flat(one.metadata ?? {}, "").filter(([name]) => name !== "title");
  if (one.split) pairs.push(["split", one.split]);
  return pairs.slice(0, most);
}

function flat(value, name) {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value))
    return value.length
      ? [
          [
            name,
            value.map((item) => (typeof item === "object" ? JSON.stringify(item) : String(item))).join(", "),
          ],
        ]
      : [];
  if (typeof value !== "object") return [[name, String(value)]];
  return Object.entries(value).flatMap(([key, inner]) => flat(inner, name ? `${name}.${key}` : key));
}
