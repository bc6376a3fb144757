"""Every loss of the network methods against the same equation in plain dense PyTorch, and by differences.

The equations are in tests/reference/network_equations.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

from snuh.methods import make
from snuh.training.gradient import Start
from snuh.training.layers import word_sets
from tests.reference.network_equations import (
    BATCH,
    BATCH_DOCUMENTS,
    BETA,
    BITS,
    DOCS,
    EPOCH,
    EPOCHS,
    EQUATIONS,
    TERMS,
    Dense,
)

SETTINGS: dict[str, dict[str, Any]] = {
    "vdsh": {},
    "nbrreg": {"neighbors": 4},
    "nash": {},
    "gmsh": {"components": 3},
    "bmsh": {"components": 3},
    "ammi": {"entropy": 1.5, "order": 2},
    "corrsh": {"rank": 2, "samples": 4, "noise": 0.8, "noise_end": 0.4},
    "rbsh": {"neighbors": 6, "dims": 5, "rank": 2.5, "noise": 0.8, "noise_end": 0.4},
    "pairrec": {"neighbors": 6, "noise": 0.8},
    "wish": {"dims": 5, "alpha": 0.3},
}
every_method = pytest.mark.parametrize("name", SETTINGS)


def unit_rows() -> sparse.csr_matrix:
    rng = np.random.default_rng(0)
    dense = rng.random((DOCS, TERMS)) * (rng.random((DOCS, TERMS)) < 0.2)
    dense[np.arange(DOCS), rng.integers(0, TERMS, DOCS)] = 1.0  # no row is empty
    return sparse.csr_matrix((dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32))


def make_objective(name: str, *, depth: int) -> Any:  # any of the ten
    shared = {"hidden": 6, "depth": depth, "dropout": 0.0, "beta": BETA, "warmup": 6.0}
    loop = {"batch_size": BATCH, "epochs": EPOCHS}
    estimator = make(name, bits=BITS, seed=0, parameters={**shared, **loop, **SETTINGS[name]})
    X = unit_rows()
    data = estimator.training_data(X, X[:10])
    start = Start(data, np.random.default_rng(0), torch.Generator().manual_seed(0), None)
    objective = estimator.objective(start)
    move_from_start(objective)
    return objective


def move_from_start(objective: Any) -> None:
    """Avoid special points: zeros, ones, equal parts and hardly any weight on the words."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in objective.parameters:
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)


