"""The same checks over every method of the registry: adding a row to the table runs them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from snuh.errors import InputError
from snuh.methods import METHODS, info, make, method_class
from snuh.metrics import code_health, precision_at_k
from snuh.model import Model, load
from tests.methods.posterior import posterior

TOPICS, DOCS, TERMS = 5, 400, 300
QUICK = {
    "epochs": 12,
    "neighbors": 8,
    "trees": 4,
    "batch_size": 32,
    "learning_rate": 0.01,
    "hidden": 32,
    "dims": 16,
}
TINY = {"n_bits": 8, "neighbors": 3, "trees": 2, "epochs": 2, "batch_size": 16, "hidden": 4, "dims": 4}
WITHOUT_LEARNING = ("lsh",)  # random directions: nothing is learnt from the documents


def planted_topics(seed: int, docs: int = DOCS) -> tuple[sparse.csr_matrix, list[tuple[str, ...]]]:
    """Documents of 30 words, most of them from the topic's own tenth of the vocabulary; unit rows."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(0, TOPICS, docs)
    dense = np.zeros((docs, TERMS), dtype=np.float32)
    for row, topic in enumerate(topics):
        own = rng.integers(topic * 30, topic * 30 + 30, 20)
        other = rng.integers(0, TERMS, 10)
        np.add.at(dense[row], np.concatenate([own, other]), 1.0)
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    return sparse.csr_matrix(dense), [(str(topic),) for topic in topics]


