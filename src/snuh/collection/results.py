"""What a collection answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.corpus import Document
from snuh.metrics import CodeHealth


@dataclass(frozen=True, slots=True)
class Added:
    """What happened to the documents that were added."""

    inserted: int
    replaced: int
    without_code: int  # of both, how many hold no word that the model knows: searches do not find them

    def __add__(self, other: Added) -> Added:
        return Added(
            self.inserted + other.inserted,
            self.replaced + other.replaced,
            self.without_code + other.without_code,
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """Some documents of a collection in the order of insertion, and their codes."""

    documents: list[Document]
    codes: NDArray[np.uint8]  # (documents, bytes)


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """The index that approximate searches use, and its measured recall."""

    settings: Mapping[str, int]  # by name; see the page of the backend
    words: str  # the same for people: "3 of 40 lists are read"
    k: int  # for which the recall was measured
    recall: float  # share of the exact answer found
    documents: int  # there were then


@dataclass(frozen=True, slots=True)
class Info:
    """What a collection is."""

    address: str  # without any secret
    documents: int
    searchable: int  # documents with a code
    bits: int
    method: str
    model: str  # fingerprint
    fields: tuple[str, ...]  # names that metadata have had
    store_bytes: int
    code_bytes: int  # of what only searches need
    index: IndexInfo | None
    health: CodeHealth | None  # of a sample of the codes; None where there are none

    @property
    def bytes_per_document(self) -> float:
        """Bytes on disk for each document, its text included."""
        return (self.store_bytes + self.code_bytes) / max(1, self.documents)


# Codes as rows of an array.


@dataclass(frozen=True, slots=True)
class CodeRows:
    """Codes with the seq of their documents, by seq."""

    seqs: NDArray[np.int64]  # (documents,)
    codes: NDArray[np.uint8]  # (documents, bytes)


# What a collection is as plain values, and what is bad about its codes in words.

MIN_DOCUMENTS_TO_JUDGE = 100  # documents; the codes of a handful have nothing to tell
BIG_BUCKET, FEW_DISTINCT, FEW_SEARCHABLE, LOPSIDED = 0.1, 0.5, 0.9, 0.2


def hints(found: Info) -> list[str]:
    """Return what is bad about the codes, a sentence each."""
    health = found.health
    if health is None or health.documents < MIN_DOCUMENTS_TO_JUDGE:
        return []
    again = 'learn from these documents with "snuh fit", and take that model with "snuh rehash"'
    said = []
    if found.searchable < FEW_SEARCHABLE * found.documents:
        hidden = found.documents - found.searchable
        said.append(
            f"{hidden:,} of {found.documents:,} documents hold no word that the model knows, "
            f"and searches do not find them: {again}"
        )
    if health.constant_bits:
        said.append(
            f"{health.constant_bits} of {health.bits} bits are the same for all documents: "
            f"they tell nothing apart; {again}"
        )
    if health.largest_bucket_fraction > BIG_BUCKET:
        said.append(
            f"{health.largest_bucket_fraction:.0%} of the documents share one code, "
            'and searches cannot tell them apart: look for copies with "snuh dedup", or take more bits'
        )
    elif health.distinct_codes < FEW_DISTINCT * health.documents:
        share = health.distinct_codes / health.documents
        said.append(
            f"there are only {share:.0%} as many codes as documents: "
            'look for copies with "snuh dedup", or take more bits'
        )
    if mean_balance(found) < LOPSIDED:
        said.append(f"most bits are nearly the same for all documents, and tell little apart: {again}")
    return said


def mean_balance(found: Info) -> float:
    """Return the mean share of the rarer value of a bit: 0.5 is best."""
    shares = found.health.ones_fraction if found.health is not None else (0.5,)
    return sum(min(share, 1 - share) for share in shares) / len(shares)


def info_to_json(found: Info, training: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain values for JSON; `training` is what the model says of its own."""
    health = None
    if found.health is not None:
        health = asdict(found.health) | {"alive": found.health.alive, "mean_balance": mean_balance(found)}
    return {
        "collection": found.address,
        "documents": found.documents,
        "searchable": found.searchable,
        "bytes_per_document": found.bytes_per_document,
        "scanned_bytes_per_document": found.bits // 8,
        "store_bytes": found.store_bytes,
        "code_bytes": found.code_bytes,
        "model": {
            "method": found.method,
            "bits": found.bits,
            "fingerprint": found.model,
            "source": training.get("source"),
            "documents": training.get("documents"),
        },
        "fields": list(found.fields),
        "index": None if found.index is None else index_to_json(found.index),
        "health": health,
        "hints": hints(found),
    }


def index_to_json(approximate: IndexInfo) -> dict[str, Any]:
    """Return plain values for JSON."""
    return {
        **approximate.settings,
        "k": approximate.k,
        "recall": approximate.recall,
        "documents": approximate.documents,
    }
