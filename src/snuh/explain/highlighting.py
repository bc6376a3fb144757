"""The part of a text with the words that count, cut into fragments to be marked in a terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from snuh.errors import InputError
from snuh.explain.hit import Span, WordContribution

ELLIPSIS = "…"


class Fragment(NamedTuple):
    """A piece of text: a word with its weight from -1 to 1, or what is between words, with weight 0."""

    text: str
    weight: float


class _Mark(NamedTuple):
    start: int
    end: int
    word: str
    weight: float


def marked(text: str, words: Sequence[WordContribution], *, width: int = 160) -> list[Fragment]:
    """Return the stretch of at most `width` characters with the strongest words, as one line in fragments.

    A word weighs its share in the agreeing bits, divided by the largest among `words`. One that repeats
    counts once in the choice of the stretch. Runs of spaces become one space, and an ellipsis (beyond
    `width`) stands where the text was cut.
    """
    if width < 1:
        raise InputError(f"width must be at least 1, got {width}")
    marks = _marks(words)
    start, end = _widened(text, _strongest_stretch(marks, width), width)
    fragments = [
        Fragment(ELLIPSIS if text[:start].strip() else "", 0.0),
        *_evened(list(_fragments(text, marks, start, end))),
        Fragment(ELLIPSIS if text[end:].strip() else "", 0.0),
    ]
    return [fragment for fragment in fragments if fragment.text]


def _marks(words: Sequence[WordContribution]) -> list[_Mark]:
    largest = max((abs(share.agreeing) for share in words), default=0.0) or 1.0
    return sorted(
        _Mark(start, end, share.word, share.agreeing / largest)
        for share in words
        for start, end in share.spans
    )


def _strongest_stretch(marks: Sequence[_Mark], width: int) -> Span:
    """Return from the first to the last of the words that weigh most within `width` characters."""
    best, best_weight = (0, 0), 0.0
    inside: Counter[str] = Counter()
    weight, after = 0.0, 0
    for number, first in enumerate(marks):
        while after < len(marks) and marks[after].end <= first.start + width:
            inside[marks[after].word] += 1
            weight += max(0.0, marks[after].weight) if inside[marks[after].word] == 1 else 0.0
            after += 1
        if after == number:  # longer than the width
            after += 1
            continue
        if weight > best_weight + 1e-9:  # more than rounding: of equal stretches the first is taken
            best, best_weight = (first.start, marks[after - 1].end), weight
        inside[first.word] -= 1
        weight -= max(0.0, first.weight) if not inside[first.word] else 0.0
    return best


def _widened(text: str, stretch: Span, width: int) -> Span:
    """Use the room that a stretch leaves, before and after it, without cutting a word where that can be."""
    first, last = stretch
    end = min(len(text), max(0, first - (width - (last - first)) // 2) + width)
    start = max(0, end - width)
    if start > 0 and (space := re.compile(r"\s").search(text, start - 1, first)):
        start = space.end()
    if end < len(text) and (space := re.compile(r"\s\S*\Z").search(text, last, end + 1)):
        end = space.start()
    return start, end


def _fragments(text: str, marks: Sequence[_Mark], start: int, end: int) -> Iterator[Fragment]:
    place = start
    for mark in marks:
        if mark.start >= place and mark.end <= end:
            yield Fragment(text[place : mark.start], 0.0)
            yield Fragment(text[mark.start : mark.end], mark.weight)
            place = mark.end
    yield Fragment(text[place:end], 0.0)


def _evened(fragments: Sequence[Fragment]) -> Iterator[Fragment]:
    """Make each run of spaces one space, and none at either end."""
    for number, (text, weight) in enumerate(fragments):
        line = re.sub(r"\s+", " ", text)
        line = line.lstrip() if number == 0 else line
        yield Fragment(line.rstrip() if number == len(fragments) - 1 else line, weight)
