"""Find near-duplicates among codes and rows, and choose which document represents each cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snuh.codes import check_bits, check_codes
from snuh.dedup.leaders import assign_leaders, split_signatures
from snuh.dedup.signatures import Distinct, Signatures, code_signatures, find_distinct, word_signatures
from snuh.errors import InputError
from snuh.features.weighting import check_matrix, unit_rows

Measure = Literal["cosine", "overlap"]
Rows: TypeAlias = (
    Any  # a scipy sparse matrix, or anything NumPy reads as a 2-D array; scipy has no type stubs
)

# Defaults measured by `python -m benchmarks.duplicates`.
DEFAULT_THRESHOLD = 0.85  # of the cosine; 0.7 is comparable for the overlap
BITS_PER_RADIUS = 5
MIN_PART_BITS = 8  # narrower parts of a code are shared by too many documents
THRESHOLD_STEPS = 256  # between the given threshold and 1, in the search for a target


@dataclass(frozen=True, eq=False)
class Duplicates:
    """For every document whether it is kept, and the kept document that represents it."""

    representative: NDArray[np.int64]  # (docs,) the row that represents it; its own if it is kept
    similarity: NDArray[np.float32]  # (docs,) to the representative; 1 if it is kept
    threshold: float
    """The minimum similarity; with a target, the lowest similarity that was needed (1 if none was)."""
    codes_compared: int
    """Number of code comparisons; a pair counts once for each token it shares."""
    rows_compared: int
    """Number of pairs of documents whose rows were compared."""

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Whether each document is kept (docs,)."""
        kept: NDArray[np.bool_] = self.representative == np.arange(len(self.representative))
        return kept

    @property
    def cluster(self) -> NDArray[np.int64]:
        """The cluster of each document (docs,), numbered by representative; -1 for a document on its own."""
        sizes = np.bincount(self.representative, minlength=len(self.representative))
        number = np.where(sizes > 1, np.cumsum(sizes > 1) - 1, -1)
        return number[self.representative]


def default_radius(bits: int) -> int:
    """Return a radius that misses at most 1 % of the near-duplicates (measured at 64 and 128 bits)."""
    return check_bits(bits) // BITS_PER_RADIUS


def find_duplicates(
    codes: ArrayLike,
    rows: Rows,
    *,
    radius: int,
    threshold: float,
    measure: Measure = "cosine",
    groups: ArrayLike | None = None,
    target: int | None = None,
    prefer: ArrayLike | None = None,
) -> Duplicates:
    """Find the documents that duplicate another one, and the representative of each.

    Documents are visited in order of preference. A document is dropped if an earlier kept one has a code
    within the radius and a row of at least the threshold's similarity; the most similar of those represents
    it, the first in case of ties. Every duplicate is thus similar to its representative itself, not just
    through a chain of others. Exact duplicates (equal code, group and measured row) have the representative
    of the first of them. A document without words is kept.

    Args:
        codes: packed codes (docs, bytes).
        rows: TF-IDF rows (docs, terms) of the same documents; scaled to unit length if necessary.
        radius: maximum Hamming distance of two codes; see `default_radius`.
        threshold: minimum similarity, above 0 and up to 1; compared in single precision.
        measure: "cosine" of the rows, or "overlap" of their sets of words (common words / all words).
        groups: an integer for each document; only documents of the same group are compared.
        target: number of documents to keep. No more are dropped than that takes, the most similar first,
            and none below the threshold; so more may be kept, but not fewer.
        prefer: a number for each document: the one with the larger number is kept, the first if equal.

    Raises:
        InputError: For an invalid argument.
    """
    packed = check_codes(codes)
    docs, bits = len(packed), packed.shape[1] * 8
    check_parameters(radius=radius, threshold=threshold, measure=measure, target=target, bits=bits)
    shape = getattr(rows, "shape", None) or np.shape(rows)
    if len(shape) != 2 or shape[0] != docs:
        raise InputError(f"expected one row for each of the {docs} codes, got rows of shape {shape}")
    in_groups, order = _check_groups(groups, docs), _preference_order(prefer, docs)
    drops = docs if target is None else max(0, docs - target)
    if not drops:
        return Duplicates(np.arange(docs), np.ones(docs, dtype=np.float32), 1.0 if docs else threshold, 0, 0)
    distinct = find_distinct(packed, _weigh(rows, measure), groups=in_groups, order=order)

    def find(min_similarity: float) -> Duplicates:
        return _find_at(distinct, bits=bits, radius=radius, threshold=min_similarity, measure=measure)

    duplicates = find(threshold)
    if target is None or (~duplicates.kept).sum() < drops:
        return duplicates
    rank = np.empty(docs, dtype=np.int64)
    rank[order] = np.arange(docs)
    return drop_most_similar(strictest_sufficient(find, duplicates, drops=drops), drops=drops, rank=rank)


