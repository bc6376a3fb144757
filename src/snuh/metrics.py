"""Quality of codes by labels, of rankings by judgments, and statistics of the bits (code health).

Ties. Many documents have the same distance, so the top k is not unique. With c documents strictly closer
than the k-th (a of them relevant) and t documents at its distance (r of them relevant), the expected
precision over random orders of the ties is (a + (k - c) r / t) / k. This module reports that expectation,
which is deterministic. If k exceeds the size of the database, it is reduced to that size.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.codes import check_codes, count_distances, hamming_blocks, unpack
from snuh.errors import InputError

Codes = NDArray[np.uint8]
Labels = Sequence[Collection[str]]

HEADLINE_CUTOFF = 100
CUTOFFS = (1, 10, 50, HEADLINE_CUTOFF, 1000)
RADIUS = 2
_BLOCK_ROWS = 1 << 14


@dataclass(frozen=True, slots=True)
class CodeHealth:
    """Statistics of a set of codes, which need no labels."""

    documents: int
    bits: int
    distinct_codes: int
    largest_bucket_fraction: float
    """The fraction of documents with the most common code."""
    ones_fraction: tuple[float, ...]
    """For each bit, the fraction of documents where it is 1; 0.5 is balanced."""
    constant_bits: int
    """The number of bits that are equal in all documents."""
    bit_correlation: float | None
    """Mean absolute correlation over pairs of bits that vary; None if fewer than two do."""

    @property
    def alive(self) -> bool:
        """Whether the codes distinguish documents at all.

        There are at least three distinct codes, fewer than half of the bits are constant, and at most half of
        the documents share one code. A collapsed training violates one of the three; a weak model does not.
        """
        return (
            self.distinct_codes > 2
            and 2 * self.constant_bits < self.bits
            and self.largest_bucket_fraction <= 0.5
        )


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of codes by labels; a document is relevant if it shares a label with the query."""

    precision: Mapping[int, float]
    """Cutoff k -> expected precision@k, the mean over queries."""
    random_precision: float
    """The expected precision of random codes at any cutoff."""
    radius: int
    precision_within_radius: float
    """Mean over queries; a query without documents within the radius counts as 0."""
    empty_radius_fraction: float
    """The fraction of queries without documents within the radius."""
    queries: int
    queries_without_labels: int
    """Excluded from all scores."""
    health: CodeHealth
    """Statistics of the codes of the database."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; the cutoffs become string keys."""
        health = asdict(self.health) | {"alive": self.health.alive}
        precision = {str(cutoff): score for cutoff, score in self.precision.items()}
        return asdict(self) | {"precision": precision, "health": health}


@dataclass(frozen=True, slots=True)
class DistanceCounts:
    """Numbers of documents and of relevant ones at each distance from each query: (queries, bits + 1)."""

    documents: NDArray[np.int64]
    hits: NDArray[np.int64] | NDArray[np.float64]
    """Integers for labels; sums for callers with another gain."""


def evaluate_codes(
    query_codes: Codes,
    query_labels: Labels,
    codes: Codes,
    labels: Labels,
    *,
    cutoffs: Sequence[int] | None = None,
    radius: int = RADIUS,
) -> Evaluation:
    """Score how well codes retrieve relevant documents.

    The default cutoffs are 100 and those of 1, 10, 50 and 1000 that do not exceed the size of the database.
    """
    cutoffs = _default_cutoffs(len(codes)) if cutoffs is None else tuple(cutoffs)
    counts = count_by_distance(query_codes, query_labels, codes, labels)
    within, has_near = _precision_within(counts, radius=radius)
    return Evaluation(
        precision={k: float(expected_precision(counts, k=k).mean()) for k in cutoffs},
        random_precision=float(expected_precision(counts, k=len(codes)).mean()),
        radius=radius,
        precision_within_radius=float(within.mean()),
        empty_radius_fraction=float(1 - has_near.mean()),
        queries=len(counts.documents),
        queries_without_labels=len(query_labels) - len(counts.documents),
        health=code_health(codes),
    )


