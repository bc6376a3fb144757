"""The table of time and memory, of rows whose figures are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from snuh.experiments.efficiency import DEFAULT, EFFICIENCY
from tests.experiments.worlds import finished, table_cells

CHOICE = replace(DEFAULT, corpora=("ng20",))


def timed(method: str, wanted: int, documents: int, epoch: float) -> dict[str, Any]:
    return finished(
        0.5,
        method=method,
        bits=64,
        parameters={"epochs": 3},
        documents=wanted,
        train_documents=documents,
        epoch_seconds=epoch,
        peak_megabytes=1500,
    )


def test_a_line_for_each_number_of_documents_that_the_corpus_has() -> None:
    rows = [timed("snuh", 1000, 1000, 0.2), timed("vdsh", 1000, 1000, 0.4)]
    for wanted in (30_000, 100_000):  # the corpus has fewer: twice the same
        rows += [timed("snuh", wanted, 11_016, 3.0), timed("vdsh", wanted, 11_016, 2.0)]
    rows.append(timed("snuh", 3000, 3000, 1.0))  # its partner is missing
    cells = table_cells(EFFICIENCY.markdown(CHOICE, rows))
    assert cells[1:] == [
        ["ng20", "64", "1,000", "0.20", "60.0", "1,500", "0.40", "60.0", "1,500", "0.50"],
        ["ng20", "64", "11,016", "3.00", "60.0", "1,500", "2.00", "60.0", "1,500", "1.50"],
    ]


def test_one_method_has_no_ratio() -> None:
    choice = replace(CHOICE, methods=("vdsh",))
    cells = table_cells(EFFICIENCY.markdown(choice, [timed("vdsh", 1000, 1000, 0.4)]))
    assert cells[0][-1] == "MB"
    assert len(cells) == 2
