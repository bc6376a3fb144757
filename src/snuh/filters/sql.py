"""The same filter for SQLite: a condition on the columns of a document, with everything of the user's bound.

The columns of JSON hold text as `snuh.io.dump_json` writes it, names and strings without needless
escapes. One thing is beyond SQLite before 3.45: it reads a string only as far as its first NUL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from snuh.filters.tree import (
    ID,
    LABELS,
    SPLIT,
    And,
    Comparison,
    Contains,
    Field,
    Filter,
    In,
    IsNull,
    Joined,
    Not,
    Or,
    Value,
)

Parameter: TypeAlias = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlColumns:
    """Where the parts of a document are; these names go into the SQL as they are, so never take a user's.

    `id` and `split` are columns of text; `labels` is a JSON list of strings, `metadata` a JSON object.
    """

    id: str = "id"
    split: str = "split"
    labels: str = "labels"
    metadata: str = "metadata"


def to_sql(filter_: Filter, *, columns: SqlColumns) -> tuple[str, list[Parameter]]:
    """Return an expression that is true for the matching rows, false or null for others, and its parameters.

    Example:
        >>> to_sql(parse('split = "test"'), columns=SqlColumns(split="d.split"))
        ('d.split IN (?)', ['test'])
    """
    writer = _Writer(columns)
    return writer.write(filter_), writer.parameters


@dataclass
class _Writer:
    """Writes an expression from left to right, and keeps the parameters in the order of their marks."""

    columns: SqlColumns
    parameters: list[Parameter] = field(default_factory=list)

    def write(self, filter_: Filter) -> str:
        match filter_:
            case And(parts):
                return " AND ".join(self.part(part, in_brackets=Joined) for part in parts)
            case Or(parts):
                return " OR ".join(self.part(part, in_brackets=Or) for part in parts)
            case Not(part):
                # Null counts as false here, which a plain NOT would leave null.
                return f"({self.write(part)}) IS NOT TRUE"
            case IsNull(name):
                return self.is_null(name)
            case In(name, values):
                return self.one_of(name, values)
            case Comparison(name, "=", value):
                return self.one_of(name, (value,))
            case Comparison(name, order, value):
                return self.ordered(name, order, value)
            case Contains(name, value):
                return self.contains(name, value)
        raise TypeError(f"expected a filter made by parse, got {filter_!r}")

    def part(self, part: Filter, *, in_brackets: type[Filter]) -> str:
        return f"({self.write(part)})" if isinstance(part, in_brackets) else self.write(part)

    def is_null(self, name: Field) -> str:
        if name.keys == (LABELS,):
            return f"coalesce(json_array_length({self.columns.labels}), 0) = 0"
        return f"{self.value_of(name)} IS NULL"

    def one_of(self, name: Field, values: Iterable[Value | None]) -> str:
        """Write a condition for each type of value: SQLite takes true for 1, and a list for its text."""
        groups: dict[str, list[Value]] = {}
        is_null_wanted = False
        for value in values:
            if value is None:
                is_null_wanted = True
            else:
                groups.setdefault(_types(value), []).append(value)
        found = [self.one_of_type(name, types, group) for types, group in groups.items()]
        if is_null_wanted:
            found.append(self.is_null(name))
        return f"({' OR '.join(found)})" if len(found) > 1 else found[0]

    def one_of_type(self, name: Field, types: str, values: list[Value]) -> str:
        if isinstance(values[0], bool):
            return f"{self.type_of(name)} IN {types}"
        marks = f"{self.value_of(name)} IN ({', '.join(self.bind(value) for value in values)})"
        return self.typed(marks, name, types)

    def ordered(self, name: Field, order: str, value: Value) -> str:
        return self.typed(f"{self.value_of(name)} {order} {self.bind(value)}", name, _types(value))

    def contains(self, name: Field, value: Value) -> str:
        if name.keys == (LABELS,):
            items, is_list = f"json_each({self.columns.labels})", ""
        else:
            is_list = f"{self.type_of(name)} = 'array' AND "
            items = f"json_each({self.columns.metadata}, {self.bind_path(name)})"
        # `atom` is null for lists and objects, so they are never taken for a string.
        wanted = "" if isinstance(value, bool) else f"atom = {self.bind(value)} AND "
        return f"({is_list}EXISTS (SELECT 1 FROM {items} WHERE {wanted}type IN {_types(value)}))"

    def typed(self, condition: str, name: Field, types: str) -> str:
        """Add that the field has one of the types; second, as few rows get so far."""
        if name.keys in ((ID,), (SPLIT,)):
            return condition
        return f"({condition} AND {self.type_of(name)} IN {types})"

    def value_of(self, name: Field) -> str:
        if name.keys == (ID,):
            return self.columns.id
        if name.keys == (SPLIT,):
            return self.columns.split
        return f"json_extract({self.columns.metadata}, {self.bind_path(name)})"

    def type_of(self, name: Field) -> str:
        return f"json_type({self.columns.metadata}, {self.bind_path(name)})"

    def bind_path(self, name: Field) -> str:
        # No name with a double quote or a backslash in it comes through the parser.
        return self.bind("$" + "".join(f'."{key}"' for key in name.keys))

    def bind(self, value: Value) -> str:
        if isinstance(value, float):
            # SQLite shall read the digits itself: with large exponents it is not always as exact as Python,
            # and a number of the filter must be rounded like the same number in the JSON.
            self.parameters.append(repr(value))
            return "CAST(? AS REAL)"
        self.parameters.append(value)
        return "?"


def _types(value: Value) -> str:
    """Return what `json_type` may say of a field that equals the value."""
    if isinstance(value, bool):
        return "('true')" if value else "('false')"
    return "('text')" if isinstance(value, str) else "('integer', 'real')"
