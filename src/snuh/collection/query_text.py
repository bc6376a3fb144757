"""The query language of text searches: plain words, "quoted phrases", +required and -excluded words.

Anything else is plain text: nothing in a query is an error. So is a long query: someone who pastes a
paragraph does not mean its quotes and dashes as orders.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from snuh.features.analyzer import Analyzer

_PART = re.compile(r'(?:(?<=\s)|^)([+-]?)(?:"([^"]*)"|(\S+))')

MAX_WORDS = 16  # of a query that is more than plain text


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

    @property
    def has_phrases(self) -> bool:
        """Whether texts must be read to tell which documents match."""
        return bool(self.phrases or self.excluded_phrases)

    def accepts(self, text: str, analyzer: Analyzer) -> bool:
        """Return whether a text has all required and no excluded words and phrases."""
        if not (self.required or self.excluded or self.has_phrases):
            return True
        positions = _positions(text, analyzer)
        return all(
            _has_phrase(positions, _positions(part, analyzer)) for part in (*self.required, *self.phrases)
        ) and not any(
            _has_phrase(positions, _positions(part, analyzer))
            for part in (*self.excluded, *self.excluded_phrases)
        )

    def surfaces(self, analyzer: Analyzer) -> dict[str, str]:
        """Return the terms that are looked for, each with the word of the query that it comes from."""
        return {token.term: self.text[token.start : token.end] for token in analyzer.tokens(self.text)}


def parse_query(query: str) -> QueryText:
    """Parse a query. A sign counts at the beginning of a word only, before a letter or digit."""
    if len(query.split()) > MAX_WORDS:
        return QueryText(query.strip())
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


def _has_phrase(found: list[set[str]], wanted: list[set[str]]) -> bool:
    """Return whether words occur one after the other; a phrase without words is everywhere."""
    return not wanted or any(
        all(wanted[step] & found[start + step] for step in range(len(wanted)))
        for start in range(len(found) - len(wanted) + 1)
    )


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
