from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from snuh.errors import InputError, SnuhError
from snuh.experiments.scores import LabelScore, RandomWalkScore
from snuh.methods import METHODS, make
from snuh.metrics import precision_at_k
from snuh.progress import Progress
from snuh.tuning.objective import SEARCH_SPACES, Objective, TuningData, build_search_space, check_tunable

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


def test_every_method_has_a_row() -> None:
    assert set(SEARCH_SPACES) == set(METHODS)


@pytest.mark.parametrize("method", [method for method, row in SEARCH_SPACES.items() if row])
@pytest.mark.parametrize("bits", [16, 24])
def test_every_value_is_one_that_the_method_takes_and_the_default_is_among_them(
    method: str, bits: int
) -> None:
    space = build_search_space(method, bits=bits, seed=0, fixed={}, docs=5000)
    for name, values in space.values.items():
        assert list(values) == sorted(set(values))
        assert space.defaults[name] in values
        for value in values:
            make(method, bits=bits, seed=0, parameters={name: value}).check_parameters()


def test_snuh_has_the_values_of_the_paper() -> None:
    space = build_search_space("snuh", bits=16, seed=0, fixed={}, docs=5000)
    assert space.values["learning_rate"] == (0.0005, 0.001, 0.003)
    assert space.values["batch_size"] == (32, 64, 128)
    assert space.values["tau"] == space.values["alpha"] == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert space.values["beta"] == (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1)
    assert space.values["neighbors"] == space.values["trees"] == tuple(range(1, 21))


def test_the_defaults_are_those_of_a_fit_of_so_many_documents() -> None:
    space = build_search_space("snuh", bits=64, seed=0, fixed={}, docs=300)
    assert (space.defaults["neighbors"], space.defaults["batch_size"]) == (5, 32)


def test_a_parameter_that_is_fixed_is_not_tried() -> None:
    assert "tau" not in build_search_space("snuh", bits=16, seed=0, fixed={"tau": 0.3}, docs=5000).values


@pytest.mark.parametrize(
    ("method", "fixed", "why"),
    [("lsh", {}, "no parameters to tune"), ("itq", {"iterations": 3}, "--set fixes all")],
)
def test_a_method_without_anything_to_try_is_refused(method: str, fixed: dict[str, int], why: str) -> None:
    with pytest.raises(InputError, match=f"{method} cannot be tuned: .*{why}"):
        check_tunable(method, bits=16, seed=0, fixed=fixed)


def test_indices_and_values_are_a_round_trip() -> None:
    space = build_search_space("snuh-plus", bits=24, seed=0, fixed={}, docs=5000)
    assert space.from_indices(space.to_indices(space.defaults)) == space.defaults
    assert space.size == 6 * 3 * 10 * 10 * len(space.values["beta"]) * 20 * 20
