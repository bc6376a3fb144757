"""The result types of collections, and their JSON forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.corpus import Document
from snuh.features.vectors import VectorInfo
from snuh.metrics import CodeHealth

# Thresholds of `hints`
MIN_HEALTH_DOCUMENTS = 100  # fewer codes say nothing about a model
MAX_BUCKET_FRACTION = 0.1  # of documents with the same code
MIN_DISTINCT_FRACTION = 0.5
MIN_SEARCHABLE_FRACTION = 0.9
MIN_BALANCE = 0.2


@dataclass(frozen=True, slots=True)
class Added:
    """Counts of added documents."""

    inserted: int
    replaced: int
    without_code: int  # of both: documents without a known word, which have no code

    def __add__(self, other: Added) -> Added:
        return Added(
            self.inserted + other.inserted,
            self.replaced + other.replaced,
            self.without_code + other.without_code,
        )


@dataclass(frozen=True, slots=True)
class CodeRows:
    """Codes with the seqs of their documents, ordered by seq."""

    seqs: NDArray[np.int64]  # (documents,)
    codes: NDArray[np.uint8]  # (documents, bytes)


@dataclass(frozen=True, slots=True)
class Sample:
    """Documents of a collection in order of insertion, with their codes."""

    documents: list[Document]
    codes: NDArray[np.uint8]  # (documents, bytes)


@dataclass(frozen=True, slots=True)
class Page:
    """Documents of a collection in order of insertion."""

    documents: list[Document]
    next: str | None  # `after` of the next page; None at the end


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """The index of approximate searches and its measured recall."""

    settings: Mapping[str, int]  # by name; documented for each backend
    description: str  # the same for people: "3 of 40 lists are scanned"
    k: int  # at which the recall was measured
    recall: float  # fraction of the exact results found
    documents: int  # when it was measured


@dataclass(frozen=True, slots=True)
class Info:
    """The description of a collection."""

    name: str  # its location, with secrets redacted
    documents: int
    searchable: int  # documents with a code
    bits: int
    method: str
    vectors: VectorInfo | None  # that the model reads; None: words alone
    embedding: (
        str | None
    )  # makes the vectors of documents and queries here; None: those without are words alone
    vector_fraction: float | None  # of a sample of codes: those that words alone would not give
    model: str  # fingerprint
    fields: tuple[str, ...]  # metadata fields of all documents so far
    store_bytes: int
    code_bytes: int  # of data that only searches need
    has_words: bool  # whether there is an index of words
    index: IndexInfo | None
    health: CodeHealth | None  # of a sample of the codes; None if there are none

    @property
    def bytes_per_document(self) -> float:
        """Bytes on disk per document, including its text."""
        return (self.store_bytes + self.code_bytes) / max(1, self.documents)


def hints(info: Info) -> list[str]:
    """Return a sentence for each problem with the codes."""
    health = info.health
    if health is None or health.documents < MIN_HEALTH_DOCUMENTS:
        return []
    retrain = 'train a model on these documents with "snuh fit", then switch to it with "snuh rehash"'
    more_bits = 'look for duplicates with "snuh dedup", or use more bits'
    problems = []
    if info.searchable < MIN_SEARCHABLE_FRACTION * info.documents:
        hidden = info.documents - info.searchable
        problems.append(
            f"{hidden:,} of {info.documents:,} documents contain no word that the model knows, "
            f"so they have no code: {retrain}"
        )
    if health.constant_bits:
        problems.append(
            f"{health.constant_bits} of {health.bits} bits are the same for all documents "
            f"and carry no information: {retrain}"
        )
    if health.largest_bucket_fraction > MAX_BUCKET_FRACTION:
        problems.append(
            f"{health.largest_bucket_fraction:.0%} of the documents share one code, "
            f"so searches cannot tell them apart: {more_bits}"
        )
    elif health.distinct_codes < MIN_DISTINCT_FRACTION * health.documents:
        distinct = health.distinct_codes / health.documents
        problems.append(f"there are only {distinct:.0%} as many codes as documents: {more_bits}")
    if mean_balance(info) < MIN_BALANCE:
        problems.append(
            f"most bits are nearly the same for all documents and carry little information: {retrain}"
        )
    return problems


def mean_balance(info: Info) -> float:
    """Return the mean fraction of the rarer value of a bit; 0.5 is best."""
    fractions = info.health.ones_fraction if info.health is not None else (0.5,)
    return sum(min(fraction, 1 - fraction) for fraction in fractions) / len(fractions)


def info_to_json(info: Info, training: Mapping[str, Any]) -> dict[str, Any]:
    """Convert to JSON values; `training` is the training summary of the model."""
    health = None
    if info.health is not None:
        health = asdict(info.health) | {"alive": info.health.alive, "mean_balance": mean_balance(info)}
    return {
        "collection": info.name,
        "documents": info.documents,
        "searchable": info.searchable,
        "bytes_per_document": info.bytes_per_document,
        "scanned_bytes_per_document": info.bits // 8,
        "store_bytes": info.store_bytes,
        "code_bytes": info.code_bytes,
        "has_words": info.has_words,
        "model": {
            "method": info.method,
            "bits": info.bits,
            "fingerprint": info.model,
            "source": training.get("source"),
            "documents": training.get("documents"),
        },
        "vectors": None
        if info.vectors is None
        else {
            **info.vectors.to_json(),
            "embedding": info.embedding,
            "fraction": info.vector_fraction,
        },
        "fields": list(info.fields),
        "index": None if info.index is None else index_to_json(info.index),
        "health": health,
        "hints": hints(info),
    }


def index_to_json(index: IndexInfo) -> dict[str, Any]:
    """Convert to JSON values."""
    return {**index.settings, "k": index.k, "recall": index.recall, "documents": index.documents}
