"""The query language of text searches: plain words, "quoted phrases", +required and -excluded words.

Anything else is plain text: nothing in a query is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from snuh.features.analyzer import Analyzer

_PART = re.compile(r'(?:(?<=\s)|^)([+-]?)(?:"([^"]*)"|(\S+))')


@dataclass(frozen=True, slots=True)
class QueryText:
    """A parsed query."""

    text: str
    """All that is looked for: without excluded parts, signs and quotes."""
    required: tuple[str, ...] = ()
    """Words and phrases that a hit must have."""
    excluded: tuple[str, ...] = ()
    """Words and phrases that a hit must not have."""
    phrases: tuple[str, ...] = ()
    """The required ones of several words, which must be in order; some may be a single word."""
    excluded_phrases: tuple[str, ...] = ()
    """The excluded ones of several words."""


def parse_query(query: str) -> QueryText:
    """Parse a query. A sign counts at the beginning of a word only, before a letter or digit."""
    wanted: list[str] = []
    required: list[str] = []
    excluded: list[str] = []
    phrases: list[str] = []
    excluded_phrases: list[str] = []
    position = 0
    for match in _PART.finditer(query):
        sign, phrase, word = match.groups()
        if phrase is None and (not sign or not word[0].isalnum()):
            continue
        wanted.append(query[position : match.start()])
        position = match.end()
        content = word if phrase is None else phrase
        if sign == "-":
            (excluded if phrase is None else excluded_phrases).append(content)
        else:
            wanted.append(content)
            (required if phrase is None else phrases).append(content)
    wanted.append(query[position:])
    return QueryText(
        " ".join(part.strip() for part in wanted if part.strip()),
        tuple(required),
        tuple(excluded),
        tuple(phrases),
        tuple(excluded_phrases),
    )


def has_phrase(text: str, phrase: str, analyzer: Analyzer) -> bool:
    """Return whether the words of a phrase occur in a text one after the other, by their terms."""
    wanted = _positions(phrase, analyzer)
    if not wanted:
        return True
    found = _positions(text, analyzer)
    for start in range(len(found) - len(wanted) + 1):
        if all(wanted[step] & found[start + step] for step in range(len(wanted))):
            return True
    return False


def _positions(text: str, analyzer: Analyzer) -> list[set[str]]:
    """Return the terms at each word of a text; an identifier and its parts are at one position."""
    positions: list[set[str]] = []
    last = None
    for token in analyzer.tokens(text):
        if (token.start, token.end) != last:
            positions.append(set())
            last = (token.start, token.end)
        positions[-1].add(token.term)
    return positions
