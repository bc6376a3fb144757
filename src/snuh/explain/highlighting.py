"""Excerpts of a text around the words that contribute most, split into fragments for highlighting."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from snuh.errors import InputError
from snuh.explain.hit import Span, WordContribution

ELLIPSIS = "…"


class Fragment(NamedTuple):
    """A piece of text: a word with its weight from -1 to 1, or the text between words with weight 0."""

    text: str
    weight: float


class _Mark(NamedTuple):
    start: int
    end: int
    word: str
    weight: float


def marked(text: str, words: Sequence[WordContribution], *, width: int = 160) -> list[Fragment]:
    """Return an excerpt of at most `width` characters around the strongest words, as one line of fragments.

    The weight of a word is its contribution to the agreeing bits, divided by the largest of `words`. Repeated
    words count once when the excerpt is chosen. Runs of white space become one space, and an ellipsis (in
    addition to `width`) marks where the text was cut.
    """
    if width < 1:
        raise InputError(f"width must be at least 1, got {width}")
    marks = _marks(words)
    start, end = _widen(text, _best_window(marks, width), width)
    fragments = [
        Fragment(ELLIPSIS if text[:start].strip() else "", 0.0),
        *_collapse_spaces(list(_fragments(text, marks, start, end))),
        Fragment(ELLIPSIS if text[end:].strip() else "", 0.0),
    ]
    return [fragment for fragment in fragments if fragment.text]


def _marks(words: Sequence[WordContribution]) -> list[_Mark]:
    largest = max((abs(word.agreeing) for word in words), default=0.0) or 1.0
    return sorted(
        _Mark(start, end, word.word, word.agreeing / largest) for word in words for start, end in word.spans
    )


def _best_window(marks: Sequence[_Mark], width: int) -> Span:
    """Return the span of the words with the largest total weight within `width` characters."""
    best, best_weight = (0, 0), 0.0
    inside: Counter[str] = Counter()
    weight, after = 0.0, 0
    for index, first in enumerate(marks):
        while after < len(marks) and marks[after].end <= first.start + width:
            inside[marks[after].word] += 1
            weight += max(0.0, marks[after].weight) if inside[marks[after].word] == 1 else 0.0
            after += 1
        if after == index:  # the word is longer than the width
            after += 1
            continue
        if weight > best_weight + 1e-9:  # more than rounding errors: of equal spans the first is taken
            best, best_weight = (first.start, marks[after - 1].end), weight
        inside[first.word] -= 1
        weight -= max(0.0, first.weight) if not inside[first.word] else 0.0
    return best


def _widen(text: str, span: Span, width: int) -> Span:
    """Extend a span on both sides to `width` characters, at word boundaries if possible."""
    first, last = span
    end = min(len(text), max(0, first - (width - (last - first)) // 2) + width)
    start = max(0, end - width)
    if start > 0 and (space := re.compile(r"\s").search(text, start - 1, first)):
        start = space.end()
    if end < len(text) and (space := re.compile(r"\s\S*\Z").search(text, last, end + 1)):
        end = space.start()
    return start, end


def _fragments(text: str, marks: Sequence[_Mark], start: int, end: int) -> Iterator[Fragment]:
    position = start
    for mark in marks:
        if mark.start >= position and mark.end <= end:
            yield Fragment(text[position : mark.start], 0.0)
            yield Fragment(text[mark.start : mark.end], mark.weight)
            position = mark.end
    yield Fragment(text[position:end], 0.0)


def _collapse_spaces(fragments: Sequence[Fragment]) -> Iterator[Fragment]:
    """Replace each run of white space by one space, and strip both ends."""
    for index, (text, weight) in enumerate(fragments):
        line = re.sub(r"\s+", " ", text)
        line = line.lstrip() if index == 0 else line
        yield Fragment(line.rstrip() if index == len(fragments) - 1 else line, weight)
