"""The syntax tree of filters, and what it means: `matches` evaluates it in Python.

`str` of a node is a filter that parses to an equal node. Negated operators have no node of their own:
`a != 1` is `Not(Comparison(a, "=", 1))`. Logic is two-valued: a condition on a missing field is false, and
`not` of it is true. `snuh.filters.sql` is the equivalent of `matches` for SQLite.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Value: TypeAlias = str | int | float | bool
Operator: TypeAlias = Literal["=", "<", "<=", ">", ">="]

INT64_RANGE = range(-(2**63), 2**63)  # other integers are read as floats, as SQLite does in JSON

# A field with one of these names is written in backticks.
KEYWORDS = frozenset({"and", "or", "not", "in", "is", "contains", "null", "true", "false"})
# The fields that every document has.
ID, SPLIT, LABELS, TEXT = "id", "split", "labels", "text"


@dataclass(frozen=True, slots=True)
class Field:
    """A path of keys into nested objects."""

    keys: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(_key_text(key) for key in self.keys)


class Filter(ABC):
    """A condition that a document matches or not."""

    __slots__ = ()

    def fields(self) -> tuple[str, ...]:
        """Return the names of the fields in the filter, each once, in order of appearance."""
        return tuple(dict.fromkeys(str(field) for field in self.walk()))

    @abstractmethod
    def walk(self) -> Iterator[Field]:
        """Yield the field of each condition, from left to right."""


@dataclass(frozen=True, slots=True)
class Condition(Filter):
    """A condition on one field."""

    field: Field

    def walk(self) -> Iterator[Field]:
        """Yield the field."""
        yield self.field


@dataclass(frozen=True, slots=True)
class Comparison(Condition):
    """The field compares like this with the value, and both have the same type."""

    operator: Operator
    value: Value

    def __str__(self) -> str:
        return f"{self.field} {self.operator} {_value_text(self.value)}"


@dataclass(frozen=True, slots=True)
class In(Condition):
    """The field equals one of the values; None stands for null."""

    values: tuple[Value | None, ...]

    def __str__(self) -> str:
        return f"{self.field} in ({', '.join(_value_text(value) for value in self.values)})"


@dataclass(frozen=True, slots=True)
class IsNull(Condition):
    """The field is missing or null."""

    def __str__(self) -> str:
        return f"{self.field} is null"


@dataclass(frozen=True, slots=True)
class Contains(Condition):
    """The field is a list, and one of its items equals the value."""

    value: Value

    def __str__(self) -> str:
        return f"{self.field} contains {_value_text(self.value)}"


@dataclass(frozen=True, slots=True)
class Not(Filter):
    """The part is false."""

    part: Filter

    def __str__(self) -> str:
        match self.part:
            case Comparison(field, "=", value):
                return f"{field} != {_value_text(value)}"
            case IsNull(field):
                return f"{field} is not null"
            case And() | Or():
                return f"not ({self.part})"
        return f"not {self.part}"

    def walk(self) -> Iterator[Field]:
        """Yield the fields of the part."""
        yield from self.part.walk()


@dataclass(frozen=True, slots=True)
class Compound(Filter):
    """Two or more parts joined by `and` or `or`."""

    parts: tuple[Filter, ...]

    def walk(self) -> Iterator[Field]:
        """Yield the fields of all parts."""
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True, slots=True)
class And(Compound):
    """All parts are true."""

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, Compound) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or(Compound):
    """At least one part is true."""

    def __str__(self) -> str:
        return " or ".join(f"({part})" if isinstance(part, Or) else str(part) for part in self.parts)


def _key_text(key: str) -> str:
    if key.isidentifier() and key.lower() not in KEYWORDS:
        return key
    return "`" + key.replace("`", "``") + "`"


def _value_text(value: Value | None) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


# A condition that no document could match is refused rather than evaluated to false.


def field_problem(field: Field) -> str:
    """Return the reason why a filter cannot use this field, or ''."""
    name = field.keys[0]
    if name == TEXT:
        return "the text of a document cannot be filtered on: search for it, or filter on other fields"
    if name in (ID, SPLIT, LABELS) and len(field.keys) > 1:
        return f'"{name}" is not an object: expected {name} without a dot'
    return ""


def operator_problem(field: Field, operator: str) -> str:
    """Return the reason why this operator cannot be used on this field, or ''."""
    if field.keys[0] == LABELS and operator not in ("contains", "is"):
        return '"labels" is a list: expected contains or is, as in labels contains "x"'
    if field.keys[0] in (ID, SPLIT) and operator == "contains":
        return f'"{field}" is a string, not a list: expected = or in'
    return ""


def value_problem(field: Field, value: object) -> str:
    """Return what is expected instead of a value that this field can never have, or ''."""
    if field.keys[0] in (ID, SPLIT, LABELS) and not isinstance(value, str):
        return f'a string in quotes for "{field}"'
    return ""


# Evaluation

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
