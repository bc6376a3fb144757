"""The page on filters says what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from snuh.filters import FilterError, parse
from snuh.filters.parser import MAX_CHARACTERS, MAX_CONDITIONS, MAX_NESTING, MAX_VALUES

PAGE = (Path(__file__).parents[2] / "docs" / "filters.md").read_text(encoding="utf-8")


def test_the_page_names_the_limits() -> None:
    assert f"{MAX_CHARACTERS:,} characters, {MAX_CONDITIONS} conditions, {MAX_VALUES:,} values" in PAGE
    assert f"{MAX_NESTING} levels" in PAGE


def test_the_message_of_the_page_is_the_real_one() -> None:
    with pytest.raises(FilterError) as caught:
        parse("lang = en")
    assert f"```text\n{caught.value}\n{caught.value.pointer()}\n```" in PAGE


def test_the_conditions_of_the_page_can_be_read() -> None:
    conditions = re.findall(r"^\| `(.+?)`", PAGE, re.MULTILINE)
    assert len(conditions) >= 9
    for condition in conditions:
        parse(condition)


def test_the_snippet_of_the_page_runs() -> None:
    snippet = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert snippet
    namespace: dict[str, object] = {}
    exec(snippet[1], namespace)
    assert namespace["parameters"] == ['$."year"', 2020, '$."year"', '$."tags"', '$."tags"', "graphs"]
