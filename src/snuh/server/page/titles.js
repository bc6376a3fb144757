// Titles and metadata of documents.

const MAX_TITLE = 100; // characters

// Metadata fields that hold a title, the best first; job_runner.py has the same list.
const TITLE_FIELDS = ["title", "subject", "headline", "heading", "name", "question"];
const SUBJECT_LINE = /^subject:[ \t]*(\S.*)$/im;
const HEAD_CHARACTERS = 1000; // of a text, in which the subject is looked for

/** A field such as "title", or else the line "Subject: ...", or else the first non-empty line. */
export function titleOf(doc) {
  const title = headingOf(doc) ?? firstLine(doc.text);
  return title.length > MAX_TITLE ? `${title.slice(0, MAX_TITLE - 1).trimEnd()}…` : title || doc.id;
}

/** A title from the server, which truncates it without an ellipsis. */
export const withEllipsis = (title, length = MAX_TITLE) =>
  title.length >= length ? `${title.trimEnd()}…` : title;

/** The beginning of a text, without its title and lines such as "From: ..." before it. */
export function snippetOf(doc, length = 180) {
  const title = titleOf(doc).replace(/…$/, "");
  const text = doc.text.slice(0, 5000).replace(/^(?:[A-Z][\w-]*: .*\n)+/, "").replace(/\s+/g, " ").trim();
  const rest = text.startsWith(title) && text.length > title.length ? text.slice(title.length).replace(/^[\s.:]+/, "") : text;
  return rest.length > length ? `${rest.slice(0, length).trimEnd()}…` : rest;
}

/** A heading that is not the whole text; null if the document is one paragraph. */
export function headingOf(doc) {
  const title = explicitTitle(doc);
  if (title) return title;
  const line = firstLine(doc.text);
  const hasMore = doc.text.trim().length > line.length;
  return line && line.length <= 120 && hasMore ? line : null;
}

/** A title that the document itself declares; null if there is none. */
function explicitTitle({ metadata = {}, text }) {
  const fields = new Map(Object.entries(metadata).map(([name, value]) => [name.toLowerCase(), value]));
  for (const name of TITLE_FIELDS) {
    const value = fields.get(name);
    if (typeof value === "string" && value.trim()) return value.trim();
  }
  return SUBJECT_LINE.exec(text.slice(0, HEAD_CHARACTERS))?.[1].trim() ?? null;
}

const firstLine = (text) =>
  text
    .split("\n")
    .find((line) => line.trim())
    ?.trim() ?? "";

/** Metadata as [name, value] pairs of strings; nested objects are flattened. */
export function metadataPairs(doc, { limit = Infinity } = {}) {
  const pairs = flatten(doc.metadata ?? {}, "").filter(([name]) => name !== "title");
  if (doc.split) pairs.push(["split", doc.split]);
  return pairs.slice(0, limit);
}

function flatten(value, name) {
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
  return Object.entries(value).flatMap(([key, inner]) => flatten(inner, name ? `${name}.${key}` : key));
}
