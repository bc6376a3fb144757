"""The error of a filter that cannot be read, and where in the text it lies."""

from __future__ import annotations

import unicodedata

from snuh.errors import InputError

LONGEST_QUOTE = 40
CHARACTERS_SHOWN = 30  # on each side of the place


class FilterError(InputError):
    """A filter that cannot be read; `position` counts the characters of `text` before the problem."""

    def __init__(self, problem: str, *, text: str, position: int) -> None:
        super().__init__(f"filter, character {position + 1}: {problem}")
        self.text = text
        self.position = position

    def pointer(self) -> str:
        """Return the part of the filter around the problem, and below it a line with a caret."""
        start = max(0, self.position - CHARACTERS_SHOWN)
        before = printable(self.text[start : self.position])
        after = printable(self.text[self.position : self.position + CHARACTERS_SHOWN])
        return f"{before}{after}\n{' ' * _width(before)}^"


def quote(text: str) -> str:
    """Quote a part of the filter for a message of one line, cut where it is long; a string has its own."""
    short = printable(text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}...")
    return short if short.startswith(('"', "'")) else f'"{short}"'


def printable(text: str) -> str:
    """Put a replacement sign for whatever would break the line, or could not be printed at all."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def _width(text: str) -> int:
    """Count the columns of a terminal that a text fills."""
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )
