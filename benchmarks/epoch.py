"""One training epoch of SNUH against the matrix products it cannot avoid, and against plain dense torch.

    SNUH_DATA=... python -m benchmarks.epoch [--corpus ng20] [--bits 64] [--rounds 11]

The contenders take turns in one process; the result is JSON with the ratios of their medians:
- `over_products`: an epoch over its three decoder products a step (one forward, two backward);
- `dense_over_fast`: an epoch of the readable dense twin in tests/reference over ours (some steps, scaled);
- `with_torch_adam_over_fast`: an epoch with norm, clipping and Adam as fast as torch has them, over ours.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tests.reference.dense_snuh import DenseSNUH

from benchmarks.alternating import median_seconds
from benchmarks.machine import facts
from snuh.corpus import MatrixSource, open_source
from snuh.graph import nearest_neighbors
from snuh.graph.forests import sample_edges
from snuh.training.adam import Adam
from snuh.training.gradient import Objective
from snuh.training.tree_objective import Edges, TreeObjective, TreeSettings

BATCH, CLIP, RATE, DENSE_STEPS = 128, 10.0, 1e-3, 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default="ng20")
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=11)
    chosen = parser.parse_args()
    source = open_source(f"{chosen.corpus}.tfidf")
    assert isinstance(source, MatrixSource)
    X = source.splits["train"].X
    rng = np.random.default_rng(0)
    merged = sample_edges(nearest_neighbors(X, k=20).adjacency(), trees=20, alpha=0.1, rng=rng)
    edges = Edges(merged.pairs, merged.weight, np.full(len(merged.weight), 0.99, dtype=np.float32))
    settings = TreeSettings(
        bits=chosen.bits,
        tau=0.1,
        beta=0.05,
        correlation="encoder",
        neighbor_words=0.0,
        word_dropout=0.0,
        refresh=0,
        warmup=0.0,
        init_range=0.05,
        start="random",
        threshold="half",
        batch=BATCH,
    )
    fast = TreeObjective(X, edges, settings, generator=torch.Generator().manual_seed(0))
    dense = DenseSNUH(X.shape[1], chosen.bits, tau=0.1, beta=0.05, correlation="encoder")
    contenders: dict[str, Callable[[], None]] = {
        "products": lambda: products(fast),
        "fast": one_epoch(fast, rng, own_adam(fast.parameters)),
        "with_torch_adam": one_epoch(fast, rng, torch_adam(fast.parameters)),
        "dense": dense_steps(dense, fast, rng),
    }
    middle = median_seconds(contenders, rounds=chosen.rounds)
    middle["dense"] *= fast.steps / DENSE_STEPS
    result = {
        "corpus": chosen.corpus,
        "bits": chosen.bits,
        "steps": fast.steps,
        "seconds": middle,
        "over_products": middle["fast"] / middle["products"],
        "dense_over_fast": middle["dense"] / middle["fast"],
        "with_torch_adam_over_fast": middle["with_torch_adam"] / middle["fast"],
        "machine": facts(),
    }
    print(json.dumps(result, indent=2))


def products(fast: TreeObjective) -> None:
    """The decoder's products of an epoch, on arrays of the same sizes and layout."""
    z = torch.randn(BATCH, fast.settings.bits)
    embedding = fast.words.embedding.detach()
    by_logit = torch.randn(BATCH, len(embedding))
    for _ in range(fast.steps):
        z @ embedding.t()
        by_logit @ embedding
        by_logit.t() @ z


def one_epoch(
    objective: Objective[Any], rng: np.random.Generator, step: Callable[[], object]
) -> Callable[[], None]:
    """The steps of an epoch, as the training loop takes them."""

    def run() -> None:
        for batch in objective.batches(rng, epoch=0):
            loss = sum(objective.loss(batch, epoch=1.0).values(), start=torch.zeros(()))
            for parameter in objective.parameters:
                parameter.grad = None
            loss.backward()
            step()

    return run


def own_adam(parameters: list[torch.Tensor]) -> Callable[[], object]:
    adam = Adam(parameters, clip=CLIP)

    def step() -> None:
        assert adam.step(RATE)

    return step


def torch_adam(parameters: list[torch.Tensor]) -> Callable[[], object]:
    optimizer = torch.optim.Adam(parameters, lr=RATE, fused=True)

    def step() -> None:
        # Dot products take half the time of torch's own norms.
        flat = [torch.ravel(parameter.grad) for parameter in parameters]
        norm = math.sqrt(sum(torch.dot(gradient, gradient).item() for gradient in flat))
        if norm > CLIP:
            torch.nn.utils.clip_grads_with_norm_(parameters, CLIP, torch.tensor(norm))
        optimizer.step()

    return step


def dense_steps(dense: DenseSNUH, fast: TreeObjective, rng: np.random.Generator) -> Callable[[], None]:
    optimizer = torch.optim.Adam(dense.parameters(), lr=RATE)

    def run() -> None:
        for step, batch in enumerate(fast.batches(rng, epoch=0)):
            if step == DENSE_STEPS:
                break
            x, x_j = (torch.from_numpy(fast.X[part].toarray()) for part in (batch.documents, batch.neighbors))
            loss = dense.loss(
                x,
                x_j,
                noise=torch.randn(len(x), fast.settings.bits),
                weight=batch.weight,
                t=batch.prior[:, None],
            )
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(dense.parameters(), CLIP)
            optimizer.step()

    return run


if __name__ == "__main__":
    main()
