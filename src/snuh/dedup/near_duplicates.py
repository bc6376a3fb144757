"""From codes and rows to near-duplicates: who is compared, who is kept, and who stands for whom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snuh.codes import check_bits, check_codes
from snuh.dedup.leaders import elect, split_signs
from snuh.dedup.signatures import Distinct, Signs, find_distinct, part_signs, word_signs
from snuh.errors import InputError
from snuh.features.weighting import check_matrix, unit_rows

# What a search for near-duplicates found.


@dataclass(frozen=True, eq=False)
class Duplicates:
    """For every document whether it is kept, and the kept document that stands for it."""

    representative: NDArray[np.int64]  # (docs,) the row that stands for it: its own where it is kept
    similarity: NDArray[np.float32]  # (docs,) to the representative: 1 where it is kept
    threshold: float
    """The least similarity asked for; with a target, the least that was needed (1 where none was)."""
    codes_compared: int
    """How often two codes were compared; a pair that shares several words counts each time."""
    rows_compared: int
    """How many pairs of documents were compared word by word."""

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Whether each document is kept (docs,)."""
        own: NDArray[np.bool_] = self.representative == np.arange(len(self.representative))
        return own

    @property
    def cluster(self) -> NDArray[np.int64]:
        """The number of each document's cluster (docs,), in the order of their representatives; -1: alone."""
        sizes = np.bincount(self.representative, minlength=len(self.representative))
        number = np.where(sizes > 1, np.cumsum(sizes > 1) - 1, -1)
        return number[self.representative]


# Dropping only as many documents as a target asks for, the most similar first.

STEPS = 256  # thresholds between the one given and 1; what one of them drops too many is kept again


def strictest_enough(find: Callable[[float], Duplicates], loosest: Duplicates, *, drops: int) -> Duplicates:
    """Return what is found at a threshold that drops at least `drops`, where the next stricter one does not.

    Args:
        find: finds duplicates at a threshold.
        loosest: what it finds at the lowest threshold allowed, returned where even that drops too few.
        drops: how many documents to drop, at least 1.
    """
    lowest = loosest.threshold
    found, enough, too_strict = loosest, 0, STEPS + 1
    while _dropped(found) >= drops and too_strict - enough > 1:
        # The first look is at 1: copies alone are often enough, and cost next to nothing.
        step = STEPS if too_strict > STEPS else (enough + too_strict) // 2
        stricter = find(lowest + (1.0 - lowest) * step / STEPS)
        if _dropped(stricter) >= drops:
            found, enough = stricter, step
        else:
            too_strict = step
    return found


def drop_most_similar(found: Duplicates, *, drops: int, rank: NDArray[np.int64]) -> Duplicates:
    """Keep again what was dropped beyond `drops`: the least similar, among equals the low ranks."""
    dropped = np.flatnonzero(~found.kept)
    by_similarity = dropped[np.lexsort((-rank[dropped], -found.similarity[dropped]))]
    back = by_similarity[drops:]
    representative, similarity = found.representative.copy(), found.similarity.copy()
    representative[back] = back
    similarity[back] = 1.0
    least = min(similarity[by_similarity[:drops]], default=1.0)
    return replace(found, representative=representative, similarity=similarity, threshold=float(least))


def _dropped(found: Duplicates) -> int:
    return int((~found.kept).sum())


Measure = Literal["cosine", "overlap"]
Rows: TypeAlias = Any  # a scipy sparse matrix, or what NumPy reads as a 2-D array; scipy has no type stubs

NARROWEST_PART = 8  # bits: narrower parts of a code are shared by too many documents to be worth a look


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
    """Find the documents that repeat another one, and which one stands for each.

    Documents are taken in order of preference. One is dropped where a kept one before it has a code within
    the radius and a row at least as similar as the threshold: the most similar of those stands for it, the
    first among equals. So no chain of small steps makes one document stand for a quite different one. Copies
    (equal code and group, and equal in what is measured) share the fate of the first of them. A document
    without any word is kept.

    Args:
        codes: packed codes (docs, bytes).
        rows: TF-IDF rows (docs, terms) of the same documents; scaled to unit length where they are not.
        radius: the most bits in which two codes may differ; `usual_radius` is a good start.
        threshold: the least similarity, above 0 and up to 1; compared in single precision.
        measure: "cosine" of the rows, or "overlap" of their sets of words (common words / all words).
        groups: an integer for each document; only documents of the same group are compared.
        target: how many documents should be left. Only as many are dropped as that takes, the most similar
            first, and never one below the threshold; so more may be left, but no fewer.
        prefer: a number for each document: the one with the larger number is kept, among equals the first.

    Raises:
        InputError: For an argument that cannot be used.
    """
    packed = check_codes(codes)
    docs, bits = len(packed), packed.shape[1] * 8
    check_numbers(radius=radius, threshold=threshold, measure=measure, target=target, bits=bits)
    shape = getattr(rows, "shape", None) or np.shape(rows)
    if len(shape) != 2 or shape[0] != docs:
        raise InputError(f"expected one row for each of the {docs} codes, got rows of shape {shape}")
    in_groups, order = _check_groups(groups, docs), _order_of(prefer, docs)
    drops = docs if target is None else max(0, docs - target)
    if not drops:
        return Duplicates(np.arange(docs), np.ones(docs, dtype=np.float32), 1.0 if docs else threshold, 0, 0)
    distinct = find_distinct(packed, _weigh(rows, measure), groups=in_groups, order=order)

    def find(at_least: float) -> Duplicates:
        return _find_at(distinct, bits=bits, radius=radius, threshold=at_least, measure=measure)

    found = find(threshold)
    if target is None or (~found.kept).sum() < drops:
        return found
    rank = np.empty(docs, dtype=np.int64)
    rank[order] = np.arange(docs)
    return drop_most_similar(strictest_enough(find, found, drops=drops), drops=drops, rank=rank)


