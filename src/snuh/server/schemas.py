"""Schemas of the API: request bodies with their limits and examples, and response bodies."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from snuh.collection.query import DEFAULT_SHORTLISTS

MAX_HITS, MAX_EXPLAINED, MAX_SHORTLISTED = 1_000, 100, 10_000
MAX_TEXTS, MAX_TOTAL_HITS = 100, 10_000
MAX_TOTAL_RERANKED = {"cosine": 20_000, "asymmetric": 500_000}  # documents of a batch
RERANKED_AT_ONCE = 10_000
MAX_DOCUMENTS, MAX_DELETED, MAX_FETCHED, MAX_SAMPLED = 1_000, 10_000, 100, 1_000
MAX_QUERY_CHARACTERS, MAX_FILTER_CHARACTERS, MAX_ID_CHARACTERS = 10_000, 10_000, 1_000
MAX_TEXT_CHARACTERS = 10_000_000  # the longest text that a collection accepts
MAX_DIMENSIONS = 65_536  # of a vector
DEFAULT_CHARACTERS = 500

Query = Annotated[str, Field(max_length=MAX_QUERY_CHARACTERS)]
DocId = Annotated[str, Field(max_length=MAX_ID_CHARACTERS)]
Where = Annotated[str, Field(max_length=MAX_FILTER_CHARACTERS)]
Vector = Annotated[list[float], Field(min_length=1, max_length=MAX_DIMENSIONS)]


# Requests


class RequestModel(BaseModel):
    """A request body: unknown fields and implicit type conversions are rejected."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SearchParameters(RequestModel):
    """Parameters that all searches share."""

    k: int = Field(10, ge=1, le=MAX_HITS, description="Maximum number of hits.")
    offset: int = Field(0, ge=0, lt=MAX_HITS, description="Number of hits to skip; at most 1,000 - k.")
    where: Where | None = Field(None, description="A filter, such as `year >= 2020`.")
    radius: int | None = Field(None, ge=0, le=4096, description="Maximum Hamming distance of a hit.")
    rerank: Literal["asymmetric", "cosine"] | None = Field(
        None, description="Rerank the nearest documents by a finer score."
    )
    shortlist: int | None = Field(
        None, ge=1, le=MAX_SHORTLISTED, description="Number of documents to rerank."
    )
    approximate: bool = Field(False, description='Use the index built by "snuh index".')
    mode: Literal["hybrid", "words", "codes"] | None = Field(
        None,
        description="Search texts by words and codes (hybrid, the default), by words (BM25), or by codes; "
        "`radius`, `rerank` and `approximate` imply codes.",
    )
    characters: int | None = Field(
        DEFAULT_CHARACTERS,
        ge=1,
        le=MAX_TEXT_CHARACTERS,
        description="Maximum number of characters of each text; null: whole texts.",
    )

    @property
    def documents_reranked(self) -> int:
        """Number of documents that are reranked for a query."""
        if self.rerank is None:
            return 0
        return max(self.offset + self.k, self.shortlist or DEFAULT_SHORTLISTS[self.rerank])

    @property
    def max_total_reranked(self) -> int:
        """Maximum number of documents that a batch may rerank."""
        return MAX_TOTAL_RERANKED.get(self.rerank or "", 0)

    @property
    def search_options(self) -> dict[str, Any]:
        """The keyword arguments of `Collection.search`; the first `offset` hits are skipped afterwards."""
        return {
            "k": self.offset + self.k,
            "where": self.where,
            "radius": self.radius,
            "rerank": self.rerank,
            "shortlist": self.shortlist,
            "approximate": self.approximate,
            "characters": self.characters,
            "mode": self.mode,
        }


class SimilarRequest(SearchParameters):
    """Search for documents similar to one of the collection."""

    id: DocId = Field(description="The document.", examples=["ticket-7"])
    explain: bool = Field(False, description="Highlight the words that explain each hit.")


class SearchRequest(SearchParameters):
    """Search for a text, or for documents similar to one of the collection."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": "the printer eats my paper", "k": 3, "explain": True}, {"id": "ticket-7"}]
        }
    )
    text: Query | None = Field(None, description="The query text.")
    vector: Vector | None = Field(None, description="Its vector, if the model reads vectors.")
    id: DocId | None = Field(None, description="Or a document of the collection.")
    explain: bool = Field(False, description="Highlight the words that explain each hit.")


class BatchRequest(SearchParameters):
    """Search for many texts, or many codes, at once."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"texts": ["paper jam", "wifi"], "k": 3}]})
    texts: list[Query] | None = Field(None, min_length=1, max_length=MAX_TEXTS)
    vectors: list[Vector | None] | None = Field(
        None, max_length=MAX_TEXTS, description="The vector of each text, or null."
    )
    codes: list[Annotated[str, Field(pattern="^[0-9a-f]+$", max_length=128)]] | None = Field(
        None, min_length=1, max_length=MAX_TEXTS, description="Or codes, in hexadecimal."
    )


