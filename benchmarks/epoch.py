"""One training epoch of SNUH against the matrix products it cannot avoid, and against plain dense torch.

    SNUH_DATA=... python -m benchmarks.epoch [--corpus ng20] [--bits 64] [--rounds 11]

The contenders take turns in one process; the result is JSON with the ratios of their medians:
- `over_products`: an epoch over its three decoder products a step (one forward, two backward);
- `dense_over_sparse`: an epoch of the dense reference in tests/reference over ours (some steps, scaled).

`benchmarks.epoch_against` compares the epochs of two checkouts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tests.reference.dense_snuh import DenseSNUH

from benchmarks.alternating import median_seconds
from benchmarks.machine import facts
from snuh.corpus import MatrixSource, open_source
from snuh.graph import nearest_neighbors
from snuh.methods.snuh import SNUH
from snuh.methods.training import Objective, clip_gradients
from snuh.methods.tree_objective import Edges, TreeObjective
from snuh.trees import sample_edges

BATCH, BETA, CLIP, RATE, DENSE_STEPS = 128, 0.05, 10.0, 1e-3, 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default="ng20")
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    source = open_source(f"{options.corpus}.tfidf")
    assert isinstance(source, MatrixSource)
    X = source.splits["train"].X
    rng = np.random.default_rng(0)
    merged = sample_edges(nearest_neighbors(X, k=20).adjacency(), trees=20, alpha=0.1, rng=rng)
    edges = Edges(merged.pairs, merged.weight, np.full(len(merged.weight), 0.99, dtype=np.float32))
    method = SNUH(n_bits=options.bits, beta=BETA, batch_size=BATCH, warmup=0.0)
    fast = TreeObjective(method, X, edges, generator=torch.Generator().manual_seed(0))
    dense = DenseSNUH(X.shape[1], options.bits, tau=method.tau, beta=BETA, correlation="encoder")
    contenders: dict[str, Callable[[], None]] = {
        "products": lambda: products(fast),
        "sparse": one_epoch(fast, rng),
        "dense": dense_steps(dense, fast, rng),
    }
    median = median_seconds(contenders, rounds=options.rounds)
    median["dense"] *= fast.steps / DENSE_STEPS
    result = {
        "corpus": options.corpus,
        "bits": options.bits,
        "steps": fast.steps,
        "seconds": median,
        "over_products": median["sparse"] / median["products"],
        "dense_over_sparse": median["dense"] / median["sparse"],
        "machine": facts(),
    }
    print(json.dumps(result, indent=2))


def products(fast: TreeObjective) -> None:
    """The decoder's products of an epoch, on arrays of the same sizes and layout."""
    z = torch.randn(BATCH, fast.method.n_bits)
    embedding = fast.words.embedding.detach()
    by_logit = torch.randn(BATCH, len(embedding))
    for _ in range(fast.steps):
        z @ embedding.t()
        by_logit @ embedding
        by_logit.t() @ z


def one_epoch(objective: Objective[Any], rng: np.random.Generator) -> Callable[[], None]:
    """The steps of an epoch, as the training loop takes them."""
    optimizer = torch.optim.Adam(objective.parameters, lr=RATE, fused=True)

    def run() -> None:
        for batch in objective.batches(rng, epoch=0):
            loss = sum(objective.loss(batch, epoch=1.0).values(), start=torch.zeros(()))
            optimizer.zero_grad()
            loss.backward()
            clip_gradients(objective.parameters, CLIP)
            optimizer.step()

    return run


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
                noise=torch.randn(len(x), fast.method.n_bits),
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
