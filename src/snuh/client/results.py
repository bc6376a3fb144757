"""What a server tells beyond what a collection does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from snuh.dedup import Duplicate

Value: TypeAlias = bool | int | float | str


@dataclass(frozen=True, slots=True)
class FieldFacts:
    """A field that a filter can ask for, in a sample of the documents."""

    name: str  # as a filter takes it
    kind: Literal["text", "number", "truth", "list", "mixed"]
    documents: int  # that have it
    distinct: int
    least: float | None  # of numbers
    most: float | None
    values: tuple[tuple[Value, int], ...]  # the most frequent ones, and how many documents have each


@dataclass(frozen=True, slots=True)
class DuplicateGroups:
    """Which documents repeat another one, as of some moment."""

    is_current: bool  # whether documents have neither come nor gone since
    documents: int  # looked at
    clusters: int
    duplicates: int  # documents that could go
    radius: int
    threshold: float
    biggest: tuple[tuple[Duplicate, ...], ...]  # the biggest clusters, of each the kept document first


@dataclass(frozen=True, slots=True)
class Plane:
    """Documents in the plane, those with similar codes near each other; an entry a point in each list."""

    is_current: bool
    documents: int  # of the whole collection
    ids: list[str]
    x: list[float]  # from -1 to 1
    y: list[float]
    titles: list[str]
    labels: list[str | None]  # the first of each document
