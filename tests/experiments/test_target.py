"""Tables as Markdown."""

from __future__ import annotations

from snuh.experiments.target import Table


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    table = Table(["a", "b"], [["1 | 2", "**3**"]], "About")
    assert table.markdown() == "About:\n\n| a      | b     |\n|--------|-------|\n| 1 \\| 2 | **3** |"
    dropped = table.drop_column("a")
    assert dropped.titles == ["b"] and dropped.lines == [["**3**"]]
