"""Filters are read as the language says, written so that they read back, and refused where they are none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snuh.errors import InputError
from snuh.filters import Filter, FilterError, parse
from snuh.filters.parser import MAX_CONDITIONS, MAX_NESTING, MAX_VALUES
from snuh.filters.tree import And, Comparison, Contains, Field, In, IsNull, Not, Or
from tests.filters.worlds import THOROUGH, filters

A, B, C = Field(("a",)), Field(("b",)), Field(("c",))
A1, B1, C1 = Comparison(A, "=", 1), Comparison(B, "=", 1), Comparison(C, "=", 1)

PIECES = [
    *["a", "`my field`", "a.b", "labels", "id", "text", ".", "`", "1", "-1.5e3", "9" * 400, "'x'", '"', "'"],
    *["and", "OR", "not", "in", "is", "null", "contains", "true", "(", ")", ",", "=", "!=", "<", ">=", "\\"],
    *[" ", " ", "\n", "\0", "\ud800", "é", "日", "&"],
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", A1),
        ("a == 1", A1),
        ("a=1", A1),
        ("a != 1", Not(A1)),
        ("a <= -1.5", Comparison(A, "<=", -1.5)),
        ("a < 1e3", Comparison(A, "<", 1000.0)),
        ("a > 'x'", Comparison(A, ">", "x")),
        ("a >= +2", Comparison(A, ">=", 2)),
        ("a = TRUE", Comparison(A, "=", True)),
        ("a in (1, 'x', false, Null)", In(A, (1, "x", False, None))),
        ("a not in (1)", Not(In(A, (1,)))),
        ("a is null", IsNull(A)),
        ("a Is Not Null", Not(IsNull(A))),
        ("a contains 'x'", Contains(A, "x")),
        ("a not contains 'x'", Not(Contains(A, "x"))),
        ("\n a\t=\r\n1 ", A1),
        ("((a = 1))", A1),
    ],
)
def test_each_kind_of_condition_is_read(text: str, expected: Filter) -> None:
    assert repr(parse(text)) == repr(expected)  # repr tells 1 from True and 1.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1 or b = 1 and c = 1", Or((A1, And((B1, C1))))),
        ("a = 1 and b = 1 or c = 1", Or((And((A1, B1)), C1))),
        ("(a = 1 or b = 1) and c = 1", And((Or((A1, B1)), C1))),
        ("not a = 1 and b = 1", And((Not(A1), B1))),
        ("not (a = 1 and b = 1)", Not(And((A1, B1)))),
        ("not not a = 1", Not(Not(A1))),
        ("a = 1 and (b = 1 and c = 1)", And((A1, And((B1, C1))))),
    ],
)
def test_not_binds_tighter_than_and_and_and_tighter_than_or(text: str, expected: Filter) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('"it\'s"', "it's"),
        ("'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        ('"say ""hi"""', 'say "hi"'),
        (r'"say \"hi\""', 'say "hi"'),
        ("\"it''s\"", "it''s"),
        (r'"a\\b\n\t\r"', "a\\b\n\t\r"),
        (r'"\\"', "\\"),
        ('""', ""),
        ("''''", "'"),
        ('"日本 \U0001f600"', "日本 \U0001f600"),
        ('"two\nlines"', "two\nlines"),
    ],
)
def test_strings_take_both_quotes_doubled_quotes_and_backslashes(written: str, meant: str) -> None:
    assert parse(f"a = {written}") == Comparison(A, "=", meant)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("author.name", ("author", "name")),
        ("`author.name`", ("author.name",)),
        ("`my field`", ("my field",)),
        ("author.`first name`.x", ("author", "first name", "x")),
        ("`a``b`", ("a`b",)),
        ("`in`", ("in",)),
        ("a.in", ("a", "in")),
        ("Größe_2", ("Größe_2",)),
        ("नाम", ("नाम",)),
        ("_x", ("_x",)),
        ("`2020`", ("2020",)),
    ],
)
def test_names_are_letters_of_any_script_with_dots_or_anything_in_backticks(
    name: str, keys: tuple[str, ...]
) -> None:
    assert parse(f"{name} is null") == IsNull(Field(keys))
    assert parse(str(IsNull(Field(keys)))) == IsNull(Field(keys))


def test_integers_beyond_64_bits_are_read_as_floats() -> None:
    assert repr(parse(f"a in ({2**63 - 1}, {2**63}, {'1' + '0' * 300})")) == repr(
        In(A, (2**63 - 1, 2.0**63, 1e300))
    )


def test_fields_are_named_once_in_order_of_appearance() -> None:
    found = parse("b = 1 and (`my field` = 1 or not x.y contains 1) and b is not null and split in ('test')")
    assert found.fields() == ("b", "`my field`", "x.y", "split")


@settings(THOROUGH)
@given(filters)
def test_a_written_filter_reads_back_as_the_same(filter_: Filter) -> None:
    read = parse(str(filter_))
    assert read == filter_
    assert repr(read) == repr(filter_)


