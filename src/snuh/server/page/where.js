// Filters in the address and in the server's language.
// in.city="Bern" has.labels="sports" from.year=2010 to.year=2020, and `where` for one that was written by hand.

const CHOSEN = /^(in|has|from|to)\.(.+)$/s;

/** Every filter of an address as [kind, field, value]. */
export function chosen(ask) {
  return [...ask].flatMap(([name, value]) => {
    const found = CHOSEN.exec(name);
    return found && value !== "" ? [[found[1], found[2], value]] : [];
  });
}

export const hasFilters = (ask) => chosen(ask).length > 0 || Boolean((ask.get("where") ?? "").trim());

/** The filter as text, and how many characters stand before the part that was written by hand. */
export function whereOf(ask) {
  const groups = new Map();
  for (const [kind, field, value] of chosen(ask)) {
    const key = kind === "in" || kind === "has" ? `${kind} ${field}` : `${kind} ${field} ${value}`;
    groups.set(key, [...(groups.get(key) ?? []), [kind, field, value]]);
  }
  const conditions = [...groups.values()].map(condition).filter(Boolean);
  const written = (ask.get("where") ?? "").trim();
  if (!written) return { text: conditions.join(" and "), before: 0 };
  if (!conditions.length) return { text: written, before: 0 };
  return { text: [`(${written})`, ...conditions].join(" and "), before: 1 };
}

function condition(group) {
  const [kind, field] = group[0];
  const values = group.map(([, , value]) => literal(value)).filter((value) => value !== null);
  if (!values.length) return null;
  if (kind === "in") return `${field} in (${values.join(", ")})`;
  if (kind === "has") return `(${values.map((value) => `${field} contains ${value}`).join(" or ")})`;
  return `${field} ${kind === "from" ? ">=" : "<="} ${values[0]}`;
}

/** A value, which stands in the address as JSON, as the filter language writes it. */
function literal(json) {
  let value;
  try {
    value = JSON.parse(json);
  } catch {
    return null; // someone changed the address by hand
  }
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value !== "string") return null;
  const escapes = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t" };
  return `"${value.replace(/[\\"\n\r\t]/g, (sign) => escapes[sign])}"`;
}
