// Filters of the route, converted to a filter expression of the API.
// in.city="Bern" has.labels="sports" from.year=2010 to.year=2020, and `where` for one typed by the user.

const FILTER_PARAM = /^(in|has|from|to)\.(.+)$/s;

/** All filter controls of a route as [kind, field, value]. */
export function activeFilters(params) {
  return [...params].flatMap(([name, value]) => {
    const match = FILTER_PARAM.exec(name);
    return match && value !== "" ? [[match[1], match[2], value]] : [];
  });
}

export const hasFilters = (params) =>
  activeFilters(params).length > 0 || Boolean((params.get("where") ?? "").trim());

/** The filter expression, and the number of characters before the part typed by the user. */
export function filterExpression(params) {
  const groups = new Map();
  for (const [kind, field, value] of activeFilters(params)) {
    const key = kind === "in" || kind === "has" ? `${kind} ${field}` : `${kind} ${field} ${value}`;
    groups.set(key, [...(groups.get(key) ?? []), [kind, field, value]]);
  }
  const conditions = [...groups.values()].map(condition).filter(Boolean);
  const typed = (params.get("where") ?? "").trim();
  if (!typed) return { text: conditions.join(" and "), before: 0 };
  if (!conditions.length) return { text: typed, before: 0 };
  return { text: [`(${typed})`, ...conditions].join(" and "), before: 1 };
}

function condition(group) {
  const [kind, field] = group[0];
  const values = group.map(([, , value]) => literal(value)).filter((value) => value !== null);
  if (!values.length) return null;
  if (kind === "in") return `${field} in (${values.join(", ")})`;
  if (kind === "has") return `(${values.map((value) => `${field} contains ${value}`).join(" or ")})`;
  return `${field} ${kind === "from" ? ">=" : "<="} ${values[0]}`;
}

/** Convert a value of the route, which is JSON, to a literal of the filter language. */
function literal(json) {
  let value;
  try {
    value = JSON.parse(json);
  } catch {
    return null; // the URL may be edited by hand
  }
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value !== "string") return null;
  const escapes = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t" };
  return `"${value.replace(/[\\"\n\r\t]/g, (character) => escapes[character])}"`;
}
