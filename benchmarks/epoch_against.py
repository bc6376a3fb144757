"""Training epochs of this checkout against those of another one, taking turns.

    SNUH_DATA=... python -m benchmarks.epoch_against OTHER [--corpus ng20] [--bits 64] [--method snuh ...]

OTHER is the folder of another checkout, such as one made by `git worktree add ../before COMMIT`. For each
method, both checkouts fit the same rows in a process of their own and wait for each other after every epoch.
The result is JSON with the median seconds of an epoch, without the held-out score, and the median and
quartiles, over the rounds, of the ratio of this checkout to the other; both for elapsed time and for
processor time, which depends less on what else the machine does. Only `make`, `fit` and its progress reports
are used, so the two may differ in everything else.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HERE = Path(__file__).resolve().parents[1]
WARMUP_EPOCHS = 2  # not counted: compilation, caches
PARAMETERS = {"snuh-plus": {"refresh": 0.0}}  # a rebuilt graph would count as part of an epoch


class Checkout:
    """A process that trains with the package of one checkout, an epoch at a time."""

    def __init__(self, folder: Path, *, corpus: str, bits: int, method: str, epochs: int) -> None:
        command = [sys.executable, __file__, "--worker", corpus, str(bits), method, str(epochs)]
        environment = os.environ | {"PYTHONPATH": str(folder / "src")}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.source = self._read()  # sent before the first epoch, when the graph is built
        if not Path(str(self.source)).is_relative_to(folder):
            raise SystemExit(f"expected the package of {folder}, got {self.source}")

    def epoch(self) -> dict[str, float]:
        """Train for an epoch and return its elapsed and processor seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        seconds: dict[str, float] = self._read()
        return seconds

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a fit ended early, with exit code {self._process.wait()}")
        return json.loads(line)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path)
    parser.add_argument("--corpus", default="ng20")
    parser.add_argument("--bits", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--method", nargs="*", default=["snuh", "snuh-plus"])
    options = parser.parse_args()
    from benchmarks.machine import facts

    result: dict[str, Any] = {"corpus": options.corpus, "bits": options.bits, "rounds": options.rounds}
    for method in options.method:
        result[method] = compare(method, options)
    result["other_commit"] = _commit(options.other)
    print(json.dumps({**result, "machine": facts()}, indent=2))


def compare(method: str, options: argparse.Namespace) -> dict[str, Any]:
    """Alternate epochs of both checkouts, each going first in every second round."""
    epochs = WARMUP_EPOCHS + options.rounds
    folders = {"this": HERE, "other": options.other.resolve()}
    fits = {
        name: Checkout(folder, corpus=options.corpus, bits=options.bits, method=method, epochs=epochs)
        for name, folder in folders.items()
    }
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in fits}
    for number in range(epochs):
        for name in list(fits)[:: 1 if number % 2 else -1]:
            rounds[name].append(fits[name].epoch())
    return {
        clock: summary(*([seconds[clock] for seconds in rounds[name][WARMUP_EPOCHS:]] for name in fits))
        for clock in ("elapsed", "processor")
    }


def summary(this: list[float], other: list[float]) -> dict[str, Any]:
    """Return the median seconds of both, and the quartiles of their ratio."""
    low, median, high = statistics.quantiles([a / b for a, b in zip(this, other, strict=True)], n=4)
    return {
        "seconds": {"this": round(statistics.median(this), 4), "other": round(statistics.median(other), 4)},
        "this_over_other": round(median, 3),
        "quartiles": [round(low, 3), round(high, 3)],
    }


def work(corpus: str, bits: str, method: str, epochs: str) -> None:
    """Fit as one of the processes: print the seconds of each epoch and wait for a line before the next."""
    import snuh
    from snuh.corpus import open_source
    from snuh.methods import make

    source: Any = open_source(f"{corpus}.tfidf")
    parameters = {"epochs": int(epochs), "patience": int(epochs), **PARAMETERS.get(method, {})}
    estimator = make(method, bits=int(bits), seed=0, parameters=parameters)

    resumed = 0.0

    def pause(progress: Any) -> None:
        nonlocal resumed
        if progress.stage == "training" and progress.done == 0.0:
            resumed = time.process_time()
        if progress.epoch is not None:
            used = time.process_time() - resumed
            print(json.dumps({"elapsed": progress.epoch.seconds, "processor": used}), flush=True)
            if progress.epoch.epoch < int(epochs):
                sys.stdin.readline()
            resumed = time.process_time()

    def no_score(encoder: object) -> Any:
        return SimpleNamespace(value=0.0, alive=True)

    print(json.dumps(snuh.__file__), flush=True)
    sys.stdin.readline()
    splits = source.splits
    estimator.fit(splits["train"].X, X_val=splits["val"].X, score=no_score, on_progress=pause)


def _commit(folder: Path) -> str:
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(*sys.argv[2:])
    else:
        main()