def _find_at(distinct: Distinct, *, bits: int, radius: int, threshold: float, measure: Measure) -> Duplicates:
    """Apply the leader rule to the distinct documents, and its outcome to all."""
    is_overlap = measure == "overlap"
    # Common words c of a and b words: c / (a + b - c) >= t says c >= t (a + b) / (1 + t), and a + b is at
    # least 2 sqrt(a b); so the cosine of the sets, c / sqrt(a b), is at least 2 t / (1 + t).
    cosine = 2.0 * threshold / (1.0 + threshold) if is_overlap else threshold
    leaders = elect(
        distinct.codes,
        distinct.rows,
        distinct.reach,
        _cheapest_signs(distinct, bits=bits, radius=radius, cosine=cosine),
        radius=radius,
        threshold=np.float32(threshold),
        cosine=cosine,
        is_overlap=is_overlap,
    )
    representative = np.arange(len(distinct.kind))
    similarity = np.ones(len(distinct.kind), dtype=np.float32)
    known = np.flatnonzero(distinct.kind >= 0)
    representative[known] = distinct.origin[leaders.leader[distinct.kind[known]]]
    similarity[known] = leaders.similarity[distinct.kind[known]]
    return Duplicates(representative, similarity, threshold, leaders.codes_compared, leaders.rows_compared)


def _cheapest_signs(distinct: Distinct, *, bits: int, radius: int, cosine: float) -> Signs:
    """Return the signs that the fewest pairs of documents share; all of them miss nothing."""
    choices = [word_signs(distinct.rows, distinct.reach, cosine=cosine)]
    if bits // (radius + 1) >= NARROWEST_PART:
        packed = distinct.codes.view(np.uint8)[:, : bits // 8]
        choices.append(part_signs(packed, radius=radius))
    if distinct.groups.any():
        choices = [signs.within(distinct.groups) for signs in choices]
    cheapest = min(choices, key=lambda signs: signs.work)
    if cheapest is not choices[0]:
        return cheapest
    return split_signs(cheapest, distinct.rows, distinct.reach, cosine=cosine)


def _weigh(rows: Rows, measure: Measure) -> Rows:
    """Return rows of unit length; where only the set of words counts, all of a row's words weigh the same."""
    matrix = check_matrix(rows)
    if measure == "overlap":
        matrix = type(matrix)((np.ones_like(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
    return unit_rows(matrix)


def check_numbers(*, radius: int, threshold: float, measure: str, target: int | None, bits: int) -> None:
    """Raise InputError for a number that cannot be used."""
    if not _is_whole(radius) or not 0 <= radius <= bits:
        raise InputError(f"radius must be a whole number from 0 to {bits}, got {radius!r}")
    if not 0.0 < threshold <= 1.0:
        raise InputError(f"threshold must be above 0 and at most 1, got {threshold!r}")
    if measure not in get_args(Measure):
        raise InputError(f'measure must be "cosine" or "overlap", got {measure!r}')
    if target is not None and (not _is_whole(target) or target < 1):
        raise InputError(f"target must be a whole number from 1, got {target!r}")


def _check_groups(groups: ArrayLike | None, docs: int) -> NDArray[np.int64]:
    """Return the groups numbered from 0; all 0 where none are given."""
    if groups is None:
        return np.zeros(docs, dtype=np.int64)
    array = np.asarray(groups)
    if array.shape != (docs,) or (docs and array.dtype.kind not in "iu"):
        raise InputError(
            f"groups must be one integer for each of the {docs} documents, "
            f"got {array.dtype} of shape {array.shape}"
        )
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def _order_of(prefer: ArrayLike | None, docs: int) -> NDArray[np.int64]:
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
        raise InputError("prefer must hold numbers that can be compared, got NaN")
    # Backwards twice: the largest first, and equals in the order given.
    return docs - 1 - np.argsort(array[::-1], kind="stable")[::-1]


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


# The radius and the threshold to start from, as measured by `python -m benchmarks.duplicates`.

DEFAULT_THRESHOLD = 0.85  # of the cosine; for the overlap 0.7 does as well
BITS_PER_STEP = 5


def default_radius(bits: int) -> int:
    """Return a radius that misses at most one near-duplicate in a hundred (measured at 64 and 128 bits)."""
    return check_bits(bits) // BITS_PER_STEP
