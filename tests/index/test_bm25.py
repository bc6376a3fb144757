"""BM25 from postings equals the formula, whatever was merged and dropped."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from snuh.index.bm25 import K1, B, Part, Postings, bm25_scores, build_postings, key_of, merge_postings

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


def expected_scores(documents: list[list[str]], query: list[str]) -> list[float]:
    mean = max(1.0, sum(map(len, documents)) / max(1, len(documents)))
    scores = []
    for document in documents:
        total = 0.0
        for word in query:
            tf, df = document.count(word), sum(word in other for other in documents)
            idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            total += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * len(document) / mean))
        scores.append(total)
    return scores


@given(documents=st.lists(WORDS, max_size=8), tail=st.lists(WORDS, max_size=4), query=WORDS, data=st.data())
def test_scores_are_those_of_the_formula(
    documents: list[list[str]], tail: list[list[str]], query: list[str], data: st.DataObject
) -> None:
    live = np.array([data.draw(st.booleans()) for _ in documents], dtype=bool)
    parts = [Part(postings_of(documents), live), Part(postings_of(tail))]
    base, rest = bm25_scores(parts, [key_of(word) for word in query])
    current = [document for document, is_live in zip(documents, live, strict=True) if is_live] + tail
    expected = expected_scores(current, query)
    np.testing.assert_allclose([*base[live], *rest], expected, rtol=1e-4, atol=1e-5)

    numbers = np.full(len(documents), -1, dtype=np.int32)
    numbers[live] = np.arange(live.sum())
    later = np.arange(len(tail), dtype=np.int32) + live.sum()
    merged = merge_postings([(parts[0].postings, numbers), (parts[1].postings, later)], len(current))
    (again,) = bm25_scores([Part(merged)], [key_of(word) for word in query])
    np.testing.assert_allclose(again, expected, rtol=1e-4, atol=1e-5)
    fresh = postings_of(current)
    for name in ("keys", "indptr", "rows", "counts", "lengths"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(fresh, name))
