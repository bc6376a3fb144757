"""Where the words that the features count stand in a text."""

from __future__ import annotations

import re
from typing import TypeAlias

from snuh.features import TfidfFeatures

Span: TypeAlias = tuple[int, int]  # first character, and the one after the last


def term_spans(text: str, features: TfidfFeatures) -> dict[str, list[Span]]:
    """Return where each term of the vocabulary stands in a text, in order of the text.

    A term has as many spans as the features count; the characters are those of the text as it came, before
    lower-casing.
    """
    settings = features.settings
    pattern = re.compile(settings.token_pattern)
    read = text.lower() if settings.lowercase else text
    origin = None if len(read) == len(text) else _origins(text)
    terms = set(features.terms)
    spans: dict[str, list[Span]] = {}
    for match in pattern.finditer(read):
        word = match[pattern.groups]  # the group where the pattern has one, as in `findall`
        if not word or word not in terms:
            continue
        start, end = match.span(pattern.groups)
        if origin is not None:
            start, end = origin[start], origin[end - 1] + 1
        spans.setdefault(word, []).append((start, end))
    return spans


def _origins(text: str) -> list[int]:
    """Return, for each character of the lower-cased text, which character it came from.

    A few capitals become two small characters (İ does); none becomes less than one.
    """
    return [place for place, character in enumerate(text) for _ in character.lower()]
