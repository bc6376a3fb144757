"""Whether a document meets a filter, worked out in Python; `sql` says the same to SQLite.

Every condition is either true or false: what is asked of a missing field is false, and `not` turns it round.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

from snuh.filters.lexer import INT64_RANGE
from snuh.filters.tree import LABELS, And, Comparison, Contains, Field, Filter, In, IsNull, Not, Or, Value

ORDERS: dict[str, Callable[[str | float, str | float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def matches(filter_: Filter, record: Mapping[str, object]) -> bool:
    """Tell whether a record meets the filter.

    The record holds the document's `id`, `split` and `labels` beside its metadata, all of them JSON values.
    """
    match filter_:
        case And(parts):
            return all(matches(part, record) for part in parts)
        case Or(parts):
            return any(matches(part, record) for part in parts)
        case Not(part):
            return not matches(part, record)
        case IsNull(field):
            return _find(record, field) is None
        case In(field, values):
            found = _find(record, field)
            return any(_equals(found, value) for value in values)
        case Contains(field, value):
            found = _find(record, field)
            return isinstance(found, list | tuple) and any(_equals(item, value) for item in found)
        case Comparison(field, "=", value):
            return _equals(_find(record, field), value)
        case Comparison(field, order, value):
            return _is_ordered(_find(record, field), order, value)
    raise TypeError(f"expected a filter made by parse, got {filter_!r}")


def _find(record: Mapping[str, object], field: Field) -> object:
    """Return the value of a field; None where it is missing or null, and for no labels at all."""
    found: object = record
    for key in field.keys:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    # JSON has no infinity and no NaN: they are written as null.
    if isinstance(found, float) and not math.isfinite(found):
        return None
    return None if field.keys == (LABELS,) and not found else found


def _equals(found: object, value: Value | None) -> bool:
    if found is None or value is None:
        return found is value
    if isinstance(found, bool) or isinstance(value, bool):
        return found is value
    if isinstance(found, str) or isinstance(value, str):
        return found == value
    return isinstance(found, int | float) and _number(found) == value


def _is_ordered(found: object, order: str, value: Value) -> bool:
    if isinstance(found, bool):
        return False
    if isinstance(found, str) and isinstance(value, str):
        return ORDERS[order](found, value)
    if isinstance(found, int | float) and isinstance(value, int | float):
        return ORDERS[order](_number(found), value)
    return False


def _number(found: int | float) -> int | float:
    """Read a whole number of more than 64 bits as a float, as SQLite does."""
    if isinstance(found, float) or found in INT64_RANGE:
        return found
    try:
        return float(found)
    except OverflowError:
        return math.inf if found > 0 else -math.inf
