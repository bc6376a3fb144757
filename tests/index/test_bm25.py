"""BM25 from postings equals the formula, whatever was merged and dropped."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.ranking import bm25

from snuh.index.bm25 import (
    Part,
    Postings,
    bm25_scores,
    build_postings,
    key_of,
    merge_postings,
    telling_terms,
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
    spare: list[np.ndarray] = []
    scored = bm25_scores(parts, Counter(map(key_of, query)), spare=spare)
    base, rest = (one.dense(len(part.postings.lengths)) for one, part in zip(scored, parts, strict=True))
    assert not any(zeros.any() for zeros in spare)
    current = [document for document, is_live in zip(documents, live, strict=True) if is_live] + tail
    expected = bm25(current, Counter(query))
    np.testing.assert_allclose([*base[live], *rest], expected, rtol=1e-4, atol=1e-5)

    numbers = np.full(len(documents), -1, dtype=np.int32)
    numbers[live] = np.arange(live.sum())
    later = np.arange(len(tail), dtype=np.int32) + live.sum()
    merged = merge_postings([(parts[0].postings, numbers), (parts[1].postings, later)], len(current))
    (again,) = bm25_scores([Part(merged)], Counter(map(key_of, query)))
    np.testing.assert_allclose(again.dense(len(current)), expected, rtol=1e-4, atol=1e-5)
    fresh = postings_of(current)
    for name in ("keys", "indptr", "rows", "counts", "lengths"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(fresh, name))


def test_the_telling_words_are_frequent_in_the_text_and_rare_in_others() -> None:
    parts = [Part(postings_of([["a", "b"], ["a", "c"], ["a", "d"]]))]
    weights = Counter(map(key_of, ("a", "b", "b", "c")))
    telling = telling_terms(parts, weights, limit=2)
    assert list(telling) == [key_of("b"), key_of("c")]
    assert telling[key_of("b")] == 2 * telling[key_of("c")]
