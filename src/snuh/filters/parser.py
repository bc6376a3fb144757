"""The parser of filters, by recursive descent.

disjunction = conjunction { "or" conjunction }
conjunction = inversion { "and" inversion }
inversion   = "not" inversion | "(" disjunction ")" | condition
condition   = field operator value | field "is" ["not"] "null"
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
