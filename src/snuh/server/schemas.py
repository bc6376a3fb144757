"""What may be asked: the bodies of requests, each with its limits and an example."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_HITS, MAX_EXPLAINED, MAX_SHORTLISTED = 1_000, 100, 10_000
MAX_TEXTS, MAX_TOTAL_HITS = 100, 10_000
MAX_DOCUMENTS, MAX_DELETED, MAX_FETCHED, MAX_SAMPLED = 1_000, 10_000, 100, 1_000
QUERY_CHARACTERS, FILTER_CHARACTERS, ID_CHARACTERS = 10_000, 10_000, 1_000
TEXT_CHARACTERS = 10_000_000  # the longest text that a collection takes
DEFAULT_CHARACTERS = 500

Query = Annotated[str, Field(max_length=QUERY_CHARACTERS)]
DocId = Annotated[str, Field(max_length=ID_CHARACTERS)]
Where = Annotated[str, Field(max_length=FILTER_CHARACTERS)]


class Ask(BaseModel):
    """A body: nothing but the named fields, and no guessing of types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Options(Ask):
    """How to search."""

    k: int = Field(10, ge=1, le=MAX_HITS, description="Most hits.")
    where: Where | None = Field(None, description="A filter, such as `year >= 2020`.")
    radius: int | None = Field(None, ge=0, le=4096, description="Most bits in which a hit may differ.")
    rerank: Literal["asymmetric", "cosine"] | None = Field(None, description="Order the nearest more finely.")
    shortlist: int | None = Field(None, ge=1, le=MAX_SHORTLISTED, description="How many to reorder.")
    approximate: bool = Field(False, description='Read only the lists made by "snuh index".')
    characters: int | None = Field(
        DEFAULT_CHARACTERS, ge=1, le=TEXT_CHARACTERS, description="Most of each text; null: whole texts."
    )

    @property
    def search_options(self) -> dict[str, Any]:
        """What `Collection.search` takes."""
        return {
            "k": self.k,
            "where": self.where,
            "radius": self.radius,
            "rerank": self.rerank,
            "shortlist": self.shortlist,
            "approximate": self.approximate,
        }


class SimilarAsk(Options):
    """Look for documents like one of the collection."""

    id: DocId = Field(description="The document.", examples=["ticket-7"])
    explain: bool = Field(False, description="Tell which words brought each hit up.")


class SearchAsk(Options):
    """Look for a text, or for documents like one of the collection."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": "the printer eats my paper", "k": 3, "explain": True}, {"id": "ticket-7"}]
        }
    )
    text: Query | None = Field(None, description="What to look for.")
    id: DocId | None = Field(None, description="Or a document of the collection.")
    explain: bool = Field(False, description="Tell which words brought each hit up.")


class BatchAsk(Options):
    """Look for many texts, or many codes, at once."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"texts": ["paper jam", "wifi"], "k": 3}]})
    texts: list[Query] | None = Field(None, min_length=1, max_length=MAX_TEXTS)
    codes: list[Annotated[str, Field(pattern="^[0-9a-f]+$", max_length=128)]] | None = Field(
        None, min_length=1, max_length=MAX_TEXTS, description="Or codes, as hexadecimal digits."
    )


class ExplainAsk(Ask):
    """Why a document was found."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "the printer eats my paper", "id": "ticket-7"}]}
    )
    id: DocId = Field(description="The hit.")
    text: Query | None = Field(None, description="What was searched for.")
    query_id: DocId | None = Field(None, description="Or the document that was searched for.")


class EncodeAsk(Ask):
    """Texts to turn into codes."""

    texts: list[Annotated[str, Field(max_length=TEXT_CHARACTERS)]] = Field(
        min_length=1, max_length=MAX_TEXTS, examples=[["paper jam", "wifi"]]
    )


class NewDocument(BaseModel):
    """A document; every other field is metadata."""

    model_config = ConfigDict(extra="allow")
    id: Annotated[str, Field(min_length=1, max_length=ID_CHARACTERS)]
    text: Annotated[str, Field(max_length=TEXT_CHARACTERS)]
    labels: list[str] | None = None
    split: str | None = None

    @property
    def record(self) -> dict[str, Any]:
        """What `Collection.add` takes: the fields that were given."""
        return self.model_dump(exclude_unset=True)


class AddAsk(Ask):
    """Documents to add, or to put in the place of those with the same id."""

    documents: list[NewDocument] = Field(
        min_length=1,
        max_length=MAX_DOCUMENTS,
        examples=[[{"id": "new-1", "text": "paper jam", "year": 2024}]],
    )


class DeleteAsk(Ask):
    """Documents to delete, by their ids or by a filter."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["new-1"]}, {"where": "year < 2020"}]})
    ids: list[DocId] | None = Field(None, min_length=1, max_length=MAX_DELETED)
    where: Where | None = None


class ListsAsk(Ask):
    """The recall that approximate searches should reach."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"k": 10, "recall": 0.99}]})
    k: int = Field(10, ge=1, le=MAX_HITS, description="For which the recall is measured.")
    recall: float = Field(0.99, gt=0, le=1, description="The share of the exact answer that should be found.")


# What is answered, for the schema and for readers; the routes build the same as plain values.


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
    """The index that approximate searches use, and its measured recall."""

    model_config = ConfigDict(extra="allow")
    state: Literal["ready"]
    current: bool
    description: str
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
    min: float | None = None
    max: float | None = None
    values: list[ValueAnswer]


class FieldsAnswer(BaseModel):
    """What can be filtered by."""

    documents: int
    fields: list[FieldAnswer]


class StatusAnswer(BaseModel):
    """Whether the server answers."""

    status: str
