"""The syntax tree of filters; `str` of a node is a filter that parses to an equal node.

Negated operators have no node of their own: `a != 1` is `Not(Comparison(a, "=", 1))`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

Value: TypeAlias = str | int | float | bool
Operator: TypeAlias = Literal["=", "<", "<=", ">", ">="]

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
