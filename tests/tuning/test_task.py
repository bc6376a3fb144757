from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snuh.errors import InputError, SnuhError
from snuh.features import unit_rows
from snuh.methods import make
from snuh.metrics import precision_at_k
from snuh.tuning.rows import Rows
from snuh.tuning.task import Task

QUICK = {"epochs": 2, "trees": 2}


def task(rows: Rows, **changes: Any) -> Task:
    return Task(rows, "snuh", **({"bits": 16, "seed": 3, "select": "score", "fixed": QUICK} | changes))


def test_every_trial_is_measured_by_the_same_score(rows: Rows) -> None:
    """A score made for one setting gives the encoder of another the score of its own trial."""
    assert rows.val is not None
    one, other = {"batch_size": 32, "neighbors": 5}, {"tau": 0.5, "neighbors": 9}
    for held in (rows.val, None):  # the split val, or a part drawn at random
        X_val = None if held is None else held.X
        measured = task(replace(rows, val=held)).measure(other)
        fitted = make("snuh", bits=16, seed=3, parameters=QUICK | other).fit(rows.train.X, X_val=X_val)
        judge = make("snuh", bits=16, seed=3, parameters=QUICK | one)
        unit_val = None if X_val is None else unit_rows(X_val)
        score = judge._training_data(unit_rows(rows.train.X), unit_val, None).score
        assert measured == fitted.training_["score"]
        assert score(fitted.encoder_).value == pytest.approx(measured, abs=1e-9)


def test_labels_judge_the_codes_that_a_fit_gives(rows: Rows) -> None:
    assert rows.val is not None
    parameters = {"neighbors": 5}
    fitted = make("snuh", bits=16, seed=3, parameters=QUICK | parameters)
    fitted.fit(rows.train.X, X_val=rows.val.X)
    expected = precision_at_k(
        fitted.transform(rows.val.X), rows.val.labels, fitted.transform(rows.train.X), rows.train.labels
    )
    assert task(rows, select="labels").measure(parameters) == pytest.approx(expected)


def test_a_fit_that_ends_with_dead_codes_fails(rows: Rows) -> None:
    two_words = np.zeros((60, 2), dtype=np.float32)
    two_words[:, 0], two_words[::2, 1] = 1, 1  # two distinct documents: three distinct codes are impossible
    dead = replace(rows, train=replace(rows.train, X=two_words), val=None)
    with pytest.raises(SnuhError, match="the codes are dead"):
        task(dead).measure({"neighbors": 5})


def test_labels_need_val_and_labels(rows: Rows) -> None:
    with pytest.raises(InputError, match=r"needs documents of the split val, topics\.jsonl has none"):
        task(replace(rows, val=None), select="labels")
    bare = replace(rows.train, labels=[() for _ in rows.train.labels])
    with pytest.raises(InputError, match=r"needs labels, topics\.jsonl has none in the split train"):
        task(replace(rows, train=bare), select="labels")
