"""What may be asked: the bodies of requests, each with its limits and an example."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_HITS, MOST_EXPLAINED, MOST_SHORTLISTED = 1_000, 100, 10_000
MOST_TEXTS, MOST_HITS_IN_ALL = 100, 10_000
MOST_DOCUMENTS, MOST_DELETED, MOST_GOT, MOST_SAMPLED = 1_000, 10_000, 100, 1_000
QUERY_CHARACTERS, FILTER_CHARACTERS, ID_CHARACTERS = 10_000, 10_000, 1_000
TEXT_CHARACTERS = 10_000_000  # the longest text that a collection takes
USUAL_CHARACTERS = 500

Query = Annotated[str, Field(max_length=QUERY_CHARACTERS)]
Identity = Annotated[str, Field(max_length=ID_CHARACTERS)]
Where = Annotated[str, Field(max_length=FILTER_CHARACTERS)]


class Ask(BaseModel):
    """A body: nothing but the named fields, and no guessing of types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Options(Ask):
    """How to search."""

    k: int = Field(10, ge=1, le=MOST_HITS, description="Most hits.")
    where: Where | None = Field(None, description="A filter, such as `year >= 2020`.")
    radius: int | None = Field(None, ge=0, le=4096, description="Most bits in which a hit may differ.")
    rerank: Literal["asymmetric", "cosine"] | None = Field(None, description="Order the nearest more finely.")
    shortlist: int | None = Field(None, ge=1, le=MOST_SHORTLISTED, description="How many to reorder.")
    fast: bool = Field(False, description='Read only the lists made by "snuh index".')
    characters: int | None = Field(
        USUAL_CHARACTERS, ge=1, le=TEXT_CHARACTERS, description="Most of each text; null: whole texts."
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
            "fast": self.fast,
        }


class SimilarAsk(Options):
    """Look for documents like one of the collection."""

    id: Identity = Field(description="The document.", examples=["ticket-7"])
    explain: bool = Field(False, description="Tell which words brought each hit up.")


class SearchAsk(Options):
    """Look for a text, or for documents like one of the collection."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"text": "the printer eats my paper", "k": 3, "explain": True}, {"id": "ticket-7"}]
        }
    )
    text: Query | None = Field(None, description="What to look for.")
    id: Identity | None = Field(None, description="Or a document of the collection.")
    explain: bool = Field(False, description="Tell which words brought each hit up.")


class BatchAsk(Options):
    """Look for many texts, or many codes, at once."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"texts": ["paper jam", "wifi"], "k": 3}]})
    texts: list[Query] | None = Field(None, min_length=1, max_length=MOST_TEXTS)
    codes: list[Annotated[str, Field(pattern="^[0-9a-f]+$", max_length=128)]] | None = Field(
        None, min_length=1, max_length=MOST_TEXTS, description="Or codes, as hexadecimal digits."
    )


class ExplainAsk(Ask):
    """Why a document was found."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "the printer eats my paper", "id": "ticket-7"}]}
    )
    id: Identity = Field(description="The hit.")
    text: Query | None = Field(None, description="What was searched for.")
    query_id: Identity | None = Field(None, description="Or the document that was searched for.")


class EncodeAsk(Ask):
    """Texts to turn into codes."""

    texts: list[Annotated[str, Field(max_length=TEXT_CHARACTERS)]] = Field(
        min_length=1, max_length=MOST_TEXTS, examples=[["paper jam", "wifi"]]
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
        max_length=MOST_DOCUMENTS,
        examples=[[{"id": "new-1", "text": "paper jam", "year": 2024}]],
    )


class DeleteAsk(Ask):
    """Documents to delete, by their ids or by a filter."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["new-1"]}, {"where": "year < 2020"}]})
    ids: list[Identity] | None = Field(None, min_length=1, max_length=MOST_DELETED)
    where: Where | None = None


class ListsAsk(Ask):
    """How good fast searches should be."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"k": 10, "recall": 0.99}]})
    k: int = Field(10, ge=1, le=MOST_HITS, description="For which the recall is measured.")
    recall: float = Field(0.99, gt=0, le=1, description="The share of the exact answer that should be found.")