def its_own(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are parameters of the method."""
    known = {field.name for field in fields(method_class(name))}
    return {key: value for key, value in settings.items() if key in known}


def quick(name: str, bits: int = 16, seed: int = 0, **changes: Any) -> Any:
    return make(name, bits=bits, seed=seed, parameters=its_own(name, {**QUICK, **changes}))


def fitted(name: str, bits: int = 16, seed: int = 0, **changes: Any) -> Any:
    X, _ = planted_topics(1)
    return quick(name, bits, seed, **changes).fit(X)


every_method = pytest.mark.parametrize("name", METHODS)
every_gradient_method = pytest.mark.parametrize("name", [name for name in METHODS if info(name).needs_torch])


@every_method
def test_learns_planted_topics_far_better_than_random_codes(name: str) -> None:
    X, labels = planted_topics(1)
    X_test, test_labels = planted_topics(2, docs=100)
    model = fitted(name)
    precision = precision_at_k(model.transform(X_test), test_labels, model.transform(X), labels, k=20)
    assert precision > (0.4 if name in WITHOUT_LEARNING else 0.8)  # chance is 0.2
    assert code_health(model.transform(X)).alive


@every_gradient_method
@pytest.mark.parametrize("bits", [16, 128])
def test_codes_are_alive_in_every_epoch(name: str, bits: int) -> None:
    history = fitted(name, bits=bits, epochs=4).history_
    assert [report.alive for report in history] == [True] * 4


@every_method
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(name: str) -> None:
    X, _ = planted_topics(1)
    codes = [fitted(name, seed=seed, epochs=3).transform(X) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(codes[0], codes[1])
    assert (codes[0] != codes[2]).any()


@every_method
def test_saved_and_loaded_models_give_the_same_bits(name: str, tmp_path: Path) -> None:
    X, _ = planted_topics(1)
    estimator = fitted(name, epochs=3)
    Model(estimator.encoder_, method=name).save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").encode(X), estimator.transform(X))


@every_gradient_method
def test_the_encoder_equals_the_training_model(name: str) -> None:
    import torch

    from snuh.methods.gradient import Start

    X, _ = planted_topics(1)
    estimator = quick(name)
    data = estimator.training_data(X, X[:40])
    start = Start(data, np.random.default_rng(0), torch.Generator().manual_seed(0), None)
    objective = estimator.objective(start)
    encoder = objective.encoder()
    assert (encoder.encode(X) == encoder.encode(X.toarray())).all()
    with torch.no_grad():
        if hasattr(objective, "network"):
            objective.network.dropout = 0.0
            values = next(iter(objective.network(X).values()))
            values = torch.sigmoid(values) if objective.activation == "sigmoid" else values
        else:
            values = posterior(objective, X).mu
    np.testing.assert_allclose(encoder.values(X), values.numpy(), atol=1e-5)


@every_method
def test_batch_size_of_encoding_does_not_matter(name: str) -> None:
    X, _ = planted_topics(1)
    estimator = fitted(name, epochs=3)
    one_by_one = np.concatenate([estimator.transform(X[row]) for row in range(50)])
    np.testing.assert_array_equal(one_by_one, estimator.transform(X)[:50])


@every_method
def test_sparse_and_dense_rows_give_the_same_bits(name: str) -> None:
    X, _ = planted_topics(1)
    estimator = fitted(name, epochs=3)
    np.testing.assert_array_equal(estimator.transform(X.toarray()), estimator.transform(X))


@every_method
def test_the_length_of_a_row_does_not_change_its_code(name: str) -> None:
    X, _ = planted_topics(1)
    scaled = sparse.csr_matrix(sparse.diags(np.random.default_rng(0).uniform(0.5, 20, DOCS)) @ X)
    for rows in (X, scaled):
        estimator = quick(name, bits=16, epochs=2).fit(rows)
        np.testing.assert_array_equal(estimator.transform(scaled), estimator.transform(X))


@every_method
def test_the_callers_matrix_is_never_changed(name: str) -> None:
    X, _ = planted_topics(1)
    X.data[:50] = 0.0  # stored zeros, which fit does not want
    before = X.copy()
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    quick(name, bits=16, epochs=1).fit(X).transform(X)
    np.testing.assert_array_equal(X.data, before.data)
    np.testing.assert_array_equal(X.indptr, before.indptr)


@every_method
def test_many_copies_are_not_taken_for_dead_codes(name: str) -> None:
    X, _ = planted_topics(1, docs=60)
    X = sparse.vstack([X, *[X[0]] * 140]).tocsr()
    estimator = quick(name, bits=16, epochs=3).fit(X)
    assert estimator.training_["alive"]
    assert len(np.unique(estimator.transform(X[60:]), axis=0)) == 1


@every_method
def test_clone_and_pipeline_work(name: str) -> None:
    X, _ = planted_topics(1)
    estimator = quick(name, bits=16, epochs=2)
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    codes = make_pipeline(Normalizer(), copy).fit_transform(X)
    assert codes.shape == (DOCS, 2)
    assert codes.dtype == np.uint8


INVALID = [
    ({"n_bits": 20}, "bits must be a multiple of 8 from 8 to 512, got 20"),
    ({"epochs": 0}, "epochs must be above 0, got 0"),
    ({"learning_rate": "fast"}, "learning_rate must be a number, got 'fast'"),
    ({"batch_size": 1.5}, "batch_size must be an integer, got 1.5"),
    ({"neighbors": DOCS}, "expected more documents than neighbors"),
    ({"seed": -1}, "seed must be 0 or more, got -1"),
    ({"seed": 2**32}, "seed must be below"),
    ({"decay": "False"}, "decay must be true or false, got 'False'"),
    ({"strength": 0.99999999}, "strength must be below 1"),
]


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [(name, *case) for name in METHODS for case in INVALID if its_own(name, case[0])],
)
def test_bad_parameters_are_refused(name: str, changes: dict[str, Any], message: str) -> None:
    X, _ = planted_topics(1)
    with pytest.raises(InputError, match=message):
        method_class(name)(**changes).fit(X)


@every_method
def test_has_a_docs_page_with_its_paper(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "methods" / f"{name}.md").read_text()
    about = info(name)
    assert str(about.year) in page
    source = import_module(about.home.split(":")[0]).__doc__ or ""
    first_author = about.paper.split()[0].rstrip(",")
    assert first_author == "this" or (first_author in page and first_author in source)
    assert f"`{name}`" in page or f"--method {name}" in page or page.startswith(f"# {name}")


@every_method
def test_empty_and_equal_corpora_are_refused(name: str) -> None:
    estimator = quick(name, bits=8)
    with pytest.raises(InputError, match="all 30 documents are empty"):
        estimator.fit(sparse.csr_matrix((30, 5), dtype=np.float32))
    with pytest.raises(InputError, match="all 30 documents are equal"):
        estimator.fit(np.ones((30, 5)))
    with pytest.raises(InputError, match="all 30 documents are equal"):
        estimator.fit(np.concatenate([np.ones((30, 5)), np.zeros((1, 5))]))


@every_method
def test_empty_documents_among_others_get_one_code(name: str) -> None:
    X, _ = planted_topics(1)
    X = sparse.vstack([X, sparse.csr_matrix((5, TERMS), dtype=np.float32)]).tocsr()
    codes = quick(name, bits=16, epochs=2).fit(X).transform(X)
    assert len(np.unique(codes[-5:], axis=0)) == 1


@pytest.mark.slow
@parametrize_with_checks([method_class(name)(**its_own(name, TINY)) for name in METHODS])
@pytest.mark.filterwarnings("ignore::snuh.methods.estimator.DeadCodesWarning")
def test_passes_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_an_unknown_method_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match=r'unknown method "snuh-pls" \(did you mean "snuh-plus"\?\)'):
        info("snuh-pls")


def test_an_unknown_parameter_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match=r'has no "neighbours" \(did you mean "neighbors"\?\)'):
        make("snuh", bits=16, seed=0, parameters={"neighbours": 3})