@settings(THOROUGH)
@given(
    st.text()
    | st.lists(st.sampled_from(PIECES)).map("".join)
    | st.lists(st.sampled_from(PIECES)).map(" ".join)
)
def test_a_text_is_parsed_or_refused_with_a_position_in_one_line(text: str) -> None:
    try:
        parse(text)
    except FilterError as error:
        assert error.text == text
        assert 0 <= error.position <= len(text)
        assert str(error).isprintable()
        shown, caret = error.pointer().split("\n")
        assert shown.isprintable()
        assert caret.strip(" ") == "^"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = and", 'character 5: expected a value, got "and"'),
        ("", "character 1: expected a field, got the end"),
        (
            "archived",
            'character 9: expected a comparison of the field "archived", such as = or in, got the end',
        ),
        ("a and b = 1", 'character 3: expected a comparison of the field "a", such as = or in, got "and"'),
        ("a = null", 'character 5: expected a value, got "null": write "is null" or "is not null"'),
        ("lang = en", 'character 8: expected a value, got "en": put a string into quotes'),
        ('"year" = 3', 'character 1: expected a field, got "year": write the field first, without quotes'),
        ("a = 1 b = 2", 'character 7: expected and, or, or the end, got "b"'),
        ("(a = 1", 'character 7: expected and, or, or ")" for the "(" of character 1, got the end'),
        ("a = 1)", 'character 6: expected and, or, or the end, got ")"'),
        ("a in 1", 'character 6: expected "(" and a list of values, got "1"'),
        ("a in ()", 'character 7: expected a value, got ")"'),
        ("a in (1 2)", 'character 9: expected "," or ")", got "2"'),
        ("a not = 1", 'character 7: expected in or contains, got "="'),
        ("a is 3", 'character 6: expected null or not null, got "3"'),
        ("a contains null", 'character 12: expected a value, got "null"'),
        ("a < true", "character 5: expected a number or a string, got true: it has no order"),
        ("a = 5x", 'character 5: expected a number such as -3 or 0.5, got "5x"'),
        ("a = 1.", 'character 5: expected a number such as -3 or 0.5, got "1."'),
        ("a = 1e999", 'character 5: expected a number up to 1.7e308, got "1e999"'),
        ("a = 'x", "character 5: this string has no closing '"),
        ("a = 'x''", "character 5: this string has no closing '"),
        (r"a = 'x\q'", r'character 7: expected one of \\ \" \' \n \r \t, got "\q"'),
        (
            "a. = 1",
            'character 3: expected a name after the dot, in backticks unless it is an identifier, got " "',
        ),
        ("`a = 1", "character 1: expected a name between two backticks"),
        ("`` = 1", "character 1: expected a name between two backticks"),
        ("a && b", 'character 3: expected a field, a value or an operator, got "&"'),
        ("a = '\0'", "character 6: expected text, got the character U+0000, which cannot be searched for"),
        ("a = '\udc80'", "character 6: expected text, got the character U+DC80"),
        ('`a"b` = 1', "character 1: a field with a double quote in its name cannot be filtered on"),
        ("`a\\b` = 1", "character 1: a field with a backslash in its name cannot be filtered on"),
        ("`a\nb` = 1", "character 1: a field with a control character in its name cannot be filtered on"),
        ("text = 'x'", "character 1: the text of a document cannot be filtered on"),
        ("id.x = 'x'", 'character 1: "id" is not an object: expected id without a dot'),
        ("id = 5", 'character 6: expected a string in quotes for "id", got "5"'),
        ("id contains 'x'", 'character 4: "id" is a string, not a list: expected = or in'),
        ("split in ('test', 1)", 'character 19: expected a string in quotes for "split", got "1"'),
        ("labels = 'x'", 'character 8: "labels" is a list: expected contains or is'),
        ("labels contains 1", 'character 17: expected a string in quotes for "labels", got "1"'),
    ],
)
def test_an_error_says_what_was_expected_what_came_and_where(text: str, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse(text)
    assert str(caught.value).startswith(f"filter, {message}")
    assert isinstance(caught.value, InputError)


def test_the_pointer_stands_below_the_problem_also_after_wide_letters() -> None:
    with pytest.raises(FilterError) as caught:
        parse("`日本` = 'e\u0301' and b = , c")
    assert caught.value.pointer() == "`日本` = 'e\u0301' and b = , c\n" + " " * 21 + "^"


def test_the_pointer_shows_only_the_surroundings_in_a_long_filter() -> None:
    with pytest.raises(FilterError) as caught:
        parse("a = 1 and " * 200 + "a ! 1" + " and a = 1" * 200)
    shown, caret = caught.value.pointer().split("\n")
    assert shown[len(caret) - 1] == "!"
    assert len(shown) == 60


@pytest.mark.parametrize(
    ("allowed", "refused"),
    [
        ("a = '" + "x" * 9_994 + "'", "a = '" + "x" * 9_995 + "'"),
        ("(" * MAX_NESTING + "a = 1" + ")" * MAX_NESTING, "(" * 9_000),
        ("not " * MAX_NESTING + "a = 1", "not " * (MAX_NESTING + 1) + "a = 1"),
        ("a in (" + "1," * (MAX_VALUES - 1) + "1)", "a in (" + "1," * MAX_VALUES + "1)"),
        ("a = 1 or " * (MAX_CONDITIONS - 1) + "a = 1", "a = 1 or " * MAX_CONDITIONS + "a = 1"),
    ],
)
def test_length_nesting_lists_and_conditions_are_bounded(allowed: str, refused: str) -> None:
    parse(allowed)
    with pytest.raises(FilterError, match="expected at most"):
        parse(refused)
