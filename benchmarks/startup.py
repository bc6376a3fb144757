"""The time of commands in a new process against an interpreter that does nothing; processes alternate.

`search` is a search of a collection of 20,000 documents; `first` the same with an empty cache of compiled
kernels, as after an installation. On a busy machine, processor time says more than the time that passes.

python -m benchmarks.startup [--rounds 9] [--corpus arxiv100k] [--documents 20000]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

import snuh
from benchmarks.machine import facts

QUERY = "neural networks for the classification of images"
HEAVY = ("numba", "scipy", "pyarrow", "torch", "sklearn")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--corpus", default="arxiv100k", help="in $SNUH_DATA")
    parser.add_argument("--documents", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = build(options.corpus, options.documents, Path(temporary) / "collection")
        search = ["-m", "snuh.cli", "search", str(folder), QUERY]
        contenders = {
            "search": partial(start, search),
            "codes": partial(start, [*search, "--mode", "codes"]),
            "first": partial(start_anew, search),
            "help": partial(start, ["-m", "snuh.cli", "--help"]),
            "numpy": partial(start, ["-c", "import numpy"]),
            "nothing": partial(start, ["-c", "pass"]),
        }
        start(search)
        medians = median_times(contenders, rounds=options.rounds)
        imported = heavy_imports(search)
    result = {
        "corpus": options.corpus,
        "documents": options.documents,
        "times": medians,
        "heavy imports of a search": imported,
        "machine": facts(),
    }
    print(json.dumps(result, indent=2))


def median_times(
    contenders: Mapping[str, Callable[[], object]], *, rounds: int
) -> dict[str, dict[str, float]]:
    """Return the median time that passes and the median processor time of each contender."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start, before = time.perf_counter(), processor_seconds()
            run()
            times[name].append((time.perf_counter() - start, processor_seconds() - before))
    return {
        name: {
            "seconds": round(statistics.median(wall for wall, _ in measured), 3),
            "processor_seconds": round(statistics.median(cpu for _, cpu in measured), 3),
        }
        for name, measured in times.items()
    }


def processor_seconds() -> float:
    """Return the processor time of all processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def build(corpus: str, documents: int, folder: Path) -> Path:
    """Create a collection of the first documents of a corpus, with a model that is quick to train."""
    source = snuh.open_source(corpus)
    chosen = list(islice(source.documents(), documents))
    hasher = snuh.TextHasher(method="itq", bits=64).fit([document.text for document in chosen])
    with snuh.Collection.create(folder, hasher.model_) as collection:
        collection.add(chosen)
        collection.search(QUERY, mode="hybrid")  # writes the index of words
    return folder


def start(arguments: list[str], **variables: str) -> None:
    subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=os.environ | variables
    )


def start_anew(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as empty:
        start(arguments, NUMBA_CACHE_DIR=empty)


def heavy_imports(arguments: list[str]) -> list[str]:
    """Return which of the heavy packages a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], check=True, capture_output=True, text=True
    )
    names = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    return [name for name in HEAVY if name in names]


if __name__ == "__main__":
    main()
