"""Evaluation of filters in Python; `snuh.filters.sql` is the equivalent for SQLite.

Logic is two-valued: a condition on a missing field is false, and `not` of it is true.
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
    """Tell whether a record matches a filter.

    The record has the document's `id`, `split` and `labels` and its metadata, all of them JSON values.
    """
    match filter_:
        case And(parts):
            return all(matches(part, record) for part in parts)
        case Or(parts):
            return any(matches(part, record) for part in parts)
        case Not(part):
            return not matches(part, record)
        case IsNull(field):
            return _value_of(record, field) is None
        case In(field, values):
            actual = _value_of(record, field)
            return any(_equals(actual, value) for value in values)
        case Contains(field, value):
            actual = _value_of(record, field)
            return isinstance(actual, list | tuple) and any(_equals(item, value) for item in actual)
        case Comparison(field, "=", value):
            return _equals(_value_of(record, field), value)
        case Comparison(field, order, value):
            return _compare(_value_of(record, field), order, value)
    raise TypeError(f"expected a filter made by parse, got {filter_!r}")


def _value_of(record: Mapping[str, object], field: Field) -> object:
    """Return the value of a field; None if it is missing or null, and for empty labels."""
    value: object = record
    for key in field.keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    # JSON has no infinity and no NaN: they are stored as null.
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return None if field.keys == (LABELS,) and not value else value


def _equals(actual: object, value: Value | None) -> bool:
    if actual is None or value is None:
        return actual is value
    if isinstance(actual, bool) or isinstance(value, bool):
        return actual is value
    if isinstance(actual, str) or isinstance(value, str):
        return actual == value
    return isinstance(actual, int | float) and _round_large(actual) == value


def _compare(actual: object, order: str, value: Value) -> bool:
    if isinstance(actual, bool):
        return False
    if isinstance(actual, str) and isinstance(value, str):
        return ORDERS[order](actual, value)
    if isinstance(actual, int | float) and isinstance(value, int | float):
        return ORDERS[order](_round_large(actual), value)
    return False


def _round_large(number: int | float) -> int | float:
    """Round an integer of more than 64 bits to a float, as SQLite does."""
    if isinstance(number, float) or number in INT64_RANGE:
        return number
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
