"""What documents can be filtered by: the fields of a sample, their kinds and their most frequent values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from snuh.collection import Collection
from snuh.corpus import Document
from snuh.corpus.document import JSON
from snuh.filters.tokens import REFUSED_IN_NAME
from snuh.filters.tree import Field

Keys: TypeAlias = tuple[str, ...]

SAMPLE, MOST_FIELDS, MOST_VALUES, MOST_COUNTED = 10_000, 200, 30, 2_000
DEEPEST = 3  # objects in objects
LONGEST_VALUE = 100  # characters: a longer one is no value to choose from a list


@dataclass
class _Seen:
    """What a field has had."""

    documents: int = 0
    kinds: set[str] = field(default_factory=set)
    values: Counter[bool | int | float | str] = field(default_factory=Counter)
    least: float | None = None
    most: float | None = None

    def add(self, value: JSON) -> None:
        self.documents += 1
        self.kinds.add(_kind(value))
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, int | float) and not isinstance(item, bool):
                self.least = item if self.least is None else min(self.least, item)
                self.most = item if self.most is None else max(self.most, item)
            is_short = isinstance(item, bool | int | float) or (
                isinstance(item, str) and len(item) <= LONGEST_VALUE
            )
            if is_short and (item in self.values or len(self.values) < MOST_COUNTED):
                self.values[item] += 1  # type: ignore[index]  # the kinds were looked at

    def to_json(self, keys: Keys) -> dict[str, Any]:
        kind = next(iter(self.kinds)) if len(self.kinds) == 1 else "mixed"
        told: dict[str, Any] = {
            "name": str(Field(keys)),
            "kind": kind,
            "documents": self.documents,
            "distinct": len(self.values),
        }
        if kind == "number":
            told |= {"least": self.least, "most": self.most}
        best = sorted(self.values.items(), key=lambda pair: (-pair[1], str(pair[0])))[:MOST_VALUES]
        return told | {"values": [{"value": value, "documents": count} for value, count in best]}


def describe_fields(collection: Collection) -> dict[str, Any]:
    """Return the fields of a sample of documents, labels and split first."""
    documents = collection.sample(SAMPLE).documents
    seen: dict[Keys, _Seen] = {("labels",): _Seen(), ("split",): _Seen()}
    for document in documents:
        for keys, value in _values(document):
            if keys in seen or len(seen) < MOST_FIELDS:
                seen.setdefault(keys, _Seen()).add(value)
    fields = [found.to_json(keys) for keys, found in seen.items() if found.documents]
    return {"documents": len(documents), "fields": fields}


def _values(document: Document) -> Iterator[tuple[Keys, JSON]]:
    if document.labels:
        yield ("labels",), list(document.labels)
    if document.split is not None:
        yield ("split",), document.split
    yield from _inside(document.metadata, ())


def _inside(fields: Mapping[str, JSON], above: Keys) -> Iterator[tuple[Keys, JSON]]:
    for name, value in fields.items():
        keys = (*above, name)
        if value is None or REFUSED_IN_NAME.search(name) or not name:
            continue  # a filter has no way to ask for it
        if isinstance(value, dict):
            if len(keys) < DEEPEST:
                yield from _inside(value, keys)
        else:
            yield keys, value


def _kind(value: JSON) -> str:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "number"
    return "list" if isinstance(value, list) else "text"
