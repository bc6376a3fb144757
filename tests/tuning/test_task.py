from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from snuh.errors import InputError, SnuhError
from snuh.experiments.labels import LabelScore
from snuh.experiments.reach import ReachScore
from snuh.methods import make
from snuh.metrics import precision_at_k
from snuh.progress import Progress
from snuh.tuning.grids import make_grid
from snuh.tuning.rows import Rows
from snuh.tuning.task import Task

QUICK = {"epochs": 2, "trees": 2}


def task(rows: Rows, **changes: Any) -> Task:
    return Task(rows, "snuh", **({"bits": 16, "seed": 3, "select": "label-free", "fixed": QUICK} | changes))


def test_a_trial_is_measured_by_what_short_walks_reach(rows: Rows) -> None:
    assert rows.val is not None
    parameters = {"tau": 0.5, "neighbors": 9}
    measured = task(rows).measure(parameters)
    score = ReachScore(rows.train.X, rows.val.X, seed=3)
    fitted = make("snuh", bits=16, seed=3, parameters=QUICK | parameters)
    fitted.fit(rows.train.X, X_val=rows.val.X, score=score)
    assert measured == fitted.training_["score"] == score(fitted.encoder_).value


def test_without_val_a_trial_learns_from_what_a_fit_would_learn_from(rows: Rows) -> None:
    parameters = {"neighbors": 5, "epochs": 1}  # one epoch, so that there is none to choose
    drawn = task(replace(rows, val=None))
    measured = drawn.measure(parameters)
    fitted = make("snuh", bits=16, seed=3, parameters=QUICK | parameters).fit(rows.train.X)
    assert measured == drawn.score(fitted.encoder_).value


def test_the_defaults_of_a_study_are_those_that_a_fit_would_take(rows: Rows) -> None:
    drawn = task(replace(rows, val=None), fixed={"epochs": 1})
    grid = make_grid("snuh", bits=16, seed=3, fixed={"epochs": 1}, docs=drawn.documents)
    fitted = make("snuh", bits=16, seed=3, parameters={"epochs": 1}).fit(rows.train.X)
    assert drawn.documents == fitted.training_["documents"] < rows.train.X.shape[0]
    assert grid.defaults.items() >= {"neighbors": 5, "batch_size": 32}.items()


@pytest.mark.filterwarnings("ignore:the codes are dead")  # what differs may share a code
@pytest.mark.parametrize("docs", [2, 3, 4, 7])
def test_a_few_documents_can_be_scored(docs: int) -> None:
    X = sparse.random_array((docs, 12), density=0.8, format="csr", rng=np.random.default_rng(0))
    encoder = make("lsh", bits=8, seed=0, parameters={}).fit(X).encoder_
    assert 0 <= ReachScore(X, X)(encoder).value <= 1


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
