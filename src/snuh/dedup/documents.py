"""Find duplicate documents, and list by id which to keep and which to drop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh.codes import hamming_pairs
from snuh.corpus import Document
from snuh.corpus.document import JSON
from snuh.corpus.rows import iterate_documents
from snuh.dedup.near_duplicates import (
    DEFAULT_THRESHOLD,
    Duplicates,
    Measure,
    check_parameters,
    default_radius,
    find_duplicates,
)
from snuh.encoding import document_batches
from snuh.errors import InputError
from snuh.features.analyzer import Analyzer
from snuh.features.weighting import TermColumns
from snuh.io import dump_json
from snuh.model import Model

Keep = Literal["first", "last", "longest"]
Rows: TypeAlias = Any  # a CSR matrix; scipy has no type stubs


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Whether to keep one document of a cluster, and why."""

    id: str
    keep: bool
    cluster: int
    representative: str  # the kept document of its cluster
    similarity: float  # to the representative
    distance: int  # Hamming distance of the two codes

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
    """The clusters of near-duplicates."""

    documents: int  # searched
    clusters: int
    radius: int
    threshold: float  # minimum similarity; with a target, the lowest that was needed
    duplicates: tuple[Duplicate, ...]  # all clusters in order, the kept document of each first

    @property
    def dropped(self) -> int:
        """Number of documents that can be dropped."""
        return sum(not duplicate.keep for duplicate in self.duplicates)

    def largest(self, limit: int) -> list[list[Duplicate]]:
        """Return the largest clusters, the kept document of each first."""
        clusters = [list(members) for _, members in groupby(self.duplicates, key=attrgetter("cluster"))]
        return sorted(clusters, key=len, reverse=True)[:limit]

    def summary(self) -> dict[str, Any]:
        """Return the totals as plain values for JSON."""
        return {
            "documents": self.documents,
            "clusters": self.clusters,
            "duplicates": self.dropped,
            "left": self.documents - self.dropped,
            "radius": self.radius,
            "threshold": self.threshold,
        }


@dataclass(frozen=True, slots=True)
class _Corpus:
    """Ids, lengths, groups, rows (of all their words) and codes of the documents."""

    ids: list[str]
    lengths: list[int]
    groups: list[int]
    rows: Rows
    codes: NDArray[np.uint8]


def deduplicate(
    model: Model,
    documents: Iterable[Any],
    *,
    radius: int | None = None,
    threshold: float = DEFAULT_THRESHOLD,
    measure: Measure = "cosine",
    group_by: str | None = None,
    target: int | None = None,
    keep: Keep = "first",
) -> DuplicateReport:
    """Find duplicate documents; texts are not held in memory.

    Args:
        model: encodes the documents.
        documents: of any kind that `open_source` takes; iterated once.
        radius: maximum Hamming distance of the codes of two duplicates; see `default_radius`.
        threshold: minimum similarity of two duplicates, above 0 and up to 1.
        measure: "cosine" of their rows (`WordRows`), or "overlap" of their sets of words; all words count,
            not only those that the model knows.
        group_by: a metadata field; only documents with equal values are compared.
        target: number of documents to keep; no more are dropped than that takes, the most similar first.
        keep: which of several duplicates to keep.
    """
    if keep not in ("first", "last", "longest"):
        raise InputError(f'keep must be first, last or longest, got "{keep}"')
    radius = default_radius(model.bits) if radius is None else radius
    check_parameters(radius=radius, threshold=threshold, measure=measure, target=target, bits=model.bits)
    corpus = _read(model, documents, group_by)
    result = find_duplicates(
        corpus.codes,
        corpus.rows,
        radius=radius,
        threshold=threshold,
        measure=measure,
        groups=np.array(corpus.groups) if group_by is not None else None,
        target=target,
        prefer={"first": None, "last": np.arange(len(corpus.ids)), "longest": np.array(corpus.lengths)}[keep],
    )
    return DuplicateReport(
        documents=len(corpus.ids),
        clusters=int(result.cluster.max(initial=-1)) + 1,
        radius=radius,
        threshold=result.threshold,
        duplicates=tuple(_duplicates(result, corpus)),
    )


