"""Excerpts of a text around the words that contribute most, split into fragments for highlighting."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from snuh.errors import InputError
from snuh.explain.hit import Span, WordContribution

ELLIPSIS = "…"


class Fragment(NamedTuple):
    """A piece of text: a word with its weight from -1 to 1, or the text between words with weight 0."""

    text: str
    weight: float
    is_matched: bool = False  # a word of the query


class _Mark(NamedTuple):
    start: int
    end: int
    word: str
    weight: float
    is_matched: bool

    @property
    def value(self) -> float:
        """What the word adds to an excerpt."""
        return max(0.0, self.weight) + 2.0 * self.is_matched


def marked(
    text: str,
    words: Sequence[WordContribution],
    *,
    width: int = 160,
    matched: Mapping[str, Sequence[Span]] | None = None,
    min_weight: float = 0.0,
) -> list[Fragment]:
    """Return an excerpt of at most `width` characters around the strongest words, as one line of fragments.

    The weight of a word is its contribution to the agreeing bits, divided by the largest of `words`. Repeated
    words count once when the excerpt is chosen. Runs of white space become one space, and an ellipsis (in
    addition to `width`) marks where the text was cut.

    Args:
        text: the whole text.
        words: with their contributions.
        width: in characters.
        matched: the spans of the words of the query, which attract the excerpt more than any other word.
        min_weight: words with less, of either sign, are not fragments of their own.
    """
    if width < 1:
        raise InputError(f"width must be at least 1, got {width}")
    marks = _marks(words, matched or {}, min_weight)
    start, end = _widen(text, _best_window(marks, width), width)
    fragments = [
        Fragment(ELLIPSIS if text[:start].strip() else "", 0.0),
        *_collapse_spaces(list(_fragments(text, marks, start, end))),
        Fragment(ELLIPSIS if text[end:].strip() else "", 0.0),
    ]
    return [fragment for fragment in fragments if fragment.text]


def _marks(
    words: Sequence[WordContribution], matched: Mapping[str, Sequence[Span]], min_weight: float
) -> list[_Mark]:
    largest = max((abs(word.agreeing) for word in words), default=0.0) or 1.0
    marks = {
        span: _Mark(*span, word.word, word.agreeing / largest, is_matched=False)
        for word in reversed(words)  # of two words at one span, such as parts of a name, the stronger one
        if abs(word.agreeing) >= min_weight * largest
        for span in word.spans
    }
    for term, spans in matched.items():
        for span in spans:
            before = marks.get(span, _Mark(*span, term, 0.0, is_matched=True))
            marks[span] = before._replace(is_matched=True)
    return sorted(marks.values())


def _best_window(marks: Sequence[_Mark], width: int) -> Span:
    """Return the span of the words with the largest total weight within `width` characters."""
    best, best_weight = (0, 0), 0.0
    inside: Counter[str] = Counter()
    weight, after = 0.0, 0
    for index, first in enumerate(marks):
        while after < len(marks) and marks[after].end <= first.start + width:
            inside[marks[after].word] += 1
            weight += marks[after].value if inside[marks[after].word] == 1 else 0.0
            after += 1
        if after == index:  # the word is longer than the width
            after += 1
            continue
        if weight > best_weight + 1e-9:  # more than rounding errors: of equal spans the first is taken
            best, best_weight = (first.start, marks[after - 1].end), weight
        inside[first.word] -= 1
        weight -= first.value if not inside[first.word] else 0.0
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
            yield Fragment(text[mark.start : mark.end], mark.weight, mark.is_matched)
            position = mark.end
    yield Fragment(text[position:end], 0.0)


def _collapse_spaces(fragments: Sequence[Fragment]) -> Iterator[Fragment]:
    """Replace each run of white space by one space, and strip both ends."""
    for index, fragment in enumerate(fragments):
        line = re.sub(r"\s+", " ", fragment.text)
        line = line.lstrip() if index == 0 else line
        yield fragment._replace(text=line.rstrip() if index == len(fragments) - 1 else line)
