from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snuh.errors import InputError, SnuhError
from snuh.experiments.labels import LabelScore
from snuh.features import unit_rows
from snuh.methods import make
from snuh.metrics import precision_at_k
from snuh.progress import Progress
from snuh.tuning.rows import Rows
from snuh.tuning.task import Task

QUICK = {"epochs": 2, "trees": 2}


def task(rows: Rows, **changes: Any) -> Task:
    return Task(rows, "snuh", **({"bits": 16, "seed": 3, "select": "label-free", "fixed": QUICK} | changes))


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


def test_labels_judge_every_epoch_and_the_best_is_kept(rows: Rows) -> None:
    assert rows.val is not None
    parameters, told = {"neighbors": 5, "epochs": 4}, []

    def listen(progress: Progress) -> None:
        if progress.epoch is not None:
            told.append(progress.epoch.score)

    measured = task(rows, select="labels").measure(parameters, on_progress=listen)
    by_labels = LabelScore(rows.train, rows.val)
    fitted = make("snuh", bits=16, seed=3, parameters=QUICK | parameters)
    fitted.fit(rows.train.X, X_val=rows.val.X, score=by_labels)
    expected = precision_at_k(
        fitted.transform(rows.val.X), rows.val.labels, fitted.transform(rows.train.X), rows.train.labels
    )
    assert measured == pytest.approx(expected)
    assert measured == max(told) and len(told) == 4  # by these a trial that falls behind is given up


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