def precision_at_k(
    query_codes: Codes, query_labels: Labels, codes: Codes, labels: Labels, *, k: int = HEADLINE_CUTOFF
) -> float:
    """Return the expected precision at k over random orders of ties, averaged over queries with labels."""
    counts = count_by_distance(query_codes, query_labels, codes, labels)
    return float(expected_precision(counts, k=k).mean())


def count_by_distance(
    query_codes: Codes, query_labels: Labels, codes: Codes, labels: Labels
) -> DistanceCounts:
    """Count documents and hits at each distance from each query; queries without labels are skipped."""
    query_codes, codes = check_codes(query_codes), check_codes(codes)
    _check_labels(query_labels, query_codes, "query")
    _check_labels(labels, codes, "database")
    if not len(codes):
        raise InputError("the database is empty: precision needs at least one document")
    labelled = np.array([bool(names) for names in query_labels], dtype=bool)
    if not labelled.any():
        raise InputError("no query has labels: precision needs queries with at least one label")

    query_matrix, matrix = _label_matrices(query_labels, labels)
    query_codes, query_matrix = query_codes[labelled], query_matrix[labelled]
    bits = codes.shape[1] * 8
    documents = np.empty((len(query_codes), bits + 1), dtype=np.int64)
    hits = np.empty_like(documents)
    for block, distances in hamming_blocks(query_codes, codes):
        documents[block] = count_distances(distances, bits=bits)
        hits[block] = _count_hits(distances, query_matrix[block] @ matrix.T, bits=bits)
    return DistanceCounts(documents, hits)


def expected_precision(counts: DistanceCounts, *, k: int) -> NDArray[np.float64]:
    """Return each query's expected precision at k over random orders of ties."""
    if k < 1:
        raise InputError(f"a cutoff must be at least 1, got {k}")
    query = np.arange(len(counts.documents))
    reached = counts.documents.cumsum(axis=1)
    hits_reached = counts.hits.cumsum(axis=1)
    k = min(k, int(reached[0, -1]))
    cut = (reached >= k).argmax(axis=1)  # the distance of the k-th document
    tied, tied_hits = counts.documents[query, cut], counts.hits[query, cut]
    closer, closer_hits = reached[query, cut] - tied, hits_reached[query, cut] - tied_hits
    return np.asarray((closer_hits + (k - closer) * tied_hits / tied) / k, dtype=np.float64)


def code_health(codes: Codes) -> CodeHealth:
    """Compute statistics of codes: distinct codes, balance and correlation of bits."""
    codes = check_codes(codes)
    documents, bits = len(codes), codes.shape[1] * 8
    if not documents:
        raise InputError("there are no codes: expected at least one")
    buckets = np.unique(codes.view(f"V{codes.shape[1]}"), return_counts=True)[1]
    both_set = _count_pairs_set(codes)  # (bits, bits); its diagonal counts the ones of each bit
    ones = both_set.diagonal()
    return CodeHealth(
        documents=documents,
        bits=bits,
        distinct_codes=len(buckets),
        largest_bucket_fraction=float(buckets.max() / documents),
        ones_fraction=tuple((ones / documents).tolist()),
        constant_bits=int(((ones == 0) | (ones == documents)).sum()),
        bit_correlation=_mean_correlation(both_set, documents),
    )


def _default_cutoffs(documents: int) -> tuple[int, ...]:
    return tuple(k for k in CUTOFFS if k <= documents or k == HEADLINE_CUTOFF)


def _check_labels(labels: Labels, codes: Codes, what: str) -> None:
    if len(labels) != len(codes):
        raise InputError(
            f"each {what} document needs labels: got {len(codes)} codes and {len(labels)} labels"
        )
    if any(isinstance(names, str) for names in labels):
        # A string is a collection of strings too: its characters would silently become labels.
        raise InputError(
            f"each {what} document needs a tuple of labels, got a string: write ('sport',) for one"
        )


def _label_matrices(query_labels: Labels, labels: Labels) -> tuple[Any, Any]:
    """Return CSR indicators (queries, names) and (documents, names); Any, as scipy has no type stubs."""
    from scipy.sparse import csr_matrix

    # Sorted, so that the result does not depend on the hash seed.
    known = sorted({name for names in labels for name in names})
    columns = {name: column for column, name in enumerate(known)}

    def indicators(rows: Labels) -> Any:
        # A label that no document of the database has cannot match.
        known_columns = [sorted({columns[name] for name in names if name in columns}) for names in rows]
        indptr = np.cumsum([0, *map(len, known_columns)])
        indices = np.array([column for row in known_columns for column in row], dtype=np.int64)
        ones = np.ones(len(indices), dtype=np.int32)
        return csr_matrix((ones, indices, indptr), shape=(len(rows), len(columns)))

    return indicators(query_labels), indicators(labels)


