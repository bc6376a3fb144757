"""The lexer of filters, and the error for filters that cannot be parsed."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from snuh.errors import InputError
from snuh.filters.tree import INT64_RANGE, KEYWORDS, Field, Value
from snuh.text import printable, shorten

MAX_CHARACTERS = 10_000
MAX_QUOTE = 40  # characters
POINTER_CONTEXT = 30  # characters on each side

# "++" and "*+" are possessive: no text takes more than one pass.
STRING = re.compile(r'"(?:[^"\\]|\\.|"")*+"' + r"|'(?:[^'\\]|\\.|'')*+'", re.DOTALL)
ESCAPED = re.compile(r"""\\(.)|""|''""", re.DOTALL)
ESCAPES = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "r": "\r", "t": "\t"}
NUMBER = re.compile(r"[-+]?[0-9]++(\.[0-9]++)?([eE][-+]?[0-9]++)?")
BACKTICKED = re.compile(r"`((?:[^`]|``)++)`")
SYMBOL = re.compile(r"==|!=|<=|>=|[=<>(),]")
# Not all versions of SQLite can escape these in a JSON path.
REFUSED_IN_NAME = re.compile(r'["\\\x00-\x1f]')
REFUSED = re.compile("[\x00\ud800-\udfff]")
NO_FIELD = Field(())


class FilterError(InputError):
    """A filter that cannot be parsed; `position` is the index of the problem in `text`."""

    def __init__(self, problem: str, *, text: str, position: int) -> None:
        super().__init__(f"filter, character {position + 1}: {problem}")
        self.text = text
        self.position = position

    def pointer(self) -> str:
        """Return the part of the filter around the problem, and a second line with a caret below it."""
        start = max(0, self.position - POINTER_CONTEXT)
        before = printable(self.text[start : self.position])
        after = printable(self.text[self.position : self.position + POINTER_CONTEXT])
        return f"{before}{after}\n{' ' * _width(before)}^"


def quote(text: str) -> str:
    """Quote a part of the filter for a one-line message, shortened; a string keeps its own quotes."""
    short = printable(shorten(text, MAX_QUOTE))
    return short if short.startswith(('"', "'")) else f'"{short}"'


def _width(text: str) -> int:
    """Return the number of terminal columns that a text occupies."""
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )


class Kind(Enum):
    """The kind of a token."""

    FIELD, VALUE, KEYWORD, SYMBOL, END = range(5)


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its index in the filter; the `text` of a keyword is in lower case."""

    kind: Kind
    text: str
    position: int
    field: Field = NO_FIELD
    value: Value = ""

    def is_one_of(self, *texts: str) -> bool:
        """Tell whether the token is one of these keywords or symbols."""
        return self.kind in (Kind.KEYWORD, Kind.SYMBOL) and self.text in texts


def tokenize(text: str) -> list[Token]:
    """Split a filter into tokens, ending with an END token; FilterError if it cannot be read."""
    if len(text) > MAX_CHARACTERS:
        problem = f"expected at most {MAX_CHARACTERS:,} characters, got {len(text):,}"
        raise FilterError(problem, text=text, position=MAX_CHARACTERS)
    if refused := REFUSED.search(text):
        problem = f"expected text, got the character U+{ord(refused[0]):04X}, which cannot be searched for"
        raise FilterError(problem, text=text, position=refused.start())
    return list(_Lexer(text).tokens())


class _Lexer:
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
        """Return the token that starts here, and its end."""
        character = self.text[start]
        if character in "\"'":
            return self.string(start)
        if character in "+-0123456789":
            return self.number(start)
        if character == "`" or character.isidentifier():
            return self.name(start)
        if symbol := SYMBOL.match(self.text, start):
            return Token(Kind.SYMBOL, symbol[0], start), symbol.end()
        raise self.error(f"expected a field, a value or an operator, got {quote(character)}", start)

    def string(self, start: int) -> tuple[Token, int]:
        match = STRING.match(self.text, start)
        if not match:
            raise self.error(f"this string has no closing {self.text[start]}", start)

        def unescape(escaped: re.Match[str]) -> str:
            if escaped[1] is None:
                # A doubled quote is one quote; two quotes of the other kind stay two.
                return escaped[0][0] if escaped[0][0] == self.text[start] else escaped[0]
            if escaped[1] not in ESCAPES:
                problem = f"expected one of \\\\ \\\" \\' \\n \\r \\t, got {quote(escaped[0])}"
                raise self.error(problem, start + 1 + escaped.start())
            return ESCAPES[escaped[1]]

        value = ESCAPED.sub(unescape, match[0][1:-1])
        return Token(Kind.VALUE, match[0], start, value=value), match.end()

    def number(self, start: int) -> tuple[Token, int]:
        match = NUMBER.match(self.text, start)
        end = match.end() if match else start + 1
        end_of_number = end
        while self.text[end : end + 1] == "." or _continues_name(self.text[end : end + 1]):
            end += 1
        if not match or end > end_of_number:
            problem = f"expected a number such as -3 or 0.5, got {quote(self.text[start:end])}"
            raise self.error(problem, start)
        value = _number(match[0], is_integer=match[1] is None and match[2] is None)
        if math.isinf(value):
            raise self.error(f"expected a number up to 1.7e308, got {quote(match[0])}", start)
        return Token(Kind.VALUE, match[0], start, value=value), end

    def name(self, start: int) -> tuple[Token, int]:
        """Read a field or a keyword."""
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
        return Token(Kind.KEYWORD, word.lower(), start), end

    def key(self, start: int) -> tuple[str, int]:
        """Read one key of a field."""
        if self.text[start : start + 1] == "`":
            return self.backticked(start)
        end = start
        while _continues_name(self.text[end : end + 1]):
            end += 1
        key = self.text[start:end]
        if not key.isidentifier():
            got = quote(key or self.text[start : start + 1]) if start < len(self.text) else "the end"
            raise self.error(
                f"expected a name after the dot, in backticks unless it is an identifier, got {got}", start
            )
        return key, end

    def backticked(self, start: int) -> tuple[str, int]:
        match = BACKTICKED.match(self.text, start)
        if not match:
            raise self.error("expected a name between two backticks", start)
        key = match[1].replace("``", "`")
        if refused := REFUSED_IN_NAME.search(key):
            kind = {'"': "a double quote", "\\": "a backslash"}.get(refused[0], "a control character")
            raise self.error(f"a field with {kind} in its name cannot be filtered on", start)
        return key, match.end()

    def error(self, problem: str, position: int) -> FilterError:
        return FilterError(problem, text=self.text, position=position)


def _number(text: str, *, is_integer: bool) -> int | float:
    # Every 64-bit integer fits in 20 characters; int() refuses very long ones.
    if is_integer and len(text) <= 20 and int(text) in INT64_RANGE:
        return int(text)
    return float(text)


def _continues_name(character: str) -> bool:
    return character != "" and f"a{character}".isidentifier()
