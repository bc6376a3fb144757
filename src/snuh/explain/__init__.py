"""Why a document was found, and what a bit stands for, in words."""

from __future__ import annotations

from snuh.explain.bits import BitMeaning, bit_meanings
from snuh.explain.hit import BitPair, Explanation, WordShare, explain
from snuh.explain.marking import Fragment, marked
from snuh.explain.pushes import Pushes, word_pushes
from snuh.explain.spans import Span, term_spans

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
