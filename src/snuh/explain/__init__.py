"""Why a document was found, and what a bit stands for, in words."""

from __future__ import annotations

from snuh.explain.bits import BitMeaning, bit_meanings
from snuh.explain.highlighting import Fragment, marked
from snuh.explain.hit import BitPair, Explanation, Pushes, Span, WordShare, explain, term_spans, word_pushes

__all__ = [
    "BitMeaning",
    "BitPair",
    "Explanation",
    "Fragment",
    "Pushes",
    "Span",
    "WordShare",
    "bit_meanings",
    "explain",
    "marked",
    "term_spans",
    "word_pushes",
]
