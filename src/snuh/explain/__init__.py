"""Explain hits by the words that the codes share, and bits by their words."""

from __future__ import annotations

from snuh.explain.bits import BitMeaning, bit_meanings
from snuh.explain.highlighting import Fragment, marked
from snuh.explain.hit import (
    BitPair,
    Contributions,
    Explanation,
    HitWords,
    Span,
    WordContribution,
    explain,
    explain_hits,
    term_spans,
    word_contributions,
)

__all__ = [
    "BitMeaning",
    "BitPair",
    "Contributions",
    "Explanation",
    "Fragment",
    "HitWords",
    "Span",
    "WordContribution",
    "bit_meanings",
    "explain",
    "explain_hits",
    "marked",
    "term_spans",
    "word_contributions",
]
