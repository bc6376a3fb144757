"""The lexer and the parser of filters, by recursive descent, and the error for what cannot be parsed.

disjunction = conjunction { "or" conjunction }
conjunction = inversion { "and" inversion }
inversion   = "not" inversion | "(" disjunction ")" | condition
condition   = field operator value | field "is" ["not"] "null"
            | field ["not"] "in" "(" value { "," value } ")" | field ["not"] "contains" value
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from snuh.errors import InputError
from snuh.filters.tree import (
    INT64_RANGE,
    KEYWORDS,
    And,
    Comparison,
    Contains,
    Field,
    Filter,
    In,
    IsNull,
    Not,
    Operator,
    Or,
    Value,
    field_problem,
    operator_problem,
    value_problem,
)
from snuh.text import printable, shorten

# Within these limits SQLite accepts all output of `to_sql`: its parser stack holds 100 symbols, and its
# expression trees may be 1,000 levels deep.
MAX_NESTING = 12
MAX_CONDITIONS = 200
MAX_VALUES = 1_000

OPERATORS: dict[str, Operator] = {
    **{"=": "=", "==": "=", "!=": "="},  # negated by the parser
    **{"<": "<", "<=": "<=", ">": ">", ">=": ">="},
}


def parse(text: str) -> Filter:
    """Parse a filter; FilterError, with the position, if it is invalid."""
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = iter(tokenize(text))
        self.token = next(self.tokens)  # the next to be consumed
        self.nesting = 0
        self.conditions = 0

    def parse(self) -> Filter:
        tree = self.disjunction()
        if self.token.kind is not Kind.END:
            self.fail_expecting("and, or, or the end")
        return tree

    def disjunction(self) -> Filter:
        parts = self.separated_by("or", self.conjunction)
        return Or(parts) if len(parts) > 1 else parts[0]

    def conjunction(self) -> Filter:
        parts = self.separated_by("and", self.inversion)
        return And(parts) if len(parts) > 1 else parts[0]

    def separated_by(self, keyword: str, parse_part: Callable[[], Filter]) -> tuple[Filter, ...]:
        parts = [parse_part()]
        while self.accept(keyword):
            parts.append(parse_part())
        return tuple(parts)

    def inversion(self) -> Filter:
        opening = self.token
        if not opening.is_one_of("not", "("):
            return self.condition()
        if self.nesting == MAX_NESTING:
            self.fail(f'expected at most {MAX_NESTING} levels of "(" and "not", got more', opening)
        self.advance()
        self.nesting += 1
        if opening.text == "not":
            inner: Filter = Not(self.inversion())
        else:
            inner = self.disjunction()
            self.expect(")", f'and, or, or ")" for the "(" of character {opening.position + 1}')
        self.nesting -= 1
        return inner

    def condition(self) -> Filter:
        self.conditions += 1
        if self.conditions > MAX_CONDITIONS:
            self.fail(f"expected at most {MAX_CONDITIONS} conditions, got more: use in (...)", self.token)
        field = self.field()
        start = self.token
        is_negated = self.accept("not")
        operator = self.operator(field, after_not=is_negated)
        if problem := operator_problem(field, operator):
            self.fail(problem, start)
        tree: Filter
        if operator == "is":
            is_negated = self.accept("not")
            self.expect("null", "null" if is_negated else "null or not null")
            tree = IsNull(field)
        elif operator == "in":
            tree = In(field, self.values(field))
        elif operator == "contains":
            tree = Contains(field, self.value(field))
        else:
            is_negated = operator == "!="
            tree = Comparison(field, OPERATORS[operator], self.compared_value(field, operator))
        return Not(tree) if is_negated else tree

    def field(self) -> Field:
        if self.token.kind is Kind.VALUE:
            self.fail_expecting("a field", advice="write the field first, without quotes or in backticks")
        if self.token.kind is not Kind.FIELD:
            self.fail_expecting("a field")
        if problem := field_problem(self.token.field):
            self.fail(problem, self.token)
        return self.advance().field

    def operator(self, field: Field, *, after_not: bool) -> str:
        if after_not and not self.token.is_one_of("in", "contains"):
            self.fail_expecting("in or contains")
        if not self.token.is_one_of("in", "contains", "is", *OPERATORS):
            self.fail_expecting(f"a comparison of the field {quote(str(field))}, such as = or in")
        return self.advance().text

    def compared_value(self, field: Field, operator: str) -> Value:
        if self.token.is_one_of("null"):
            self.fail_expecting("a value", advice='write "is null" or "is not null"')
        start = self.token
        value = self.value(field)
        if isinstance(value, bool) and OPERATORS[operator] != "=":
            self.fail(f"expected a number or a string, got {start.text}: it has no order", start)
        return value

    def value(self, field: Field) -> Value:
        if self.token.kind is Kind.FIELD:
            self.fail_expecting("a value", advice="put a string into quotes")
        if self.token.kind is not Kind.VALUE:
            self.fail_expecting("a value")
        if problem := value_problem(field, self.token.value):
            self.fail_expecting(problem)
        return self.advance().value

    def values(self, field: Field) -> tuple[Value | None, ...]:
        self.expect("(", '"(" and a list of values')
        values: list[Value | None] = []
        while not values or self.accept(","):
            if len(values) == MAX_VALUES:
                self.fail(f"expected at most {MAX_VALUES:,} values in a list, got more", self.token)
            values.append(None if self.accept("null") else self.value(field))
        self.expect(")", '"," or ")"')
        return tuple(values)

    def accept(self, text: str) -> bool:
        """Consume the next token if it is this keyword or symbol."""
        is_next = self.token.is_one_of(text)
        if is_next:
            self.advance()
        return is_next

    def expect(self, text: str, described: str) -> None:
        if not self.accept(text):
            self.fail_expecting(described)

    def advance(self) -> Token:
        token = self.token
        self.token = next(self.tokens, token)
        return token

    def fail_expecting(self, expected: str, *, advice: str = "") -> NoReturn:
        got = "the end" if self.token.kind is Kind.END else quote(self.token.text)
        self.fail(f"expected {expected}, got {got}" + (f": {advice}" if advice else ""), self.token)

    def fail(self, problem: str, token: Token) -> NoReturn:
        raise FilterError(problem, text=self.text, position=token.position)


# The lexer

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
