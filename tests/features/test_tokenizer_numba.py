from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.features.test_analyzer import TEXTS
from tests.kernels import using

from snuh.features import weighting
from snuh.features.analyzer import Analyzer, segment
from snuh.features.tokenizer_numba import WordInterner
from snuh.features.weighting import TermCounter

LITERAL = Analyzer(stemming=False)
LONG = st.text(alphabet="aé今ก\u0301'_-#+ ", min_size=80, max_size=400)


def words_of(text: str) -> list[str]:
    return [text[start:end] for start, end in segment(text)]


@settings(max_examples=300)
@given(texts=st.lists(TEXTS | LONG, max_size=6))
def test_the_kernel_finds_the_words_of_the_analyzer(texts: list[str]) -> None:
    table = WordInterner()
    numbers = table.number(texts)
    words = table.words()
    assert len(set(words)) == len(words) == len(table)
    for text, (start, end) in zip(texts, zip(numbers.indptr, numbers.indptr[1:], strict=False), strict=True):
        assert [words[number] for number in numbers.words[start:end]] == words_of(text)


@settings(max_examples=100)
@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
def test_python_and_numba_count_the_same(texts: list[str]) -> None:
    analyzer = Analyzer(languages=["en", "fr"], stop_words=["the"], identifiers=True)
    terms = sorted({term for text in texts for term in analyzer.terms(text)})[::2]
    by_python, by_numba, by_both = (TermCounter(terms, analyzer) for _ in range(3))
    for part in (texts, texts[::-1]):  # the second time the words are known
        with using("numpy"):
            expected = by_python.count(part)
            by_both.count(part)
        with using("numba"):
            counted = [by_numba.count(part), by_both.count(part)]
        for counts in counted:
            for left, right in zip(expected, counts, strict=True):
                np.testing.assert_array_equal(left, right, strict=True)


def test_a_word_is_never_taken_for_a_term_that_only_begins_or_ends_like_it() -> None:
    counter = TermCounter(["café", "cafés", "strasse"], LITERAL)
    counted = counter.count(["CAFÉ caf cafésx xcafé straß", "Cafés STRAßE straße café-café"])
    assert counted.indptr.tolist() == [0, 1, 4]
    assert counted.indices.tolist() == [0, 0, 1, 2]
    assert counted.counts.tolist() == [1, 2, 1, 2]


def test_words_end_at_the_end_of_their_text() -> None:
    counted = TermCounter(["ab", "abcd", "cd"], LITERAL).count(["ab", "cd", "", "abcd", "a", "b"])
    assert counted.indptr.tolist() == [0, 1, 2, 2, 3, 3, 3]
    assert counted.indices.tolist() == [0, 2, 1]


def test_a_growing_table_keeps_every_word() -> None:
    table = WordInterner()
    texts = [" ".join(f"{number:x}term{part}" for number in range(3_000)) for part in range(10)]
    first = table.number(texts)
    assert len(table) == 30_000
    np.testing.assert_array_equal(first.words, np.arange(30_000))
    np.testing.assert_array_equal(table.number(texts).words, first.words)
    table.number([" ".join(f"another{number:x}" for number in range(200_000))])
    assert len(table) == 230_000 and table.words(229_999) == [f"another{199_999:x}"]


def test_a_counter_forgets_words_when_there_are_too_many(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(weighting, "MAX_WORDS", 100)
    counter = TermCounter(["known"], LITERAL)
    for part in range(5):
        counted = counter.count([" ".join(f"w{part}x{number}" for number in range(90)), "known KNOWN"])
        assert counted.counts.tolist() == [2]
        assert sum(len(columns.table) for columns in counter._free) <= 100
