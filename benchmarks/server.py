"""HTTP searches under load, against a bare FastAPI endpoint that returns the same JSON without searching.

    python -m benchmarks.server [--documents 1000000] [--clients 32] [--rounds 5] [--folder FOLDER]

Documents of planted topics with 64-bit codes, k = 10, thousands of different texts. The contenders alternate
in every round: "bare" returns a dict, as most FastAPI endpoints do; "typed" does so with a declared type,
which FastAPI serialises faster; "model" declares the model of the response; "ready" returns prepared bytes,
the minimum for FastAPI; "exact" scans all codes, "approximate" uses the index of `snuh index`, "hybrid" is
the default, by words and codes. Some responses are compared with brute force first. The servers and the load
generator share the processors; the CPU time of each is reported. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import psutil

from benchmarks.load import Loaded, load
from benchmarks.machine import facts
from benchmarks.served import BITS, make, queries
from snuh.collection import Collection

K, CHECKED, TEXTS = 10, 25, 5_000
SEARCHES = ("exact", "approximate", "hybrid")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--folder", type=Path, default=None, help="the collection; made, and kept, if absent")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary) / "collection"
        if not folder.exists():
            make(folder, documents=options.documents)
        with Collection(folder) as collection:
            lists = collection.info().index or collection.build_index(k=K)
            texts = queries(TEXTS)
            expected = brute_force(collection, texts[:CHECKED])
        with serving(folder) as (port, server):
            path = f"/v1/collections/{folder.name}/search"
            check(f"http://127.0.0.1:{port}{path}", texts, expected)
            answer = Path(temporary) / "answer.json"
            response = httpx.post(
                f"http://127.0.0.1:{port}{path}", json={"text": texts[0], "k": K, "mode": "codes"}
            )
            answer.write_text(response.text, encoding="utf-8")
            with bare(answer) as (bare_port, bare_server):
                contenders = {
                    "bare": (bare_port, "/bare", {}, bare_server),
                    "typed": (bare_port, "/typed", {}, bare_server),
                    "model": (bare_port, "/model", {}, bare_server),
                    "ready": (bare_port, "/ready", {}, bare_server),
                    "exact": (port, path, {"mode": "codes"}, server),
                    "approximate": (port, path, {"mode": "codes", "approximate": True}, server),
                    "hybrid": (port, path, {"mode": "hybrid"}, server),
                }
                result = measure(contenders, texts, options)
    report = {"documents": options.documents, "bits": BITS, "k": K, "clients": options.clients}
    about = {"n_probe": lists.settings["n_probe"], "recall": lists.recall}
    print(json.dumps({**report, **result, "lists": about, "machine": facts()}, indent=2))


def measure(
    contenders: dict[str, tuple[int, str, dict[str, object], psutil.Process]],
    texts: list[str],
    options: argparse.Namespace,
) -> dict[str, object]:
    loads: dict[str, list[Loaded]] = {name: [] for name in contenders}
    cpu: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(options.rounds + 1):
        for name, (port, path, query, server) in contenders.items():
            bodies = [json.dumps({"text": text, "k": K, **query}).encode() for text in texts]
            before = sum(server.cpu_times()[:2])
            result = load(
                port, path, bodies, clients=options.clients, seconds=options.seconds if turn else 1.0
            )
            if turn:  # the first round warms up
                loads[name].append(result)
                cpu[name].append((sum(server.cpu_times()[:2]) - before) / result.requests)
    shown = {name: summary(loads[name], cpu[name]) for name in contenders}
    rates = {name: [one.requests / one.seconds for one in loads[name]] for name in contenders}

    def over(other: str) -> dict[str, float]:
        pairs = {name: zip(rates[name], rates[other], strict=True) for name in SEARCHES}
        return {name: statistics.median(mine / its for mine, its in both) for name, both in pairs.items()}

    others = ("bare", "typed", "model", "ready")
    return {"contenders": shown, "throughput_over": {other: over(other) for other in others}}


def summary(loads: list[Loaded], cpu: list[float]) -> dict[str, float]:
    """Return medians over the rounds."""
    return {
        "requests_per_second": statistics.median(one.requests / one.seconds for one in loads),
        "p50_milliseconds": statistics.median(one.percentile(0.50) for one in loads),
        "p99_milliseconds": statistics.median(one.percentile(0.99) for one in loads),
        "errors": sum(one.errors for one in loads),
        "server_cpu_microseconds": 1e6 * statistics.median(cpu),
        "load_cpu_microseconds": 1e6 * statistics.median(one.own_cpu_seconds / one.requests for one in loads),
    }


def brute_force(collection: Collection, texts: list[str]) -> list[list[int]]:
    """Return the distances of the nearest documents of each text, by comparing all codes."""
    every = np.ascontiguousarray(collection._backend._codes().rows().codes).view(np.uint64)[:, 0]  # type: ignore[attr-defined]
    codes = collection.model.encode(texts).view(np.uint64)[:, 0]
    return [np.sort(np.bitwise_count(every ^ code))[:K].tolist() for code in codes]


def check(url: str, texts: list[str], expected: list[list[int]]) -> None:
    for text, distances in zip(texts, expected, strict=False):
        hits = httpx.post(url, json={"text": text, "k": K, "mode": "codes"}).json()["hits"]
        if [hit["distance"] for hit in hits] != distances:
            raise SystemExit(f"the answer to {text!r} is not that of brute force")


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, psutil.Process]]:
    command = [sys.executable, "-m", "snuh.cli", "serve", str(folder), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        match = re.search(r":(\d+) ", process.stderr.readline())
        assert match is not None
        yield int(match[1]), psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def bare(answer: Path) -> Iterator[tuple[int, psutil.Process]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.bare", str(port), str(answer)])
    try:
        for _ in range(200):
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
