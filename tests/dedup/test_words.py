"""Rows of all words, and duplicates among documents whose words a model does not know."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collection.worlds import toy_model

from snuh.corpus import Document
from snuh.dedup import WordRows, deduplicate
from snuh.features.analyzer import Analyzer


def rows_of(*batches: list[str]) -> np.ndarray:
    words = WordRows()
    for batch in batches:
        words.add(batch)
    dense: np.ndarray = words.rows().toarray()
    return dense


def expected_cosines(texts: list[str]) -> np.ndarray:
    counts = [Counter(Analyzer(stemming=False).terms(text)) for text in texts]
    frequency = Counter(word for count in counts for word in count)
    vectors = [
        {w: (1 + math.log(n)) * math.sqrt(math.log((1 + len(texts)) / (1 + frequency[w])) + 1)
         for w, n in count.items()}
        for count in counts
    ]  # fmt: skip
    norms = [math.sqrt(sum(x * x for x in vector.values())) for vector in vectors]
    cosines = np.zeros((len(texts), len(texts)))
    for i, left in enumerate(vectors):
        for j, right in enumerate(vectors):
            if norms[i] and norms[j]:
                dot = sum(x * right.get(word, 0.0) for word, x in left.items())
                cosines[i, j] = dot / (norms[i] * norms[j])
    return cosines


@given(st.lists(st.text(alphabet="abC1_ .ßİé中\U00010400\ud800", max_size=12), min_size=1, max_size=6))
def test_every_word_counts_whatever_its_length(texts: list[str]) -> None:
    rows = rows_of(texts[:2], texts[2:])
    np.testing.assert_allclose(rows @ rows.T, expected_cosines(texts), atol=1e-5)


def test_texts_without_spaces_are_compared_by_pairs_of_characters() -> None:
    rows = rows_of(["今天天气好", "今天天气很好", "股票"])
    cosines = rows @ rows.T
    assert 0.4 < cosines[0, 1] < 0.8 and cosines[0, 2] == 0.0


def dropped(*texts: str, threshold: float = 0.85) -> list[str]:
    documents = [Document(str(number), text) for number, text in enumerate(texts)]
    report = deduplicate(toy_model(), documents, threshold=threshold, radius=16)
    return [duplicate.id for duplicate in report.duplicates if not duplicate.keep]


def test_documents_that_share_their_known_words_only_are_no_duplicates() -> None:
    # "ship" is the only word that the model knows.
    assert dropped("Quotient in ship", "When not to vectorize ship?", "ship") == []
    assert dropped("What is C", "What is R", "what is c?") == ["2"]


def test_documents_without_known_words_are_compared_by_their_own_words() -> None:
    assert dropped("zzz qqq", "yyy xxx", "Zzz, qqq!") == ["2"]


@pytest.mark.parametrize("text", ["", "!!!", " \n"])
def test_documents_without_words_are_kept(text: str) -> None:
    assert dropped(text, text, "ship") == []
