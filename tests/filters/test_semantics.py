"""What a filter means: the same in Python and in SQLite, on any document."""

from __future__ import annotations

import itertools
import re
import sqlite3
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snuh.filters import Filter, SqlColumns, matches, parse, to_sql
from snuh.filters.parser import MAX_CONDITIONS, MAX_NESTING
from snuh.io import dump_json
from tests.filters.worlds import THOROUGH, filters, records

COLUMNS = SqlColumns(id="d.id", split="d.split", labels="d.labels", metadata="d.metadata")
OWN = ("id", "split", "labels")


def rows_in_sqlite(filter_: Filter, documents: Iterable[dict[str, Any]]) -> list[int]:
    """Put the documents into a table and return the numbers of those that the filter lets through."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE TABLE document (id TEXT, split TEXT, labels TEXT, metadata TEXT)")
        for document in documents:
            metadata = {name: value for name, value in document.items() if name not in OWN}
            row = (document["id"], document["split"], dump_json(document["labels"]), dump_json(metadata))
            connection.execute("INSERT INTO document VALUES (?, ?, ?, ?)", row)
        expression, parameters = to_sql(filter_, columns=COLUMNS)
        query = f"SELECT d.rowid - 1 FROM document AS d WHERE d.id IS NOT NULL AND ({expression}) ORDER BY 1"
        return [number for (number,) in connection.execute(query, parameters)]
    finally:
        connection.close()


def is_met(text: str, **metadata: Any) -> bool:
    """Ask both Python and SQLite, who must agree."""
    record = {"id": "7", "split": None, "labels": [], **metadata}
    answer = matches(parse(text), record)
    assert rows_in_sqlite(parse(text), [record]) == ([0] if answer else [])
    return answer


@settings(THOROUGH, max_examples=200)
@given(filters, st.lists(records(), min_size=1, max_size=8))
def test_python_and_sqlite_agree_on_every_document(filter_: Filter, documents: list[dict[str, Any]]) -> None:
    met = [number for number, record in enumerate(documents) if matches(filter_, record)]
    assert rows_in_sqlite(filter_, documents) == met


@settings(THOROUGH)
@given(filters, st.lists(records(), min_size=1, max_size=4))
def test_not_matches_exactly_the_other_documents(filter_: Filter, documents: list[dict[str, Any]]) -> None:
    met = rows_in_sqlite(filter_, documents)
    others = rows_in_sqlite(parse(f"not ({filter_})"), documents)
    assert sorted(met + others) == list(range(len(documents)))


@pytest.mark.parametrize(
    "text",
    [
        "a and (b or c)",
        "a and b or c",
        "a or b and c",
        "(a or b) and (b or c)",
        "not a or b and not c",
        "not (a or b) and c",
        "not (a and not (b or c))",
        "not not a and (b or (c and a))",
    ],
)
def test_and_or_not_and_parentheses_mean_what_they_mean_in_python(text: str) -> None:
    conditions = re.sub(r"\b([abc])\b", r"\1 = true", text)
    for a, b, c in itertools.product([True, False], repeat=3):
        assert is_met(conditions, a=a, b=b, c=c) == eval(text, {"a": a, "b": b, "c": c})


@pytest.mark.parametrize(
    "text", ["a = 1", "a < 1", "a >= 1", "a in (1)", "a contains 1", "a = 'x'", "a = true"]
)
@pytest.mark.parametrize("metadata", [{}, {"a": None}])
def test_conditions_on_a_missing_or_null_field_are_false(text: str, metadata: dict[str, Any]) -> None:
    assert not is_met(text, **metadata)
    assert is_met(f"not {text}", **metadata)


@pytest.mark.parametrize(
    "text", ["a is null", "a != 1", "a not in (1)", "a in (1, null)", "not a contains 1"]
)
@pytest.mark.parametrize("metadata", [{}, {"a": None}])
def test_negated_conditions_match_a_missing_field(text: str, metadata: dict[str, Any]) -> None:
    assert is_met(text, **metadata)
    assert not is_met("a not in (1, null)", **metadata)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a = '1'", 1),
        ("a = 1", "1"),
        ("a = 1", True),
        ("a = true", 1),
        ("a = 'true'", True),
        ("a = 0", False),
        ("a < 5", True),
        ("a > 5", "x"),
        ("a < 'x'", 5),
        ("a > 'x'", [1]),
        ("a = '[1]'", [1]),
        ("a in ('[1]', 1)", [1]),
        ("a contains 'x'", "x"),
        ("a contains 'x'", "xyz"),
        ("a contains 1", {"b": 1}),
        ("a contains 1", [True]),
        ("a contains '[1]'", [[1]]),
        ("a.b = 1", [{"b": 1}]),
    ],
)
def test_values_of_different_types_are_neither_equal_nor_ordered(text: str, value: object) -> None:
    assert not is_met(text, a=value)
    assert is_met(f"not ({text})", a=value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a = 1", 1.0),
        ("a = 1.0", 1),
        ("a > 0.5", 1),
        ("a in (2, 1.0)", 1),
        ("a > 9007199254740992.0", 2**53 + 1),
        ("a >= 9223372036854775807", 2**63 - 1),
        ("a > 9223372036854775807", 2**63),
        ("a = 100000000000000000000", 10**20),
        ("a = 1e20", 10**20 + 1),
        ("a = -9223372036854775808", -(2**63) - 1),
        ("a > 1e308", 10**309),
        ("a = 2.2790121708605243e+274", 2.2790121708605243e274),
        ("a < 'b'", "a"),
        ("a < 'a'", "Z"),
        ("a < '\U0001f600'", "\uffff"),
        ("a >= ''", ""),
        ("a contains 'x'", [1, "x", None]),
        ("a contains 1", ["x", 1.0]),
        ("a contains false", [0, False]),
        ("a is not null", []),
        ("a is not null", False),
        ("a is null", float("nan")),
        ("a is null", float("inf")),
    ],
)
def test_numbers_compare_by_value_strings_by_code_point_and_lists_by_their_items(
    text: str, value: object
) -> None:
    assert is_met(text, a=value)


def test_dots_step_into_objects_and_backticks_do_not() -> None:
    assert is_met("a.b = 1", a={"b": 1})
    assert not is_met("a.b = 1", **{"a.b": 1})
    assert is_met("`a.b` = 1", **{"a.b": 1})
    assert not is_met("`a.b` = 1", a={"b": 1})


def test_every_document_has_an_id_a_split_and_labels() -> None:
    assert is_met("id = '7' and split is null and labels is null")
    assert is_met("split in ('test', 'val')", split="val")
    assert is_met("labels contains 'x' and labels is not null", labels=["y", "x"])
    assert not is_met("labels contains 'x'", labels=["xy"])


def test_nothing_of_the_filter_is_pasted_into_the_sql() -> None:
    hostile = "x') OR 1=1 --"
    expression, parameters = to_sql(
        parse(f'`{hostile}` = "{hostile}" and `{hostile}` contains "{hostile}"'), columns=COLUMNS
    )
    assert "--" not in expression
    assert expression.count("?") == len(parameters)
    assert parameters.count(hostile) == 2
    assert not is_met(f'`{hostile}` = "{hostile}"', a=1)


@pytest.mark.parametrize("condition", ["a contains 1.5", "a in (1, 'x', true, null)", "labels contains 'x'"])
@pytest.mark.parametrize("opening", ["({} or {} and ", "{} and not (", "not (", "({} or ", "not "])
def test_sqlite_takes_the_deepest_filter_that_can_be_written(condition: str, opening: str) -> None:
    levels = MAX_NESTING // (opening.count("not") + opening.count("("))
    closing = ")" * opening.count("(")
    text = opening.format(condition, condition) * levels + condition + closing * levels
    is_met(text, a=[1.5])


@pytest.mark.parametrize("word", ["and", "or"])
def test_sqlite_takes_the_longest_filter_that_can_be_written(word: str) -> None:
    assert is_met(f" {word} ".join(["a!=1"] * MAX_CONDITIONS), a=2)
    values = ", ".join(str(number) for number in range(1_000))
    assert is_met(f"a in ({values}) {word} a in ({values})", a=999)
