"""What is answered, for the schema and for readers; the routes build the same as plain values."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Word(BaseModel):
    """A word of a text, its shares in the bits that agree and differ, and where it stands."""

    word: str
    agreeing: float
    differing: float
    spans: list[tuple[int, int]]


class HitAnswer(BaseModel):
    """A document that was found; the last three with `explain` only."""

    id: str
    distance: int
    score: float | None
    text: str
    length: int
    labels: list[str]
    split: str | None
    metadata: dict[str, Any]
    fragments: list[tuple[str, float]] | None = None
    words: list[Word] | None = None
    query_words: list[Word] | None = None


class SearchAnswer(BaseModel):
    """The hits of a search, nearest first."""

    query: str | None
    id: str | None
    bits: int
    hits: list[HitAnswer]


class OneOfMany(BaseModel):
    """The hits of one text of many; null where the model knows no word of it."""

    hits: list[HitAnswer] | None


class BatchAnswer(BaseModel):
    """The hits of many texts."""

    bits: int
    answers: list[OneOfMany]


class BitAnswer(BaseModel):
    """One bit of two codes."""

    bit: int
    query: bool
    hit: bool
    query_margin: float | None
    hit_margin: float | None


class ExplainAnswer(BaseModel):
    """Why a document was found."""

    distance: int
    bits: list[BitAnswer]
    query_words: list[Word]
    hit_words: list[Word]
    query_fragments: list[tuple[str, float]]
    hit_fragments: list[tuple[str, float]]


class DocumentAnswer(BaseModel):
    """A document."""

    id: str
    text: str
    labels: list[str]
    split: str | None
    metadata: dict[str, Any]


class DocumentsAnswer(BaseModel):
    """The documents that were asked for, in that order."""

    documents: list[DocumentAnswer]


class AddAnswer(BaseModel):
    """What happened to documents that were added; they are on the disk."""

    inserted: int
    replaced: int
    without_known_words: int
    documents: int


class DeleteAnswer(BaseModel):
    """How many were deleted, and how many are left."""

    deleted: int
    documents: int


class EncodeAnswer(BaseModel):
    """Codes as hexadecimal digits; null where the model knows no word."""

    bits: int
    codes: list[str | None]


class Meaning(BaseModel):
    """What a bit stands for."""

    bit: int
    on: list[list[str]]
    off: list[list[str]]
    balance: float | None
    uses_decoder: bool


class BitsAnswer(BaseModel):
    """What each bit stands for."""

    method: str
    bits: int
    meanings: list[Meaning]


class MakingAnswer(BaseModel):
    """It is being made: ask again."""

    state: Literal["making"]
    seconds: float


class MapAnswer(BaseModel):
    """Documents in the plane; an entry a point in each list."""

    state: Literal["ready"]
    current: bool
    documents: int
    ids: list[str]
    x: list[float]
    y: list[float]
    titles: list[str]
    labels: list[str | None]


class DuplicateAnswer(BaseModel):
    """A document of a cluster."""

    id: str
    action: Literal["keep", "drop"]
    cluster: int
    representative: str
    similarity: float
    distance: int
    title: str


class DuplicatesAnswer(BaseModel):
    """Which documents repeat another one."""

    state: Literal["ready"]
    current: bool
    documents: int
    clusters: int
    duplicates: int
    left: int
    radius: int
    threshold: float
    biggest: list[list[DuplicateAnswer]]


class CollectionLine(BaseModel):
    """A collection in short."""

    name: str
    documents: int
    bits: int
    method: str
    writable: bool


class CollectionsAnswer(BaseModel):
    """The collections of this server."""

    collections: list[CollectionLine]


class InfoAnswer(BaseModel):
    """A collection at length: as `snuh info --json`."""

    model_config = ConfigDict(extra="allow")
    name: str
    writable: bool
    version: str
    documents: int
    searchable: int
    fields: list[str]
    hints: list[str]


class SampleAnswer(BaseModel):
    """Some documents, and the code of each as hexadecimal digits."""

    documents: list[DocumentAnswer]
    codes: list[str]


class ListsAnswer(BaseModel):
    """What fast searches look into, and what was measured on it."""

    model_config = ConfigDict(extra="allow")
    state: Literal["ready"]
    current: bool
    words: str
    k: int
    recall: float
    documents: int


class ValueAnswer(BaseModel):
    """A value of a field, and how many documents of the sample have it."""

    value: bool | int | float | str
    documents: int


class FieldAnswer(BaseModel):
    """A field that a filter can ask for."""

    name: str
    kind: Literal["text", "number", "truth", "list", "mixed"]
    documents: int
    distinct: int
    least: float | None = None
    most: float | None = None
    values: list[ValueAnswer]


class FieldsAnswer(BaseModel):
    """What can be filtered by."""

    documents: int
    fields: list[FieldAnswer]


class StatusAnswer(BaseModel):
    """Whether the server answers."""

    status: str
