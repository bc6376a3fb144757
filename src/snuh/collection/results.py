"""What a collection answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
class Fast:
    """What fast searches look into, and what was measured on it."""

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
    fast: Fast | None
    health: CodeHealth | None  # of a sample of the codes; None where there are none

    @property
    def bytes_per_document(self) -> float:
        """Bytes on disk for each document, its text included."""
        return (self.store_bytes + self.code_bytes) / max(1, self.documents)
