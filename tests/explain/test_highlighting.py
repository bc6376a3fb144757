from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snuh.errors import InputError
from snuh.explain import Fragment, WordContribution, marked

CONTRIBUTIONS = {"alpha": 4.0, "beta": 2.0, "gamma": 1.0, "delta": -2.0, "epsilon": 0.5}
LINES = st.lists(st.sampled_from([*CONTRIBUTIONS, "of", "the", "\n", "  "]), max_size=40).map(" ".join)


def contributions_in(text: str) -> list[WordContribution]:
    words = [
        WordContribution(word, value, 0.0, tuple(match.span() for match in re.finditer(rf"\b{word}\b", text)))
        for word, value in CONTRIBUTIONS.items()
    ]
    return [word for word in words if word.spans]


def weight_of(words: set[str]) -> float:
    return sum(max(0.0, CONTRIBUTIONS.get(word, 0.0)) for word in words)


@given(text=LINES, width=st.integers(1, 120))
def test_the_excerpt_is_part_of_the_text(text: str, width: int) -> None:
    line = "".join(fragment.text for fragment in marked(text, contributions_in(text), width=width))
    whole = " ".join(text.split())
    inner = line.removeprefix("…").removesuffix("…")
    assert inner in whole
    assert len(inner) <= width
    assert (line == whole) or "…" in line


@given(text=LINES, width=st.integers(1, 120))
def test_no_other_excerpt_has_stronger_words(text: str, width: int) -> None:
    shown = {
        fragment.text for fragment in marked(text, contributions_in(text), width=width) if fragment.weight
    }
    best = 0.0
    for start in range(len(text)):
        inside = re.finditer(r"\w+", text)
        words = {match[0] for match in inside if start <= match.start() and match.end() <= start + width}
        best = max(best, weight_of(words))
    assert weight_of(shown) == pytest.approx(best)


@given(text=LINES)
def test_a_weight_is_relative_to_the_strongest_word(text: str) -> None:
    words = contributions_in(text)
    largest = max((abs(word.agreeing) for word in words), default=1.0)
    for fragment in marked(text, words, width=10_000):
        assert fragment.weight == pytest.approx(CONTRIBUTIONS.get(fragment.text, 0.0) / largest)


def test_the_text_around_the_words_is_shown_without_cutting_words() -> None:
    text = "At first nothing happened at all.\n\n  Then alpha met\tbeta in the street, and went home for tea."
    fragments = marked(text, contributions_in(text), width=40)
    assert "".join(fragment.text for fragment in fragments) == "…all. Then alpha met beta in the…"
    weights = [(fragment.text, fragment.weight) for fragment in fragments if fragment.weight]
    assert weights == [("alpha", 1.0), ("beta", 0.5)]


def test_without_any_known_word_the_beginning_is_shown() -> None:
    assert marked("nothing to see here, move on", [], width=14) == [
        Fragment("nothing to see", 0.0),
        Fragment("…", 0.0),
    ]
    assert marked("", []) == []


def test_text_without_spaces_is_cut_where_the_width_ends() -> None:
    text = "東京都港区赤坂" * 10
    word = WordContribution("赤坂", 1.0, 0.0, ((68, 70),))
    assert "".join(fragment.text for fragment in marked(text, [word], width=10)) == f"…{text[60:]}"


def test_a_width_of_zero_is_refused() -> None:
    with pytest.raises(InputError, match="width must be at least 1, got 0"):
        marked("text", [], width=0)


def test_words_of_the_query_are_marked_and_attract_the_excerpt() -> None:
    text = "alpha " + "of the " * 20 + "needle in a haystack"
    words = contributions_in(text)
    fragments = marked(text, words, width=20, matched={"needle": [(146, 152)]})
    assert Fragment("needle", 0.0, is_matched=True) in fragments
    both = marked("alpha beta", contributions_in("alpha beta"), matched={"alpha": [(0, 5)]})
    assert both[0] == Fragment("alpha", 1.0, is_matched=True)


def test_weak_words_are_part_of_the_text_around_them() -> None:
    text = "alpha epsilon the"
    assert marked(text, contributions_in(text), min_weight=0.2) == [
        Fragment("alpha", 1.0),
        Fragment(" epsilon the", 0.0),
    ]
