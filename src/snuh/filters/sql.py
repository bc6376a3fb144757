"""Translation of filters to SQLite expressions; all names and values of a filter are bound parameters.

JSON columns must be written by `snuh.io.dump_json`, without needless escapes. SQLite before 3.45 reads
strings in JSON only up to their first NUL.
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
    Compound,
    Contains,
    Field,
    Filter,
    In,
    IsNull,
    Not,
    Or,
    Value,
)

Parameter: TypeAlias = str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlColumns:
    """The columns of a document. They are inserted into the SQL unescaped, so never use a user's input.

    `id` and `split` are text columns; `labels` is a JSON list of strings, `metadata` a JSON object.
    """

    id: str = "id"
    split: str = "split"
    labels: str = "labels"
    metadata: str = "metadata"


def to_sql(filter_: Filter, *, columns: SqlColumns) -> tuple[str, list[Parameter]]:
    """Return an expression that is true for matching rows and false or null for others, and its parameters.

    Example:
        >>> to_sql(parse('split = "test"'), columns=SqlColumns(split="d.split"))
        ('d.split IN (?)', ['test'])
    """
    writer = _Writer(columns)
    return writer.write(filter_), writer.parameters


@dataclass
class _Writer:
    """Writes an expression from left to right, collecting parameters in the order of their placeholders."""

    columns: SqlColumns
    parameters: list[Parameter] = field(default_factory=list)

    def write(self, filter_: Filter) -> str:
        match filter_:
            case And(parts):
                return " AND ".join(self.part(part, parenthesize=Compound) for part in parts)
            case Or(parts):
                return " OR ".join(self.part(part, parenthesize=Or) for part in parts)
            case Not(part):
                # NOT would turn null into null; a condition that is null counts as false.
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

    def part(self, part: Filter, *, parenthesize: type[Filter]) -> str:
        return f"({self.write(part)})" if isinstance(part, parenthesize) else self.write(part)

    def is_null(self, name: Field) -> str:
        if name.keys == (LABELS,):
            return f"coalesce(json_array_length({self.columns.labels}), 0) = 0"
        return f"{self.value_of(name)} IS NULL"

    def one_of(self, name: Field, values: Iterable[Value | None]) -> str:
        """Write a condition per type of value: to SQLite true equals 1, and a list equals its JSON text."""
        groups: dict[str, list[Value]] = {}
        includes_null = False
        for value in values:
            if value is None:
                includes_null = True
            else:
                groups.setdefault(_types(value), []).append(value)
        conditions = [self.one_of_type(name, types, group) for types, group in groups.items()]
        if includes_null:
            conditions.append(self.is_null(name))
        return f"({' OR '.join(conditions)})" if len(conditions) > 1 else conditions[0]

    def one_of_type(self, name: Field, types: str, values: list[Value]) -> str:
        if isinstance(values[0], bool):
            return f"{self.type_of(name)} IN {types}"
        condition = f"{self.value_of(name)} IN ({', '.join(self.bind(value) for value in values)})"
        return self.typed(condition, name, types)

    def ordered(self, name: Field, order: str, value: Value) -> str:
        return self.typed(f"{self.value_of(name)} {order} {self.bind(value)}", name, _types(value))

    def contains(self, name: Field, value: Value) -> str:
        if name.keys == (LABELS,):
            items, is_list = f"json_each({self.columns.labels})", ""
        else:
            is_list = f"{self.type_of(name)} = 'array' AND "
            items = f"json_each({self.columns.metadata}, {self.bind_path(name)})"
        # `atom` is null for lists and objects, so they never equal a string.
        equals = "" if isinstance(value, bool) else f"atom = {self.bind(value)} AND "
        return f"({is_list}EXISTS (SELECT 1 FROM {items} WHERE {equals}type IN {_types(value)}))"

    def typed(self, condition: str, name: Field, types: str) -> str:
        """Require one of the types; second, because most rows already fail the first condition."""
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
        # The parser refuses names with a double quote or a backslash.
        return self.bind("$" + "".join(f'."{key}"' for key in name.keys))

    def bind(self, value: Value) -> str:
        if isinstance(value, float):
            # SQLite parses large exponents less exactly than Python. Parsing the filter's number itself,
            # it rounds it like the same number in JSON.
            self.parameters.append(repr(value))
            return "CAST(? AS REAL)"
        self.parameters.append(value)
        return "?"


def _types(value: Value) -> str:
    """Return the possible `json_type`s of a field that equals the value."""
    if isinstance(value, bool):
        return "('true')" if value else "('false')"
    return "('text')" if isinstance(value, str) else "('integer', 'real')"