def _read(model: Model, documents: Iterable[Any], group_by: str | None) -> _Corpus:
    if model.features is None:
        raise InputError("this model was trained on a matrix of features: it cannot read texts")
    ids: list[str] = []
    lengths: list[int] = []
    groups: list[int] = []
    numbers: dict[str, int] = {}
    words = WordRows()
    codes = [np.zeros((0, model.bits // 8), dtype=np.uint8)]
    for batch in document_batches(iterate_documents(documents)):
        ids += [document.id for document in batch]
        lengths += [len(document.text) for document in batch]
        if group_by is not None:
            groups += [numbers.setdefault(_group(document, group_by), len(numbers)) for document in batch]
        texts = [document.text for document in batch]
        words.add(texts)
        codes.append(model.encoder.encode(model.features.transform(texts)))
    return _Corpus(ids, lengths, groups, words.rows(), np.concatenate(codes))


def _group(document: Document, field: str) -> str:
    special: dict[str, JSON] = {"split": document.split, "labels": list(document.labels)}
    return dump_json(document.metadata[field] if field in document.metadata else special.get(field))


def _duplicates(result: Duplicates, corpus: _Corpus) -> Sequence[Duplicate]:
    cluster, kept = result.cluster, result.kept
    members = np.flatnonzero(cluster >= 0)
    members = members[np.lexsort((members, ~kept[members], cluster[members]))]
    leaders = result.representative[members]
    distances = hamming_pairs(corpus.codes[members], corpus.codes[leaders])
    return [
        Duplicate(
            corpus.ids[row],
            bool(kept[row]),
            int(cluster[row]),
            corpus.ids[leader],
            float(result.similarity[row]),
            int(distance),
        )
        for row, leader, distance in zip(members.tolist(), leaders.tolist(), distances.tolist(), strict=True)
    ]


class WordRows:
    """Collects texts batch by batch; `rows` then returns one row of unit length per text.

    The vocabulary of a model tells topics apart, not documents: it may have only one word of "Quotient in
    Matlab" and of "When not to vectorize Matlab?". So every word counts here, weighted by the square root of
    its inverse document frequency among the documents that are compared. The root gives less weight to a
    misspelt word, which no other document has.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._columns = TermColumns(
            Analyzer(stemming=False), lambda word: self._numbers.setdefault(word, len(self._numbers))
        )
        self._sizes = [np.zeros(1, dtype=np.int64)]
        self._indices = [np.zeros(0, dtype=np.int32)]
        self._counts = [np.zeros(0, dtype=np.int32)]

    def add(self, texts: Sequence[str]) -> None:
        """Add the next texts."""
        counts = self._columns.count(texts)
        self._sizes.append(np.diff(counts.indptr))
        self._indices.append(counts.indices)
        self._counts.append(counts.counts)

    def rows(self) -> sparse.csr_matrix:
        """Return the rows of all texts (texts, distinct words)."""
        indptr = np.cumsum(np.concatenate(self._sizes))
        columns = np.concatenate(self._indices)
        texts, words = len(indptr) - 1, max(1, len(self._numbers))
        idf = np.log((1.0 + texts) / (1.0 + np.bincount(columns, minlength=words))) + 1.0
        tf = 1.0 + np.log(np.concatenate(self._counts))
        weights = (tf * np.sqrt(idf[columns])).astype(np.float32)
        rows = np.repeat(np.arange(texts), np.diff(indptr))
        norms = np.sqrt(np.bincount(rows, weights=np.square(weights, dtype=np.float64), minlength=texts))
        weights /= norms[rows].astype(np.float32)
        return sparse.csr_matrix((weights, columns, indptr), shape=(texts, words))
