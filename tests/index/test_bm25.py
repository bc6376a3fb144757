"""BM25 from postings equals the formula, whatever was merged and dropped."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.ranking import bm25

from snuh.codes import pack, unpack
from snuh.index.bm25 import (
    Part,
    Postings,
    Standard,
    bm25_scores,
    build_postings,
    code_scores,
    key_of,
    merge_postings,
    standardize,
    telling_terms,
    top_rows,
)

WORDS = st.lists(st.sampled_from("abcdefg"), max_size=8)


def postings_of(documents: list[list[str]]) -> Postings:
    terms = sorted({word for document in documents for word in document})
    indptr, indices, counts = [0], [], []
    for document in documents:
        for word, count in sorted(Counter(document).items()):
            indices.append(terms.index(word))
            counts.append(count)
        indptr.append(len(indices))
    return build_postings(
        np.array([key_of(term) for term in terms], dtype=np.uint64),
        np.array(indptr, dtype=np.int64),
        np.array(indices, dtype=np.int32),
        np.array(counts, dtype=np.int32),
        np.array([len(document) for document in documents], dtype=np.int32),
    )


@given(documents=st.lists(WORDS, max_size=8), tail=st.lists(WORDS, max_size=4), query=WORDS, data=st.data())
def test_scores_are_those_of_the_formula(
    documents: list[list[str]], tail: list[list[str]], query: list[str], data: st.DataObject
) -> None:
    live = np.array([data.draw(st.booleans()) for _ in documents], dtype=bool)
    parts = [Part(postings_of(documents), live), Part(postings_of(tail))]
    base, rest = bm25_scores(parts, Counter(map(key_of, query)))
    current = [document for document, is_live in zip(documents, live, strict=True) if is_live] + tail
    expected = bm25(current, Counter(query))
    np.testing.assert_allclose([*base[live], *rest], expected, rtol=1e-4, atol=1e-5)

    numbers = np.full(len(documents), -1, dtype=np.int32)
    numbers[live] = np.arange(live.sum())
    later = np.arange(len(tail), dtype=np.int32) + live.sum()
    merged = merge_postings([(parts[0].postings, numbers), (parts[1].postings, later)], len(current))
    (again,) = bm25_scores([Part(merged)], Counter(map(key_of, query)))
    np.testing.assert_allclose(again, expected, rtol=1e-4, atol=1e-5)
    fresh = postings_of(current)
    for name in ("keys", "indptr", "rows", "counts", "lengths"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(fresh, name))


def test_the_telling_words_are_frequent_in_the_text_and_rare_in_others() -> None:
    parts = [Part(postings_of([["a", "b"], ["a", "c"], ["a", "d"]]))]
    weights = Counter(map(key_of, ("a", "b", "b", "c")))
    telling = telling_terms(parts, weights, limit=2)
    assert list(telling) == [key_of("b"), key_of("c")]
    assert telling[key_of("b")] == 2 * telling[key_of("c")]


@pytest.mark.parametrize("bits", [8, 64, 128])
def test_code_scores_are_the_asymmetric_ones_up_to_a_constant(bits: int) -> None:
    rng = np.random.default_rng(bits)
    codes, margins = pack(rng.random((50, bits)) < 0.5), rng.normal(size=bits)
    margins[0] = np.inf  # a constant bit
    weights = np.where(np.isfinite(margins), np.abs(margins), 0.0)
    cost = (unpack(codes) != (margins > 0)) @ weights
    np.testing.assert_allclose(code_scores(codes, margins), weights.sum() - 2 * cost, rtol=1e-4, atol=1e-4)


def test_scores_are_standardized_over_live_rows() -> None:
    scores = np.array([1, 2, 3, 100], dtype=np.float32)
    live = np.array([True, True, True, False])
    mean, inverse = standardize([(scores, live), (np.array([4], dtype=np.float32), None)])
    assert mean == pytest.approx(2.5) and 1 / inverse == pytest.approx(np.std([1, 2, 3, 4]))
    assert standardize([(np.ones(3, dtype=np.float32), None)]).inverse == 0.0
    assert standardize([]) == Standard(0.0, 0.0)


@given(
    words=st.lists(st.integers(0, 4), max_size=40), k=st.integers(0, 12), data=st.data(), masked=st.booleans()
)
def test_the_best_rows_are_those_of_a_full_sort(
    words: list[int], k: int, data: st.DataObject, masked: bool
) -> None:
    first = np.array(words, dtype=np.float32)
    second = np.array([data.draw(st.integers(0, 3)) for _ in words], dtype=np.float32)
    allowed = np.array([data.draw(st.booleans()) for _ in words], dtype=bool) if masked else None
    scales = (Standard(1.0, 2.0), Standard(0.5, 1.0))
    rows, sums = top_rows(first, second, scales, k=k, allowed=allowed)
    totals = (first - 1) * 2 + (second - 0.5)
    every = [row for row in range(len(words)) if allowed is None or allowed[row]]
    expected = sorted(every, key=lambda row: (-totals[row], row))[:k]
    assert rows.tolist() == expected
    np.testing.assert_allclose(sums, totals[expected])
