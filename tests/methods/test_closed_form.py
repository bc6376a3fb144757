"""The methods without gradient steps: their formulas, and what they make of planted topics."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from snuh.codes import hamming, unpack
from snuh.errors import InputError
from snuh.methods.itq import ITQ
from snuh.methods.lsh import LSH
from snuh.methods.principal import fit_principal, itq_rotation
from snuh.methods.sph import SpH, slowest_waves
from snuh.methods.sth import STH
from snuh.metrics import code_health, precision_at_k
from snuh.progress import Progress
from tests.contract.test_methods import planted_topics

EVERY = [LSH, ITQ, SpH, STH]


# Chance is 0.2. Hyperplanes learn nothing, so they need more bits to come as far.
@pytest.mark.parametrize(
    ("method", "bits", "least"),
    [(LSH, 16, 0.35), (LSH, 256, 0.8), (ITQ, 16, 0.9), (SpH, 16, 0.8), (STH, 16, 0.75)],
)
def test_planted_topics_are_found_far_better_than_by_chance(method: Any, bits: int, least: float) -> None:
    X, labels = planted_topics(1)
    X_test, test_labels = planted_topics(2, docs=100)
    model = method(n_bits=bits).fit(X)
    precision = precision_at_k(model.transform(X_test), test_labels, model.transform(X), labels, k=20)
    assert precision > least
    assert model.training_["stopped"] == "solved"
    assert model.training_["alive"]


@pytest.mark.parametrize("method", EVERY)
def test_fewer_terms_than_bits_still_make_codes_that_tell_documents_apart(method: Any) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = method(n_bits=32).fit(X)
    health = code_health(model.transform(X))
    assert health.alive
    # Unit rows of three columns lie on a sphere: two hyperplanes halve it into four, 32 into many.
    assert health.distinct_codes > 20


@pytest.mark.parametrize("method", EVERY)
def test_fewer_documents_than_bits_still_make_codes_that_tell_them_apart(method: Any) -> None:
    X, _ = planted_topics(1, docs=12)
    parameters = {"neighbors": 4} if method is STH else {}
    codes = method(n_bits=64, **parameters).fit(X).transform(X)
    assert len(np.unique(codes, axis=0)) == 12


def test_hyperplanes_differ_as_often_as_the_angle_says() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6))
    codes = LSH(n_bits=512).fit(X).transform(X)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    angle = np.arccos(np.clip(unit @ unit.T, -1, 1))
    share = hamming(codes, codes) / 512
    # A share of 512 draws has a deviation of at most 0.022; this is the mean error of 435 pairs.
    assert np.abs(share - angle / np.pi).mean() < 0.022


def test_principal_directions_are_those_of_centred_rows() -> None:
    rng = np.random.default_rng(0)
    scales = 2.0 ** -np.arange(12)
    X = rng.normal(size=(200, 12)) * scales + rng.uniform(0, 3, 12)
    principal = fit_principal(sparse.csr_matrix(X), dims=12, seed=0)
    _, lengths, exact = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    values = principal.values(sparse.csr_matrix(X))
    np.testing.assert_allclose(np.linalg.norm(values, axis=0), lengths, rtol=1e-5)
    np.testing.assert_allclose(np.abs((principal.directions * exact.T).sum(axis=0)), 1.0, atol=1e-5)
    np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=1e-9)


def quantisation_error(values: np.ndarray, rotation: np.ndarray) -> float:
    turned = values @ rotation
    return float(((np.where(turned > 0, 1.0, -1.0) - turned) ** 2).sum())


@pytest.mark.parametrize("zeros", [0, 3])
def test_the_quantisation_error_never_rises_and_the_rotation_stays_one(zeros: int) -> None:
    values = np.random.default_rng(1).normal(size=(300, 8)) * np.linspace(2, 0.2, 8)
    values[:, 8 - zeros :] = 0.0
    rotations = [
        itq_rotation(values, iterations=number, rng=np.random.default_rng(2)) for number in range(30)
    ]
    for rotation in rotations:
        np.testing.assert_allclose(rotation.T @ rotation, np.eye(8), atol=1e-10)
    errors = [quantisation_error(values, rotation) for rotation in rotations]
    assert (np.diff(errors) <= 1e-9).all()
    assert errors[-1] < 0.98 * errors[0]


def test_itq_codes_are_the_signs_of_the_turned_projections() -> None:
    X, _ = planted_topics(1, docs=100)  # too few to hold any out
    principal = fit_principal(X, dims=16, seed=0)
    values = principal.values(X)
    rotation = itq_rotation(values, iterations=50, rng=np.random.default_rng([0, 1]))
    turned = values @ rotation
    decided = np.abs(turned) > 1e-5  # the encoder is float32
    bits = unpack(ITQ(n_bits=16).fit(X).transform(X))
    np.testing.assert_array_equal(bits[decided], (turned > 0)[decided])


def test_waves_are_the_slowest_of_a_box() -> None:
    # A box of 8 by 3: rates pi k / side are 1/8, 2/8, 1/3, 3/8, 4/8, 5/8, 2/3, 6/8 of pi.
    values = np.random.default_rng(0).uniform(size=(500, 2)) * [8, 3] - [5, 1]
    values[:2] = [[-5, -1], [3, 2]]
    waves = slowest_waves(values, bits=8, tail=0.0)
    assert waves.direction.tolist() == [0, 0, 1, 0, 0, 0, 1, 0]
    np.testing.assert_allclose(
        waves.rate / np.pi, [1 / 8, 2 / 8, 1 / 3, 3 / 8, 4 / 8, 5 / 8, 2 / 3, 6 / 8], rtol=1e-9
    )
    np.testing.assert_array_equal(waves.start, np.where(waves.direction == 0, -5, -1))


def test_a_tail_leaves_odd_documents_out_of_the_box() -> None:
    values = np.arange(101.0)[:, None]
    values[-1] = 1e6
    waves = slowest_waves(values, bits=8, tail=0.02)
    assert waves.start[0] == pytest.approx(2.0)
    assert waves.rate[0] == pytest.approx(np.pi / 96)


def test_a_direction_without_width_has_no_waves() -> None:
    values = np.random.default_rng(0).uniform(size=(50, 2)) * [1, 0]
    assert slowest_waves(values, bits=16, tail=0.0).direction.tolist() == [0] * 16


@pytest.mark.parametrize("tail", [0.0, 0.1])
def test_spectral_hashing_codes_are_the_signs_of_its_eigenfunctions(tail: float) -> None:
    X, _ = planted_topics(1, docs=100)  # too few to hold any out
    values = fit_principal(X, dims=16, seed=0).values(X)
    a, b = np.quantile(values, [tail, 1 - tail], axis=0)
    pairs = sorted((k / side, direction, k) for direction, side in enumerate(b - a) for k in range(1, 17))
    phi = np.stack([np.cos(k * np.pi * (values[:, d] - a[d]) / (b - a)[d]) for _, d, k in pairs[:16]], axis=1)
    model = SpH(n_bits=16, tail=tail).fit(X)
    np.testing.assert_allclose(model.encoder_.values(X), phi, atol=1e-4)
    decided = np.abs(phi) > 1e-4
    np.testing.assert_array_equal(unpack(model.transform(X))[decided], (phi > 0)[decided])


def test_self_taught_hashing_tells_of_its_graph() -> None:
    X, _ = planted_topics(1)
    heard: list[Progress] = []
    STH(n_bits=16).fit(X, on_progress=heard.append)
    assert [report.done for report in heard if report.stage == "graph"][-1] == 1.0


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (ITQ(iterations=1.5), "iterations must be an integer, got 1.5"),  # type: ignore[arg-type]
        (SpH(tail=0.5), "tail must be below 0.5, got 0.5"),
        (STH(penalty=0), "penalty must be above 0, got 0"),
        (STH(neighbors=0), "neighbors must be above 0, got 0"),
        (STH(neighbors=50), r"expected more documents than neighbors \(50\), got n_samples = 50"),
    ],
)
def test_bad_parameters_are_refused(estimator: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        estimator.fit(planted_topics(1, docs=50)[0])


def test_none_of_them_needs_torch() -> None:
    names = ", ".join(f"snuh.methods.{name}" for name in ("lsh", "itq", "sph", "sth"))
    program = f"import sys, {names}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
