"""The fields that every document has, and what can be asked of them.

A question about one of them that no document could answer with yes is refused, not answered with no.
"""

from __future__ import annotations

from snuh.filters.tree import Field

ID, SPLIT, LABELS, TEXT = "id", "split", "labels", "text"


def field_problem(field: Field) -> str:
    """Say why no filter can use this field, or return ''."""
    name = field.keys[0]
    if name == TEXT:
        return "the text of a document cannot be filtered on: search for it, or filter on other fields"
    if name in (ID, SPLIT, LABELS) and len(field.keys) > 1:
        return f'"{name}" has no fields inside: expected only {name}'
    return ""


def operator_problem(field: Field, operator: str) -> str:
    """Say why this operator cannot be used on this field, or return ''."""
    if field.keys[0] == LABELS and operator not in ("contains", "is"):
        return '"labels" is a list: expected contains or is, as in labels contains "x"'
    if field.keys[0] in (ID, SPLIT) and operator == "contains":
        return f'"{field}" is one string and no list: expected = or in'
    return ""


def value_problem(field: Field, value: object) -> str:
    """Say what is expected in the place of a value that this field can never hold, or return ''."""
    if field.keys[0] in (ID, SPLIT, LABELS) and not isinstance(value, str):
        return f'a string in quotes for "{field}"'
    return ""
