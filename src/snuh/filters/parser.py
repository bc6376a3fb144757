"""From the text of a filter to its tree.

either    = both { "or" both }
both      = unit { "and" unit }
unit      = "not" unit | "(" either ")" | condition
condition = field sign value | field "is" ["not"] "null"
          | field ["not"] "in" "(" value { "," value } ")" | field ["not"] "contains" value
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from snuh.filters.lexer import FilterError, Kind, Token, quote, tokenize
from snuh.filters.tree import (
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

# Within these bounds SQLite takes whatever `to_sql` writes: its parser has room for 100 open symbols, and
# its trees are at most 1,000 deep.
MAX_NESTING = 12
MAX_CONDITIONS = 500
MAX_VALUES = 1_000

OPERATORS: dict[str, Operator] = {
    **{"=": "=", "==": "=", "!=": "="},  # != is the opposite of =
    **{"<": "<", "<=": "<=", ">": ">", ">=": ">="},
}


def parse(text: str) -> Filter:
    """Read a filter; FilterError, which says where, if it is none."""
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.rest = iter(tokenize(text))
        self.token = next(self.rest)  # the one to be read next
        self.nesting = 0
        self.conditions = 0

    def whole(self) -> Filter:
        found = self.either()
        if self.token.kind is not Kind.END:
            self.fail_expecting("and, or, or the end")
        return found

    def either(self) -> Filter:
        parts = self.joined("or", self.both)
        return Or(parts) if len(parts) > 1 else parts[0]

    def both(self) -> Filter:
        parts = self.joined("and", self.unit)
        return And(parts) if len(parts) > 1 else parts[0]

    def joined(self, word: str, read: Callable[[], Filter]) -> tuple[Filter, ...]:
        parts = [read()]
        while self.took(word):
            parts.append(read())
        return tuple(parts)

    def unit(self) -> Filter:
        opening = self.token
        if not opening.is_one_of("not", "("):
            return self.condition()
        if self.nesting == MAX_NESTING:
            self.fail(f'expected at most {MAX_NESTING} levels of "(" and "not", got more', opening)
        self.take()
        self.nesting += 1
        if opening.text == "not":
            inner: Filter = Not(self.unit())
        else:
            inner = self.either()
            self.expect(")", f'and, or, or ")" for the "(" of character {opening.position + 1}')
        self.nesting -= 1
        return inner

    def condition(self) -> Filter:
        self.conditions += 1
        if self.conditions > MAX_CONDITIONS:
            self.fail(f"expected at most {MAX_CONDITIONS} conditions, got more: use in (...)", self.token)
        field = self.field()
        start = self.token
        is_opposite = self.took("not")
        operator = self.operator(field, after_not=is_opposite)
        if problem := operator_problem(field, operator):
            self.fail(problem, start)
        found: Filter
        if operator == "is":
            is_opposite = self.took("not")
            self.expect("null", "null" if is_opposite else "null or not null")
            found = IsNull(field)
        elif operator == "in":
            found = In(field, self.values(field))
        elif operator == "contains":
            found = Contains(field, self.value(field))
        else:
            is_opposite = operator == "!="
            found = Comparison(field, OPERATORS[operator], self.compared_value(field, operator))
        return Not(found) if is_opposite else found

    def field(self) -> Field:
        if self.token.kind is Kind.VALUE:
            self.fail_expecting("a field", but="write the field first, without quotes or in backticks")
        if self.token.kind is not Kind.FIELD:
            self.fail_expecting("a field")
        if problem := field_problem(self.token.field):
            self.fail(problem, self.token)
        return self.take().field

    def operator(self, field: Field, *, after_not: bool) -> str:
        if after_not and not self.token.is_one_of("in", "contains"):
            self.fail_expecting("in or contains")
        if not self.token.is_one_of("in", "contains", "is", *OPERATORS):
            self.fail_expecting(f"a comparison of the field {quote(str(field))}, such as = or in")
        return self.take().text

    def compared_value(self, field: Field, operator: str) -> Value:
        if self.token.is_one_of("null"):
            self.fail_expecting("a value", but='write "is null" or "is not null"')
        start = self.token
        value = self.value(field)
        if isinstance(value, bool) and OPERATORS[operator] != "=":
            self.fail(f"expected a number or a string, got {start.text}: it has no order", start)
        return value

    def value(self, field: Field) -> Value:
        if self.token.kind is Kind.FIELD:
            self.fail_expecting("a value", but="put a string into quotes")
        if self.token.kind is not Kind.VALUE:
            self.fail_expecting("a value")
        if problem := value_problem(field, self.token.value):
            self.fail_expecting(problem)
        return self.take().value

    def values(self, field: Field) -> tuple[Value | None, ...]:
        self.expect("(", '"(" and a list of values')
        values: list[Value | None] = []
        while not values or self.took(","):
            if len(values) == MAX_VALUES:
                self.fail(f"expected at most {MAX_VALUES:,} values in a list, got more", self.token)
            values.append(None if self.took("null") else self.value(field))
        self.expect(")", '"," or ")"')
        return tuple(values)

    def took(self, text: str) -> bool:
        """Step over the word or sign, if it is the next token."""
        is_next = self.token.is_one_of(text)
        if is_next:
            self.take()
        return is_next

    def expect(self, text: str, described: str) -> None:
        if not self.took(text):
            self.fail_expecting(described)

    def take(self) -> Token:
        token = self.token
        self.token = next(self.rest, token)
        return token

    def fail_expecting(self, expected: str, *, but: str = "") -> NoReturn:
        got = "the end" if self.token.kind is Kind.END else quote(self.token.text)
        self.fail(f"expected {expected}, got {got}" + (f": {but}" if but else ""), self.token)

    def fail(self, problem: str, token: Token) -> NoReturn:
        raise FilterError(problem, text=self.text, position=token.position)