class ExplainRequest(RequestModel):
    """Explain a hit."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "the printer eats my paper", "id": "ticket-7"}]}
    )
    id: DocId = Field(description="The hit.")
    text: Query | None = Field(None, description="The query text.")
    vector: Vector | None = Field(None, description="Its vector, if the model reads vectors.")
    query_id: DocId | None = Field(None, description="Or the document that was searched for.")


class EncodeRequest(RequestModel):
    """Texts to encode."""

    texts: list[Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS)]] = Field(
        min_length=1, max_length=MAX_TEXTS, examples=[["paper jam", "wifi"]]
    )
    vectors: list[Vector | None] | None = Field(None, description="The vector of each text, or null.")


class DocumentChanges(BaseModel):
    """Fields of a document to change; all other fields are metadata, and null removes one."""

    model_config = ConfigDict(
        extra="allow", strict=True, json_schema_extra={"examples": [{"year": 2025, "desk": None}]}
    )
    text: Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS)] | None = None
    labels: list[str] | None = None
    split: str | None = None

    @property
    def record(self) -> dict[str, Any]:
        """The fields that were sent, as `Collection.add` and `Collection.update` take them."""
        return self.model_dump(exclude_unset=True)


class DocumentContent(DocumentChanges):
    """A document without its id; all other fields are metadata."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "paper jam", "year": 2024}]})
    text: Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS)]


class NewDocument(DocumentContent):
    """A document; all other fields are metadata."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "new-1", "text": "paper jam"}]})
    id: Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARACTERS)]


class AddRequest(RequestModel):
    """Documents to add; a document with an existing id replaces the stored one. An id may occur once."""

    documents: list[NewDocument] = Field(
        min_length=1,
        max_length=MAX_DOCUMENTS,
        examples=[[{"id": "new-1", "text": "paper jam", "year": 2024}]],
    )


class DeleteRequest(RequestModel):
    """Documents to delete, by id or by filter."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["new-1"]}, {"where": "year < 2020"}]})
    ids: list[DocId] | None = Field(None, min_length=1, max_length=MAX_DELETED)
    where: Where | None = None


