"""From codes and rows to near-duplicates: who is compared, who is kept, and who stands for whom."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snuh.codes import check_codes
from snuh.duplicates.distinct import Distinct, find_distinct
from snuh.duplicates.leaders import elect
from snuh.duplicates.result import Duplicates
from snuh.duplicates.signs import Signs, part_signs, word_signs
from snuh.duplicates.splitting import split_signs
from snuh.duplicates.target import drop_most_similar, strictest_enough
from snuh.errors import InputError
from snuh.features.matrix import check_matrix, unit_rows

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
