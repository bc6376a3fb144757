from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from snuh.errors import InputError, SnuhError
from snuh.experiments.scores import LabelScore, RandomWalkScore
from snuh.methods import make
from snuh.metrics import precision_at_k
from snuh.progress import Progress
from snuh.tuning.objective import Objective, TuningData
from snuh.tuning.search_space import build_search_space

QUICK = {"epochs": 2, "trees": 2}


def objective(data: TuningData, **changes: Any) -> Objective:
    return Objective(
        data, "snuh", **({"bits": 16, "seed": 3, "select": "label-free", "fixed": QUICK} | changes)
    )


def test_a_trial_is_measured_by_what_short_walks_reach(data: TuningData) -> None:
    assert data.val is not None
    parameters = {"tau": 0.5, "neighbors": 9}
    measured = objective(data)(parameters)
    score = RandomWalkScore(data.train.X, data.val.X, seed=3)
    fitted = make("snuh", bits=16, seed=3, parameters=QUICK | parameters)
    fitted.fit(data.train.X, X_val=data.val.X, score=score)
    assert measured == fitted.training_["score"] == score(fitted.encoder_).value


def test_without_val_a_trial_learns_from_what_a_fit_would_learn_from(data: TuningData) -> None:
    parameters = {"neighbors": 5, "epochs": 1}  # one epoch, so that there is none to choose
    drawn = objective(replace(data, val=None))
    measured = drawn(parameters)
    fitted = make("snuh", bits=16, seed=3, parameters=QUICK | parameters).fit(data.train.X)
    assert measured == drawn.score(fitted.encoder_).value


def test_the_defaults_of_a_study_are_those_that_a_fit_would_take(data: TuningData) -> None:
    drawn = objective(replace(data, val=None), fixed={"epochs": 1})
    space = build_search_space("snuh", bits=16, seed=3, fixed={"epochs": 1}, docs=drawn.documents)
    fitted = make("snuh", bits=16, seed=3, parameters={"epochs": 1}).fit(data.train.X)
    assert drawn.documents == fitted.training_["documents"] < data.train.X.shape[0]
    assert space.defaults.items() >= {"neighbors": 5, "batch_size": 32}.items()


@pytest.mark.filterwarnings("ignore:the codes are dead")  # what differs may share a code
@pytest.mark.parametrize("docs", [2, 3, 4, 7])
def test_a_few_documents_can_be_scored(docs: int) -> None:
    X = sparse.random_array((docs, 12), density=0.8, format="csr", random_state=np.random.default_rng(0))
    encoder = make("lsh", bits=8, seed=0, parameters={}).fit(X).encoder_
    assert 0 <= RandomWalkScore(X, X)(encoder).value <= 1


def test_labels_judge_every_epoch_and_the_best_is_kept(data: TuningData) -> None:
    assert data.val is not None
    parameters, told = {"neighbors": 5, "epochs": 4}, []

    def listen(progress: Progress) -> None:
        if progress.epoch is not None:
            told.append(progress.epoch.score)

    measured = objective(data, select="labels")(parameters, on_progress=listen)
    by_labels = LabelScore(data.train, data.val)
    fitted = make("snuh", bits=16, seed=3, parameters=QUICK | parameters)
    fitted.fit(data.train.X, X_val=data.val.X, score=by_labels)
    expected = precision_at_k(
        fitted.transform(data.val.X), data.val.labels, fitted.transform(data.train.X), data.train.labels
    )
    assert measured == pytest.approx(expected)
    assert measured == max(told) and len(told) == 4  # by these a trial that falls behind is given up


def test_a_fit_that_ends_with_dead_codes_fails(data: TuningData) -> None:
    two_words = np.zeros((60, 2), dtype=np.float32)
    two_words[:, 0], two_words[::2, 1] = 1, 1  # two distinct documents: three distinct codes are impossible
    dead = replace(data, train=replace(data.train, X=two_words), val=None)
    with pytest.raises(SnuhError, match="the codes are dead"):
        objective(dead)({"neighbors": 5})


def test_labels_need_val_and_labels(data: TuningData) -> None:
    with pytest.raises(InputError, match=r"needs documents of the split val, topics\.jsonl has none"):
        objective(replace(data, val=None), select="labels")
    bare = replace(data.train, labels=[() for _ in data.train.labels])
    with pytest.raises(InputError, match=r"needs labels, topics\.jsonl has none in the split train"):
        objective(replace(data, train=bare), select="labels")