def _find_at(distinct: Distinct, *, bits: int, radius: int, threshold: float, measure: Measure) -> Duplicates:
    """Apply the leader rule to the distinct documents, and map its result to all documents."""
    is_overlap = measure == "overlap"
    # With c common words of a and b words, c / (a + b - c) >= t is c >= t (a + b) / (1 + t). As a + b is at
    # least 2 sqrt(a b), the cosine of the sets, c / sqrt(a b), is at least 2 t / (1 + t).
    cosine = 2.0 * threshold / (1.0 + threshold) if is_overlap else threshold
    leaders = assign_leaders(
        distinct.codes,
        distinct.rows,
        distinct.suffix_norm,
        _cheapest_signatures(distinct, bits=bits, radius=radius, cosine=cosine),
        radius=radius,
        threshold=np.float32(threshold),
        cosine=cosine,
        is_overlap=is_overlap,
    )
    representative = np.arange(len(distinct.inverse))
    similarity = np.ones(len(distinct.inverse), dtype=np.float32)
    nonempty = np.flatnonzero(distinct.inverse >= 0)
    representative[nonempty] = distinct.origin[leaders.leader[distinct.inverse[nonempty]]]
    similarity[nonempty] = leaders.similarity[distinct.inverse[nonempty]]
    return Duplicates(representative, similarity, threshold, leaders.codes_compared, leaders.rows_compared)


def _cheapest_signatures(distinct: Distinct, *, bits: int, radius: int, cosine: float) -> Signatures:
    """Return the signatures that the fewest pairs share; either kind misses no duplicate."""
    choices = [word_signatures(distinct.rows, distinct.suffix_norm, cosine=cosine)]
    if bits // (radius + 1) >= MIN_PART_BITS:
        packed = distinct.codes.view(np.uint8)[:, : bits // 8]
        choices.append(code_signatures(packed, radius=radius))
    if distinct.groups.any():
        choices = [signatures.within(distinct.groups) for signatures in choices]
    cheapest = min(choices, key=lambda signatures: signatures.n_pairs)
    if cheapest is not choices[0]:
        return cheapest
    return split_signatures(cheapest, distinct.rows, distinct.suffix_norm, cosine=cosine)


def _weigh(rows: Rows, measure: Measure) -> Rows:
    """Return unit rows; for the overlap, all words of a row get the same weight."""
    matrix = check_matrix(rows)
    if measure == "overlap":
        matrix = type(matrix)((np.ones_like(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
    return unit_rows(matrix)


def strictest_sufficient(
    find: Callable[[float], Duplicates], loosest: Duplicates, *, drops: int
) -> Duplicates:
    """Return the duplicates at the highest threshold step that still drops at least `drops` documents.

    Args:
        find: finds duplicates at a threshold.
        loosest: its result at the lowest threshold allowed, returned if even that drops too few.
        drops: number of documents to drop, at least 1.
    """
    lowest = loosest.threshold
    best, sufficient, too_strict = loosest, 0, THRESHOLD_STEPS + 1
    while _dropped(best) >= drops and too_strict - sufficient > 1:
        # Try 1 first: exact duplicates are cheap to find and often suffice.
        step = THRESHOLD_STEPS if too_strict > THRESHOLD_STEPS else (sufficient + too_strict) // 2
        stricter = find(lowest + (1.0 - lowest) * step / THRESHOLD_STEPS)
        if _dropped(stricter) >= drops:
            best, sufficient = stricter, step
        else:
            too_strict = step
    return best


def drop_most_similar(duplicates: Duplicates, *, drops: int, rank: NDArray[np.int64]) -> Duplicates:
    """Drop only the `drops` most similar; of equally similar ones those of higher rank."""
    dropped = np.flatnonzero(~duplicates.kept)
    by_similarity = dropped[np.lexsort((-rank[dropped], -duplicates.similarity[dropped]))]
    restored = by_similarity[drops:]
    representative, similarity = duplicates.representative.copy(), duplicates.similarity.copy()
    representative[restored] = restored
    similarity[restored] = 1.0
    lowest = float(min(similarity[by_similarity[:drops]], default=1.0))
    return replace(duplicates, representative=representative, similarity=similarity, threshold=lowest)


def _dropped(duplicates: Duplicates) -> int:
    return int((~duplicates.kept).sum())


def check_parameters(*, radius: int, threshold: float, measure: str, target: int | None, bits: int) -> None:
    """Raise InputError for an invalid parameter."""
    if not _is_integer(radius) or not 0 <= radius <= bits:
        raise InputError(f"radius must be an integer from 0 to {bits}, got {radius!r}")
    if not 0.0 < threshold <= 1.0:
        raise InputError(f"threshold must be above 0 and at most 1, got {threshold!r}")
    if measure not in get_args(Measure):
        raise InputError(f'measure must be "cosine" or "overlap", got {measure!r}')
    if target is not None and (not _is_integer(target) or target < 1):
        raise InputError(f"target must be an integer of at least 1, got {target!r}")


def _check_groups(groups: ArrayLike | None, docs: int) -> NDArray[np.int64]:
    """Return the groups numbered from 0; all 0 by default."""
    if groups is None:
        return np.zeros(docs, dtype=np.int64)
    array = np.asarray(groups)
    if array.shape != (docs,) or (docs and array.dtype.kind not in "iu"):
        raise InputError(
            f"groups must be one integer for each of the {docs} documents, "
            f"got {array.dtype} of shape {array.shape}"
        )
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def _preference_order(prefer: ArrayLike | None, docs: int) -> NDArray[np.int64]:
    """Return the documents in order of preference."""
    if prefer is None:
        return np.arange(docs)
    array = np.asarray(prefer)
    if array.shape != (docs,) or (docs and array.dtype.kind not in "biufMm"):
        raise InputError(
            f"prefer must be one number for each of the {docs} documents, "
            f"got {array.dtype} of shape {array.shape}"
        )
    if (array != array).any():
        raise InputError("prefer must not contain NaN")
    # Reversed twice: the largest first, and ties in the original order.
    return docs - 1 - np.argsort(array[::-1], kind="stable")[::-1]


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
