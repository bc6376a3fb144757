"""Conversion to SQL: filters as conditions on `documents d`, and codes as bit strings.

Conditions are equivalent to `snuh.filters.tree`; all names and values of a filter are bound parameters.
The column `fields` holds the metadata with all digits of every number (see `exact_json`), so that comparing
decimals in PostgreSQL equals comparing floats in Python.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.collection.results import CodeRows
from snuh.filters import Filter
from snuh.filters.tree import (
    ID,
    INT64_RANGE,
    LABELS,
    SPLIT,
    And,
    Comparison,
    Contains,
    Field,
    In,
    IsNull,
    Not,
    Or,
    Value,
)

ABOVE_FLOAT_RANGE = "1" + "0" * 309


def to_condition(where: Filter | None) -> tuple[str, list[str]]:
    """Return a condition on the table `documents d`, and its parameters."""
    if where is None:
        return "true", []
    writer = _Writer()
    return writer.write(where), writer.parameters


@dataclass
class _Writer:
    """Writes a condition from left to right, collecting parameters in the order of their placeholders."""

    parameters: list[str] = field(default_factory=list)

    def write(self, filter_: Filter) -> str:
        match filter_:
            case And(parts):
                return "(" + " AND ".join(self.write(part) for part in parts) + ")"
            case Or(parts):
                return "(" + " OR ".join(self.write(part) for part in parts) + ")"
            case Not(part):
                # NOT would turn null into null; a condition that is null counts as false.
                return f"({self.write(part)} IS NOT TRUE)"
            case IsNull(name):
                return self.is_null(name)
            case In(name, values):
                return "(" + " OR ".join(self.equals(name, value) for value in values) + ")"
            case Comparison(name, "=", value):
                return self.equals(name, value)
            case Comparison(name, order, value):
                return self.ordered(name, order, value)
            case Contains(name, value):
                return f"({self.has_type(name, 'array')} AND {self.value_of(name)} @> {self.bind(value)})"
        raise TypeError(f"expected a filter made by parse, got {filter_!r}")

    def is_null(self, name: Field) -> str:
        if name.keys == (LABELS,):
            return "(d.labels = '[]')"
        return f"(coalesce({self.value_of(name)}, 'null') = 'null')"

    def equals(self, name: Field, value: Value | None) -> str:
        if value is None:
            return self.is_null(name)
        if name.keys in ((ID,), (SPLIT,)):  # a plain comparison can use the index on id
            return f"(d.{name.keys[0]} = {self.bind_text(value)})" if isinstance(value, str) else "false"
        return f"({self.value_of(name)} = {self.bind(value)})"

    def ordered(self, name: Field, order: str, value: Value) -> str:
        if isinstance(value, bool):
            return "false"
        if not isinstance(value, str):
            return f"({self.has_type(name, 'number')} AND {self.value_of(name)} {order} {self.bind(value)})"
        is_string = self.has_type(name, "string")
        text = f"({self.value_of(name)} #>> '{{}}') COLLATE \"C\""
        return f"({is_string} AND {text} {order} {self.bind_text(value)})"

    def has_type(self, name: Field, type_name: str) -> str:
        return f"jsonb_typeof({self.value_of(name)}) = '{type_name}'"

    def value_of(self, name: Field) -> str:
        """Return the value as jsonb; a key of anything but an object is null."""
        first, *others = name.keys
        if first in (ID, SPLIT):
            value = f"to_jsonb(d.{first})"
        elif first == LABELS:
            value = "d.labels"
        else:
            value, others = "d.fields", list(name.keys)
        return value + "".join(f" -> {self.bind_text(key)}" for key in others)

    def bind(self, value: Value) -> str:
        self.parameters.append(exact_json(value))
        return "%s::jsonb"

    def bind_text(self, text: str) -> str:
        self.parameters.append(text)
        return "%s::text"


def exact_json(value: Any) -> str:  # Any: a JSON value
    """Write a value as JSON with all decimal digits of each float: 0.1 is 0.1000000000000000055511...

    An integer of more than 64 bits is rounded to a float, as for filters everywhere.
    """
    if isinstance(value, Mapping):
        pairs = (f"{exact_json(str(key))}:{exact_json(item)}" for key, item in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(exact_json, value)) + "]"
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return _exact_number(value)


def _exact_number(value: int | float) -> str:
    if isinstance(value, int):
        if value in INT64_RANGE:
            return str(value)
        try:
            value = float(value)
        except OverflowError:
            return ABOVE_FLOAT_RANGE if value > 0 else f"-{ABOVE_FLOAT_RANGE}"
    return format(Decimal(value), "f")


def to_bits(code: bytes) -> str:
    """Return a code as PostgreSQL's bit string, in the order of `snuh.codes.pack`."""
    return f"{int.from_bytes(code, 'big'):0{8 * len(code)}b}"


def to_code_rows(rows: Sequence[tuple[int, str]], *, bits: int) -> CodeRows:
    """Convert pairs of seq and bit string to arrays."""
    seqs: NDArray[np.int64] = np.fromiter((seq for seq, _ in rows), dtype=np.int64, count=len(rows))
    digits = np.frombuffer("".join(code for _, code in rows).encode(), dtype=np.uint8)
    return CodeRows(seqs, np.packbits(digits.reshape(len(rows), bits) == ord("1"), axis=1))