def _count_hits(distances: NDArray[np.uint16], shared: Any, *, bits: int) -> NDArray[np.int64]:
    """Count hits by distance; `shared` has the sparse (queries, documents) numbers of shared labels."""
    rows = np.repeat(np.arange(len(distances)), np.diff(shared.indptr))
    keys = distances[rows, shared.indices] + rows * (bits + 1)
    return np.bincount(keys, minlength=len(distances) * (bits + 1)).reshape(-1, bits + 1)


def _precision_within(
    counts: DistanceCounts, *, radius: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return each query's precision within the radius (0 if it is empty) and whether it is not empty."""
    if radius < 0:
        raise InputError(f"the radius must be 0 or more, got {radius}")
    near = counts.documents[:, : radius + 1].sum(axis=1)
    hits = counts.hits[:, : radius + 1].sum(axis=1)
    return hits / np.maximum(near, 1), near > 0


def _count_pairs_set(codes: Codes) -> NDArray[np.float64]:
    """Count, for each pair of bits, the documents where both are 1."""
    bits = codes.shape[1] * 8
    both_set = np.zeros((bits, bits))
    for start in range(0, len(codes), _BLOCK_ROWS):
        ones = unpack(codes[start : start + _BLOCK_ROWS]).astype(np.float32)
        both_set += ones.T @ ones  # exact: counts within a block stay far below 2**24
    return both_set


def _mean_correlation(both_set: NDArray[np.float64], documents: int) -> float | None:
    ones_fraction = both_set.diagonal() / documents
    variance = ones_fraction * (1 - ones_fraction)
    varies = variance > 0
    if varies.sum() < 2:
        return None
    covariance = both_set / documents - np.outer(ones_fraction, ones_fraction)
    deviation = np.sqrt(variance[varies])
    correlation = covariance[np.ix_(varies, varies)] / np.outer(deviation, deviation)
    pairs = np.triu_indices(len(correlation), k=1)
    return float(np.abs(correlation[pairs]).mean())


@dataclass(frozen=True, slots=True)
class RankingQuality:
    """How good the ranking of a judged query is, as trec_eval defines it."""

    ndcg_at_10: float
    """Discounted gain of the first 10, with the grades as gains, relative to the best possible ranking."""
    average_precision: float
    """Mean of the precision at each relevant document; 0 for those that were not found. Its mean is MAP."""
    recall_at_100: float
    """Fraction of the relevant documents among the first 100."""
    reciprocal_rank: float
    """1 / rank of the first relevant document. Its mean is MRR."""


def ranking_quality(ranking: Sequence[str], grades: Mapping[str, int]) -> RankingQuality:
    """Compare the ids of a ranking with the grades of judged documents, of which at least one is relevant."""
    relevant = sum(grade > 0 for grade in grades.values())
    gains = [max(0, grades.get(doc_id, 0)) for doc_id in ranking]
    ideal = sorted((max(0, grade) for grade in grades.values()), reverse=True)
    ranks = [rank for rank, gain in enumerate(gains, start=1) if gain > 0]
    return RankingQuality(
        ndcg_at_10=_discounted(gains[:10]) / _discounted(ideal[:10]),
        average_precision=sum(count / rank for count, rank in enumerate(ranks, start=1)) / relevant,
        recall_at_100=sum(rank <= 100 for rank in ranks) / relevant,
        reciprocal_rank=1.0 / ranks[0] if ranks else 0.0,
    )


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def paired_interval(
    differences: Sequence[float], *, confidence: float = 0.95, samples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Return the bootstrap interval of a mean difference over queries."""
    values = np.asarray(differences, dtype=np.float64)
    rng = np.random.default_rng(seed)
    means = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(samples)]
    low, high = np.quantile(means, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    return float(low), float(high)
