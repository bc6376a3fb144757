"""The words and signs that a filter is made of."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from snuh.errors import InputError
from snuh.filters.tree import KEYWORDS, Field, Value

# The error of a filter that cannot be read, and where in the text it lies.

MAX_QUOTE = 40
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
    short = printable(text if len(text) <= MAX_QUOTE else f"{text[:MAX_QUOTE]}...")
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


MAX_CHARACTERS = 10_000
INT64_RANGE = range(-(2**63), 2**63)  # beyond these a number is read as a float, by JSON in SQLite too

# "++" and "*+" never step back, so that a text of any kind is read in one pass.
STRING = re.compile(r'"(?:[^"\\]|\\.|"")*+"' + r"|'(?:[^'\\]|\\.|'')*+'", re.DOTALL)
ESCAPED = re.compile(r"""\\(.)|""|''""", re.DOTALL)
ESCAPES = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "r": "\r", "t": "\t"}
NUMBER = re.compile(r"[-+]?[0-9]++(\.[0-9]++)?([eE][-+]?[0-9]++)?")
BACKTICKED = re.compile(r"`((?:[^`]|``)++)`")
SIGN = re.compile(r"==|!=|<=|>=|[=<>(),]")
# SQLite has no way to write these in a path that all its versions understand.
REFUSED_IN_NAME = re.compile(r'["\\\x00-\x1f]')
REFUSED = re.compile("[\x00\ud800-\udfff]")


NO_FIELD = Field(())


class Kind(Enum):
    """What a token is."""

    FIELD, VALUE, WORD, SIGN, END = range(5)


@dataclass(frozen=True, slots=True)
class Token:
    """One word, sign or value, and the characters before it; `text` is lower case for a keyword."""

    kind: Kind
    text: str
    position: int
    field: Field = NO_FIELD
    value: Value = ""

    def is_one_of(self, *texts: str) -> bool:
        """Tell whether it is one of these words or signs."""
        return self.kind in (Kind.WORD, Kind.SIGN) and self.text in texts


def tokenize(text: str) -> list[Token]:
    """Cut a filter into tokens, the last of which is the end; FilterError where it cannot be read."""
    if len(text) > MAX_CHARACTERS:
        problem = f"expected at most {MAX_CHARACTERS:,} characters, got {len(text):,}"
        raise FilterError(problem, text=text, position=MAX_CHARACTERS)
    if refused := REFUSED.search(text):
        problem = f"expected text, got the character U+{ord(refused[0]):04X}, which cannot be searched for"
        raise FilterError(problem, text=text, position=refused.start())
    return list(_Scanner(text).tokens())


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text

    def tokens(self) -> Iterator[Token]:
        position = 0
        while position < len(self.text):
            if self.text[position].isspace():
                position += 1
                continue
            token, position = self.token(position)
            yield token
        yield Token(Kind.END, "", position)

    def token(self, start: int) -> tuple[Token, int]:
        """Return the token that starts here, and where it ends."""
        character = self.text[start]
        if character in "\"'":
            return self.string(start)
        if character in "+-0123456789":
            return self.number(start)
        if character == "`" or character.isidentifier():
            return self.name(start)
        if sign := SIGN.match(self.text, start):
            return Token(Kind.SIGN, sign[0], start), sign.end()
        raise self.error(f"expected a field, a value or an operator, got {quote(character)}", start)

    def string(self, start: int) -> tuple[Token, int]:
        found = STRING.match(self.text, start)
        if not found:
            raise self.error(f"this string has no closing {self.text[start]}", start)

        def plain(escaped: re.Match[str]) -> str:
            if escaped[1] is None:
                # A doubled quote; the other kind of quote stands for itself, doubled or not.
                return escaped[0][0] if escaped[0][0] == self.text[start] else escaped[0]
            if escaped[1] not in ESCAPES:
                problem = f"expected one of \\\\ \\\" \\' \\n \\r \\t, got {quote(escaped[0])}"
                raise self.error(problem, start + 1 + escaped.start())
            return ESCAPES[escaped[1]]

        value = ESCAPED.sub(plain, found[0][1:-1])
        return Token(Kind.VALUE, found[0], start, value=value), found.end()

    def number(self, start: int) -> tuple[Token, int]:
        found = NUMBER.match(self.text, start)
        end = found.end() if found else start + 1
        start_of_rest = end
        while self.text[end : end + 1] == "." or _continues_name(self.text[end : end + 1]):
            end += 1
        if not found or end > start_of_rest:
            problem = f"expected a number such as -3 or 0.5, got {quote(self.text[start:end])}"
            raise self.error(problem, start)
        value = _number(found[0], is_whole=found[1] is None and found[2] is None)
        if math.isinf(value):
            raise self.error(f"expected a number up to 1.7e308, got {quote(found[0])}", start)
        return Token(Kind.VALUE, found[0], start, value=value), end

    def name(self, start: int) -> tuple[Token, int]:
        """Read a field, or a keyword."""
        keys: list[str] = []
        end = start
        while not keys or self.text[end : end + 1] == ".":
            key, end = self.key(end + 1 if keys else end)
            keys.append(key)
        word = self.text[start:end]
        if word.lower() not in KEYWORDS:
            return Token(Kind.FIELD, word, start, field=Field(tuple(keys))), end
        if word.lower() in ("true", "false"):
            return Token(Kind.VALUE, word, start, value=word.lower() == "true"), end
        return Token(Kind.WORD, word.lower(), start), end

    def key(self, start: int) -> tuple[str, int]:
        """Read one part of a field's name."""
        if self.text[start : start + 1] == "`":
            return self.backticked(start)
        end = start
        while _continues_name(self.text[end : end + 1]):
            end += 1
        key = self.text[start:end]
        if not key.isidentifier():
            got = quote(key or self.text[start : start + 1]) if start < len(self.text) else "the end"
            raise self.error(
                f"expected a name after the dot, in backticks if it is unusual, got {got}", start
            )
        return key, end

    def backticked(self, start: int) -> tuple[str, int]:
        found = BACKTICKED.match(self.text, start)
        if not found:
            raise self.error("expected a name between two backticks", start)
        key = found[1].replace("``", "`")
        if refused := REFUSED_IN_NAME.search(key):
            kind = {'"': "a double quote", "\\": "a backslash"}.get(refused[0], "a control character")
            raise self.error(f"a field with {kind} in its name cannot be filtered on", start)
        return key, found.end()

    def error(self, problem: str, position: int) -> FilterError:
        return FilterError(problem, text=self.text, position=position)


def _number(text: str, *, is_whole: bool) -> int | float:
    # 20 characters hold any number of 64 bits; a longer one could be too long for int() to read.
    if is_whole and len(text) <= 20 and int(text) in INT64_RANGE:
        return int(text)
    return float(text)


def _continues_name(character: str) -> bool:
    return character != "" and f"a{character}".isidentifier()
