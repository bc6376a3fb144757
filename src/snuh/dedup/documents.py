"""Which documents repeat another one: from documents to a list of what to keep and what to drop, by id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh.corpus import Document
from snuh.corpus.document import JSON
from snuh.dedup.near_duplicates import (
    DEFAULT_THRESHOLD,
    Duplicates,
    Measure,
    check_numbers,
    default_radius,
    find_duplicates,
)
from snuh.encoding import document_batches
from snuh.errors import InputError
from snuh.io import dump_json
from snuh.model import Model

Keep = Literal["first", "last", "longest"]
Rows: TypeAlias = Any  # a CSR matrix; scipy has no type stubs


@dataclass(frozen=True, slots=True)
class Duplicate:
    """What to do with one document of a cluster, and why."""

    id: str
    keep: bool
    cluster: int
    representative: str  # the kept document that stands for it
    similarity: float  # to the representative
    distance: int  # bits in which the two codes differ

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "id": self.id,
            "action": "keep" if self.keep else "drop",
            "cluster": self.cluster,
            "representative": self.representative,
            "similarity": self.similarity,
            "distance": self.distance,
        }


@dataclass(frozen=True, slots=True)
class DuplicateReport:
    """The clusters of a search for near-duplicates."""

    documents: int  # looked at
    clusters: int
    radius: int
    threshold: float  # the least similarity; with a target, the least that was needed
    duplicates: tuple[Duplicate, ...]  # the documents of all clusters, by cluster, the kept one first

    @property
    def dropped(self) -> int:
        """How many documents could go."""
        return sum(not duplicate.keep for duplicate in self.duplicates)

    def biggest(self, limit: int) -> list[list[Duplicate]]:
        """Return the biggest clusters, the kept document of each first."""
        clusters = [list(members) for _, members in groupby(self.duplicates, key=lambda one: one.cluster)]
        return sorted(clusters, key=len, reverse=True)[:limit]

    def summary(self) -> dict[str, Any]:
        """Return the figures as plain values for JSON."""
        return {
            "documents": self.documents,
            "clusters": self.clusters,
            "duplicates": self.dropped,
            "left": self.documents - self.dropped,
            "radius": self.radius,
            "threshold": self.threshold,
        }


@dataclass(frozen=True, slots=True)
class _Read:
    """What the search needs of the documents."""

    ids: list[str]
    lengths: list[int]
    groups: list[int]
    rows: Rows
    codes: NDArray[np.uint8]


def deduplicate(
    model: Model,
    documents: Iterable[Document],
    *,
    radius: int | None = None,
    threshold: float = DEFAULT_THRESHOLD,
    measure: Measure = "cosine",
    group_by: str | None = None,
    target: int | None = None,
    keep: Keep = "first",
) -> DuplicateReport:
    """Find documents that repeat another one; no text is kept in memory.

    Args:
        model: makes the codes; documents without any word that it knows are left alone.
        documents: read once.
        radius: the most bits in which the codes of two duplicates differ; by default what is usual.
        threshold: the least similarity of two duplicates, above 0 and up to 1.
        measure: "cosine" of their TF-IDF rows, or "overlap" of their sets of words.
        group_by: a metadata field; only documents that agree in it are compared.
        target: how many documents to keep; only as many are dropped, the most similar first.
        keep: which of several duplicates stays.
    """
    if keep not in ("first", "last", "longest"):
        raise InputError(f'keep must be first, last or longest, got "{keep}"')
    radius = default_radius(model.bits) if radius is None else radius
    check_numbers(radius=radius, threshold=threshold, measure=measure, target=target, bits=model.bits)
    read = _read(model, documents, group_by)
    found = find_duplicates(
        read.codes,
        read.rows,
        radius=radius,
        threshold=threshold,
        measure=measure,
        groups=np.array(read.groups) if group_by is not None else None,
        target=target,
        prefer={"first": None, "last": np.arange(len(read.ids)), "longest": np.array(read.lengths)}[keep],
    )
    return DuplicateReport(
        documents=len(read.ids),
        clusters=int(found.cluster.max(initial=-1)) + 1,
        radius=radius,
        threshold=found.threshold,
        duplicates=tuple(_duplicates(found, read)),
    )


def _read(model: Model, documents: Iterable[Document], group_by: str | None) -> _Read:
    if model.features is None:
        raise InputError("this model was trained on a matrix of features: it cannot read texts")
    ids: list[str] = []
    lengths: list[int] = []
    groups: list[int] = []
    numbers: dict[str, int] = {}
    rows = [sparse.csr_matrix((0, len(model.features.terms)), dtype=np.float32)]
    for batch in document_batches(documents):
        ids += [document.id for document in batch]
        lengths += [len(document.text) for document in batch]
        if group_by is not None:
            groups += [numbers.setdefault(_group(document, group_by), len(numbers)) for document in batch]
        rows.append(model.features.transform([document.text for document in batch]))
    joined = sparse.vstack(rows, format="csr")
    return _Read(ids, lengths, groups, joined, model.encoder.encode(joined))


def _group(document: Document, field: str) -> str:
    special: dict[str, JSON] = {"split": document.split, "labels": list(document.labels)}
    return dump_json(document.metadata[field] if field in document.metadata else special.get(field))


def _duplicates(found: Duplicates, read: _Read) -> Sequence[Duplicate]:
    cluster, kept = found.cluster, found.kept
    members = np.flatnonzero(cluster >= 0)
    members = members[np.lexsort((members, ~kept[members], cluster[members]))]
    leaders = found.representative[members]
    differing = np.bitwise_count(read.codes[members] ^ read.codes[leaders]).sum(axis=1)
    return [
        Duplicate(
            read.ids[row],
            bool(kept[row]),
            int(cluster[row]),
            read.ids[leader],
            float(found.similarity[row]),
            int(distance),
        )
        for row, leader, distance in zip(members.tolist(), leaders.tolist(), differing.tolist(), strict=True)
    ]
