"""The study of scores without labels: correlations and losses of rows whose figures are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from snuh.errors import InputError
from snuh.experiments.score_study import DEFAULT, SCORE_STUDY, score_quality, variants
from snuh.experiments.scores import CANDIDATES
from snuh.methods import METHODS, make
from tests.experiments.worlds import finished, table_cells

CHOICE = replace(DEFAULT, corpora=("ng20",), methods=("itq", "lsh", "nash", "sph"))


def row(precision: float | None, score: float, **changes: Any) -> dict[str, Any]:
    scores = dict.fromkeys(CANDIDATES, score) | {"halves": -score}
    return finished(precision, bits=64, candidate_scores=scores, **changes)


ROWS = [
    row(0.1, 1.0, method="lsh"),
    row(0.5, 3.0, method="itq"),
    row(0.6, 2.0, method="nash"),
    row(None, 9.0, method="sph"),
    row(0.9, 9.0, method="snuh"),  # not among the chosen
    finished(0.9, bits=64, method="nash", parameters={"epochs": 2}),  # from before scores were kept
    finished(
        0.9, bits=64, method="sph", candidate_scores={"both": 9.0}
    ),  # from before all of them were known
]


def test_correlation_is_of_ranks_and_the_loss_is_of_the_run_with_the_best_score() -> None:
    found = score_quality(ROWS[:3], "both")
    assert found is not None
    assert (found.runs, found.correlation, found.precision_lost) == (
        3,
        pytest.approx(0.5),
        pytest.approx(0.1),
    )
    worst = score_quality(ROWS[:3], "halves")
    assert worst is not None
    assert (worst.correlation, worst.precision_lost) == (pytest.approx(-0.5), pytest.approx(0.5))


def test_table_counts_the_runs_that_were_chosen_and_have_scores() -> None:
    cells = table_cells(SCORE_STUDY.markdown(CHOICE, ROWS))
    assert cells[0] == ["score", "ng20, 64 bits (3 runs): correlation", "lost"]
    by_score = {line[0]: line[1:] for line in cells[1:]}
    assert list(by_score) == list(CANDIDATES)
    assert by_score["both"] == ["**.50**", "**.100**"]
    assert by_score["halves"] == ["-0.50", ".500"]


def test_too_few_runs_leave_their_cells_empty() -> None:
    cells = table_cells(SCORE_STUDY.markdown(CHOICE, ROWS[:2]))
    assert all(line[1:] == ["", ""] for line in cells[1:])


def test_all_settings_are_those_of_their_methods() -> None:
    found = variants(DEFAULT)
    assert len(found) * len(DEFAULT.corpora) >= 60
    assert {variant.method for variant in found} == set(METHODS)
    for variant in found:
        make(variant.method, bits=64, seed=0, parameters=variant.parameters).check_parameters()


def test_what_the_study_sets_itself_cannot_be_given() -> None:
    with pytest.raises(InputError, match="score sets epochs itself"):
        variants(replace(DEFAULT, parameters={"epochs": 3}))