class IndexRequest(RequestModel):
    """The recall that approximate searches should reach."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"k": 10, "recall": 0.99}]})
    k: int = Field(10, ge=1, le=MAX_HITS, description="Number of hits at which recall is measured.")
    recall: float = Field(0.99, gt=0, le=1, description="Fraction of the exact hits to find.")


# Responses: these document the API; the routes build plain values of the same shape.


class ErrorResponse(BaseModel):
    """An error."""

    error: str
    """One sentence."""
    kind: str
    """Machine-readable."""
    position: int | None = None
    """For a filter: the number of characters before the error."""
    resource: str | None = None
    """What was not found."""


class WordResponse(BaseModel):
    """A word of a text, its contributions to the agreeing and the differing bits, and where it occurs."""

    word: str
    agreeing: float
    differing: float
    spans: list[tuple[int, int]]


class FragmentResponse(BaseModel):
    """A piece of a text.

    `weight` is from -1 to 1: positive for a word that moved the code towards the other one, negative for one
    that moved it away. `matched` marks a word of the query. Both are left out of most fragments.
    """

    text: str
    weight: float = 0.0
    matched: bool = False


class HitResponse(BaseModel):
    """A hit.

    `matched` and the scores of words and codes are present unless `mode` is `codes`, `fragments` only with
    `explain`.
    """

    id: str
    distance: int
    score: float | None
    text: str
    length: int
    labels: list[str]
    split: str | None
    metadata: dict[str, Any]
    matched: list[str] | None = None
    word_score: float | None = None
    code_score: float | None = None
    fragments: list[FragmentResponse] | None = None


class BatchResult(BaseModel):
    """The hits of one query; `note` has what a reader should know, such as words that no document has."""

    note: str | None
    hits: list[HitResponse]


class SearchResponse(BatchResult):
    """The hits of a search, the best first.

    `took_ms` is the time that the search took, without the time to wait for other requests.
    """

    query: str | None
    id: str | None
    bits: int
    took_ms: float


class BatchResponse(BaseModel):
    """The hits of many queries, in the order of the request."""

    bits: int
    took_ms: float
    results: list[BatchResult]


class BitPairResponse(BaseModel):
    """One bit of two codes."""

    bit: int
    query: bool
    hit: bool
    query_margin: float | None
    hit_margin: float | None


class ExplainResponse(BaseModel):
    """The explanation of a hit."""

    distance: int
    bits: list[BitPairResponse]
    query_words: list[WordResponse]
    hit_words: list[WordResponse]
    query_fragments: list[FragmentResponse]
    hit_fragments: list[FragmentResponse]
    note: str | None = None
    """What a reader should know, such as that a vector is not part of the explanation."""


class DocumentResponse(BaseModel):
    """A document."""

    id: str
    text: str
    labels: list[str]
    split: str | None
    metadata: dict[str, Any]


class DocumentsResponse(BaseModel):
    """The requested documents, or a page of all; `next` is the value of `after` for the next page."""

    documents: list[DocumentResponse]
    next: str | None = None


class AddResponse(BaseModel):
    """The result of an add, which is on disk; `documents` is the size of the collection."""

    inserted: int
    replaced: int
    without_known_words: int
    documents: int


class DeleteResponse(BaseModel):
    """The number of deleted documents, and the size of the collection."""

    deleted: int
    documents: int


class EncodeResponse(BaseModel):
    """Codes in hexadecimal; null for a text without any word that the model knows."""

    bits: int
    codes: list[str | None]


class BitMeaningResponse(BaseModel):
    """The words that a bit stands for."""

    bit: int
    on: list[list[str]]
    off: list[list[str]]
    balance: float | None
    uses_decoder: bool


class BitsResponse(BaseModel):
    """The words that each bit stands for."""

    method: str
    bits: int
    meanings: list[BitMeaningResponse]


class JobResponse(BaseModel):
    """A job is running; repeat the request to get its result.

    `done` is the fraction of its work that is done, as far as is known.
    """

    state: Literal["running"]
    seconds: float
    done: float


FieldValue: TypeAlias = bool | int | float | str | None


class MapValuesResponse(BaseModel):
    """The values of a field of the documents on the map."""

    values: list[FieldValue]


class MapPositionsResponse(BaseModel):
    """Positions of documents on the map, in the order of the request; null if a document has no code."""

    positions: list[tuple[float, float] | None]


class RegionResponse(BaseModel):
    """A part of the map, named by typical words; regions of a higher `level` are smaller."""

    level: int
    x: float
    y: float
    words: list[str]
    documents: int


class MapResponse(BaseModel):
    """A two-dimensional projection of the documents, one list entry per point."""

    state: Literal["ready"]
    current: bool
    documents: int
    ids: list[str]
    x: list[float]
    y: list[float]
    titles: list[str]
    labels: list[str | None]
    regions: list[RegionResponse]


class DuplicateResponse(BaseModel):
    """A document of a cluster of duplicates."""

    id: str
    action: Literal["keep", "drop"]
    cluster: int
    representative: str
    similarity: float
    distance: int
    title: str


class DuplicatesResponse(BaseModel):
    """Clusters of duplicate documents."""

    state: Literal["ready"]
    current: bool
    documents: int
    clusters: int
    duplicates: int
    left: int
    radius: int
    threshold: float
    largest: list[list[DuplicateResponse]]


class CollectionSummary(BaseModel):
    """A collection in the list of collections."""

    name: str
    documents: int
    bits: int
    method: str
    writable: bool


class CollectionsResponse(BaseModel):
    """The collections of this server."""

    collections: list[CollectionSummary]


class InfoResponse(BaseModel):
    """A description of a collection, as in `snuh info --json`."""

    model_config = ConfigDict(extra="allow")
    name: str
    writable: bool
    version: str
    documents: int
    searchable: int
    has_words: bool
    """Whether there is an index of words."""
    fields: list[str]
    hints: list[str]


class SampleResponse(BaseModel):
    """A sample of the documents with their codes in hexadecimal."""

    documents: list[DocumentResponse]
    codes: list[str]


class IndexResponse(BaseModel):
    """The index of approximate searches and its measured recall."""

    model_config = ConfigDict(extra="allow")
    state: Literal["ready"]
    current: bool
    description: str
    k: int
    recall: float
    documents: int


class FacetValue(BaseModel):
    """A value of a field, and the number of documents of the sample that have it."""

    value: bool | int | float | str
    documents: int


class FacetResponse(BaseModel):
    """A field that a filter can use."""

    name: str
    kind: Literal["text", "number", "boolean", "list", "mixed"]
    documents: int
    distinct: int
    min: float | None = None
    max: float | None = None
    values: list[FacetValue]


class CountResponse(BaseModel):
    """A number of documents."""

    documents: int


class ExamplesResponse(BaseModel):
    """Queries to try."""

    queries: list[str]


class FacetsResponse(BaseModel):
    """The fields of `documents` documents: all, or a sample if there are fewer than the `total`."""

    documents: int
    total: int
    facets: list[FacetResponse]


class StatusResponse(BaseModel):
    """The status of the server."""

    status: str


Responses: TypeAlias = dict[int | str, dict[str, Any]]  # as FastAPI takes them

ERRORS = {
    400: "The request is invalid.",
    401: "A token is required.",
    403: "The request is not permitted.",
    404: "There is no such collection or document.",
    408: "The body did not arrive in time.",
    413: "The body, or the response, is too large.",
    415: "The body does not have the expected Content-Type, or is compressed.",
    421: "The server does not answer to this host name.",
    429: "Too many requests.",
    503: "The collection is unavailable.",
}
WITH_BODY = (400, 404, 408, 413, 415, 503)  # errors of routes that read a body


def errors(*statuses: int) -> Responses:
    """Describe the errors of a route, besides those of all routes."""
    known: Responses = {
        status: {"model": ErrorResponse, "description": ERRORS[status]}
        for status in sorted({*statuses, 401, 403, 421, 429})
    }
    return known | {"default": {"model": ErrorResponse, "description": "Any other error."}}


def other_content(media_type: str, **schema: str) -> Responses:
    """Describe a successful response that is not JSON."""
    content = {media_type: {"schema": {"type": "string", **schema}}}
    return {200: {"description": "Success.", "content": content}}
