"""A filter as a condition of Milvus that lets through whatever the filter does, and perhaps more.

What comes back is looked at again with `snuh.filters.matches`. So only what Milvus surely finds is asked for:
nothing about fields that are missing, where its versions differ, and no text or number that it might read
in another way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from snuh.collection.backend import is_storable
from snuh.collection.milvus.entities import key_of
from snuh.filters import Filter
from snuh.filters.tree import ID, LABELS, SPLIT, And, Comparison, Contains, Field, In, IsNull, Not, Or, Value

PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,100}")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
MAX_NUMBER = 2**52  # below it whole numbers and floats are compared alike
MAX_STRING = 1_000


def condition_of(where: Filter) -> str | None:
    """Return a condition on the rows of documents; None where Milvus cannot help."""
    found = _write(where)
    return None if found is None else f"(pieces > 0 or {found})"  # large documents are looked at here


def _write(where: Filter) -> str | None:
    match where:
        case And(parts):
            known = [text for part in parts if (text := _write(part)) is not None]
            return f"({' and '.join(known)})" if known else None
        case Or(parts):
            texts = [_write(part) for part in parts]
            return None if None in texts else f"({' or '.join(text for text in texts if text)})"
        case Not(Not(part)):
            return _write(part)
        case Not(IsNull(field)):
            return None if (path := _path(field)) is None else f"(exists {path})"
        case In(field, values):
            return _one_of(field, values)
        case Comparison(field, "=", value):
            return _one_of(field, (value,))
        case Comparison(field, order, value):
            path, text = _path(field), _literal(value)
            return None if path is None or text is None else f"({path} {order} {text})"
        case Contains(field, value):
            path, text = _path(field), _literal(value)
            is_sure = path is not None and text is not None and isinstance(value, str)
            return f"json_contains({path}, {text})" if is_sure else None
    return None


def _one_of(field: Field, values: Iterable[Value | None]) -> str | None:
    path = _path(field)
    groups: dict[type, list[str]] = {}  # a list of Milvus is of one type
    for value in values:
        if path is None or value is None or (text := _literal(value)) is None:
            return None
        if field.keys == (ID,):
            path, text = "key", f'"{key_of(str(value))}"'
        groups.setdefault(int if text.lstrip("-").isdigit() else type(value), []).append(text)
    return "(" + " or ".join(f"{path} in [{', '.join(texts)}]" for texts in groups.values()) + ")"


def _path(field: Field) -> str | None:
    if not all(PLAIN_KEY.fullmatch(key) for key in field.keys):
        return None
    keys = field.keys if field.keys[0] in (ID, SPLIT, LABELS) else ("metadata", *field.keys)
    return "about" + "".join(f'["{key}"]' for key in keys)


def _literal(value: Value) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if len(value) > MAX_STRING or CONTROL.search(value) or not is_storable(value):
            return None
        return json.dumps(value, ensure_ascii=False)
    if abs(value) >= MAX_NUMBER:
        return None
    return str(int(value)) if value == int(value) else repr(value)
