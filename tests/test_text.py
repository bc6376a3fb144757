from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from snuh.text import printable, quote, sanitize, shorten


def test_control_characters_and_lone_surrogates_are_replaced() -> None:
    assert sanitize("a\x1b[31m\nb\x9b\ud800") == "a�[31m�b��"
    assert sanitize("a\tb\nc\x00", multiline=True) == "a\tb\nc�"


def test_text_of_any_script_is_kept() -> None:
    text = "Zürich שלום 👩‍👩‍👧"
    assert sanitize(text) == text


@given(st.text())
def test_printable_text_is_printable(text: str) -> None:
    assert printable(text).isprintable()
    assert len(printable(text)) == len(text)


@given(st.text(max_size=100), st.integers(3, 80))
def test_a_shortened_text_is_a_prefix_within_the_limit(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= max(limit, 0)
    assert text.startswith(short.removesuffix("...")) and (len(text) > limit or short == text)


def test_a_quote_is_one_line() -> None:
    assert quote('say "no"\n') == r'"say \"no\"\n"'
    assert quote("x" * 100) == '"' + "x" * 57 + '..."'
