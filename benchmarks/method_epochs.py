"""One training epoch of every gradient method against one of SNUH, on the same rows.

    SNUH_DATA=... python -m benchmarks.method_epochs [--corpus ng20] [--bits 64] [--method vdsh ...]

The methods alternate in one process; prints JSON with the ratio of each median to that of SNUH.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
import torch

from benchmarks.alternating import median_seconds
from benchmarks.epoch import one_epoch, own_adam
from benchmarks.machine import facts
from snuh.corpus import MatrixSource, open_source
from snuh.methods import METHODS, make
from snuh.training.gradient import Start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    with_gradients = [name for name, info in METHODS.items() if info.needs_torch]
    parser.add_argument("--corpus", default="ng20")
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--method", nargs="*", default=with_gradients)
    options = parser.parse_args()
    source = open_source(f"{options.corpus}.tfidf")
    assert isinstance(source, MatrixSource)
    X, X_val = source.splits["train"].X, source.splits["val"].X
    contenders = {}
    for name in dict.fromkeys(["snuh", *options.method]):
        estimator = make(name, bits=options.bits, seed=0)
        data = estimator._training_data(X, X_val, None)
        start = Start(data, 20, np.random.default_rng(0), torch.Generator().manual_seed(0), None)
        objective = estimator._objective(start)
        contenders[name] = one_epoch(objective, np.random.default_rng(0), own_adam(objective.parameters))
    middle = median_seconds(contenders, rounds=options.rounds)
    result = {
        "corpus": options.corpus,
        "bits": options.bits,
        "documents": X.shape[0],
        "seconds": middle,
        "over_snuh": {name: round(seconds / middle["snuh"], 2) for name, seconds in middle.items()},
        "machine": facts(),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