def evaluate(objective: Any, loss: Callable[[], Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """Call it with the randomness always in the same state."""
    objective.generator.manual_seed(11)
    objective.rng = np.random.default_rng(12)
    return loss()


def fast_parts(objective: Any) -> Mapping[str, Tensor]:
    return evaluate(objective, lambda: objective.loss(BATCH_DOCUMENTS, epoch=EPOCH))


@every_method
@pytest.mark.parametrize("depth", [0, 1])
def test_the_loss_and_its_gradients_are_those_of_the_equation(name: str, depth: int) -> None:
    objective = make_objective(name, depth=depth)
    dense = Dense(objective)
    results = []
    for loss in (
        lambda: objective.loss(BATCH_DOCUMENTS, epoch=EPOCH),
        lambda: EQUATIONS[name](dense, dense.X[BATCH_DOCUMENTS]),
    ):
        parts = evaluate(objective, loss)
        sum(parts.values()).backward()
        results.append((parts, [parameter.grad for parameter in objective.parameters]))
        for parameter in objective.parameters:
            parameter.grad = None
    (parts, gradients), (expected_parts, expected_gradients) = results
    assert list(parts) == list(expected_parts)
    for part, value in parts.items():
        torch.testing.assert_close(value, expected_parts[part], rtol=1e-4, atol=1e-4)
    for gradient, expected in zip(gradients, expected_gradients, strict=True):
        assert gradient.abs().max() > 0  # nothing is left untrained
        torch.testing.assert_close(gradient, expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))


# By finite differences: here the encoder is linear, for a ReLU has kinks that a step may cross.

STEP = 0.01  # rounding of a loss of some 100 is 1e-5, and 1e-3 in a difference over this step
TOLERANCE = {"rel": 0.02, "abs": 4e-3}
PROBES = 6
SMOOTH = ("vdsh", "nbrreg", "gmsh", "ammi")  # the others draw bits, which jump as the encoder moves


def differentiable(name: str, objective: Any) -> Iterator[tuple[Tensor, slice]]:
    """The parameters that the loss is smooth in, and which of their columns."""
    encoder = (*objective.network.parameters, getattr(objective, "importance", None))
    for parameter in objective.parameters:
        if name in SMOOTH or not any(parameter is part for part in encoder):
            yield parameter, slice(None)
        elif name in ("nash", "bmsh") and parameter.shape[-1] > BITS:
            yield parameter, slice(BITS, None)  # of the heads behind the bits' own


@every_method
def test_gradients_agree_with_finite_differences(name: str) -> None:
    objective = make_objective(name, depth=0)
    sum(fast_parts(objective).values()).backward()
    rng = np.random.default_rng(0)
    checked = 0
    for parameter, columns in differentiable(name, objective):
        gradient, values = parameter.grad[..., columns], parameter.data[..., columns]
        largest = np.argsort(-gradient.abs().numpy().ravel())[:PROBES]
        for flat in (*largest, *rng.integers(0, gradient.numel(), PROBES)):
            index = np.unravel_index(flat, gradient.shape)
            before = values[index].item()
            ends = []
            for step in (STEP, -STEP):
                values[index] = before + step
                ends.append(sum(part.item() for part in fast_parts(objective).values()))
            values[index] = before
            difference = (ends[0] - ends[1]) / (2 * STEP)
            assert gradient[index].item() == pytest.approx(difference, **TOLERANCE)
            checked += 1
    assert checked >= 2 * PROBES


def leaves(loss: Tensor) -> set[int]:
    """The ids of all tensors that the loss is a function of and that want a gradient."""
    found, seen, waiting = set(), set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        waiting += [function for function, _ in node.next_functions]
    return found


@every_method
def test_all_that_the_loss_can_learn_is_trained_and_only_once(name: str) -> None:
    objective = make_objective(name, depth=1)
    trained = [id(parameter) for parameter in objective.parameters]
    assert len(set(trained)) == len(trained)
    assert set(trained) == leaves(sum(fast_parts(objective).values()))


@every_method
def test_an_epoch_has_every_document_once(name: str) -> None:
    objective = make_objective(name, depth=0)
    batches = list(objective.batches(np.random.default_rng(0), epoch=0))
    assert len(batches) == objective.steps
    assert sorted(np.concatenate(batches)) == list(range(DOCS))


@every_method
def test_the_parts_stay_finite_where_all_bits_are_certain(name: str) -> None:
    objective = make_objective(name, depth=0)
    with torch.no_grad():
        objective.network.weights[0][:, :BITS] *= 1e3
    parts = fast_parts(objective)
    sum(parts.values()).backward()
    assert all(torch.isfinite(value) for value in parts.values())
    assert all(torch.isfinite(parameter.grad).all() for parameter in objective.parameters)


EXPLAINING = [name for name in SETTINGS if name != "ammi"]


@pytest.mark.parametrize("name", EXPLAINING)
def test_the_decoder_says_how_far_a_bit_raises_the_score_of_each_word(name: str) -> None:
    """Two codes that differ in a bit: their logits differ by that bit's column, up to what is alike."""
    objective = make_objective(name, depth=0)
    by_bit = objective.decoder()
    assert by_bit.shape == (TERMS, BITS)
    to_latent = objective.topics if name == "wish" else torch.eye(BITS)
    embedding = None
    if name in ("rbsh", "pairrec"):
        by_word = (
            objective.words.embedding @ objective.map.t() if name == "rbsh" else objective.words.embedding
        )
        embedding = by_word * objective.importance[:, None]
    words = sparse.csr_matrix(np.eye(TERMS, dtype=np.float32))  # documents of one word each

    def log_shares(code: Tensor) -> Tensor:
        shares = []
        for first in range(0, TERMS, BATCH):
            some = word_sets(words[first : first + BATCH])
            z = (code @ to_latent).expand(len(some.sizes), -1)
            shares.append(objective.words.log_likelihood(z, some, embedding=embedding).detach())
        return torch.cat(shares)

    without = log_shares(torch.zeros(BITS))
    for bit in range(BITS):
        raised = log_shares(torch.eye(BITS)[bit]) - without
        difference = raised - torch.from_numpy(by_bit[:, bit])
        torch.testing.assert_close(difference, difference.mean().expand(TERMS), rtol=1e-4, atol=1e-4)
