"""Near-duplicates with known ground truth: snuh against MinHash LSH of datasketch, on the same documents.

    snuh fit ng20 --bits 64 --out models/ng20-64                 # and -128, and the other corpora
    python -m benchmarks.duplicates --models models [--corpora ng20 agnews stackoverflow] [--rounds 3]

A tenth of the documents is copied, each copy edited in one way, and all are shuffled; the edits of titles
(stackoverflow) change one place. Both contenders are
timed from the file to the result, on one thread, with the same rule: in order, a document joins the most
similar kept one if that is similar enough, and is kept otherwise. snuh uses a trained model; MinHash needs
none. Each has the settings with the best F1 on one sample of copies, and is measured on another; snuh is also
measured with its defaults. A dropped document is correct if it and its representative come from one document
or are natural duplicates (`is_repeat`). Contenders alternate in one process and are timed in CPU seconds,
which other load affects less; memory is measured in a process for each. Prints JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from datasketch import MinHash, MinHashLSH

from benchmarks.machine import facts
from benchmarks.planted import World, plant, plant_titles
from snuh import load
from snuh.codes import unpack
from snuh.dedup import DEFAULT_THRESHOLD, WordRows, default_radius, find_duplicates
from snuh.features.tfidf import text_batches

PERMUTATIONS = 128
TITLES = ("stackoverflow", "banking_en")  # corpora of short texts
OUR_SETTINGS = [(m, t) for m in ("cosine", "overlap") for t in (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)]
THEIR_SETTINGS = [(s, t) for s in (1, 3, 5) for t in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)]


def read_texts(name: str) -> list[str]:
    with gzip.open(Path(os.environ["SNUH_DATA"]) / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def shingles(text: str, size: int) -> set[str]:
    words = words_of(text)
    return {" ".join(words[i : i + size]) for i in range(max(1, len(words) - size + 1))}


def is_repeat(left: str, right: str) -> bool:
    """Return whether two texts are duplicates: Jaccard of 3-shingles from .6, or words in order from .8."""
    a, b = shingles(left, 3), shingles(right, 3)
    if len(a & b) >= 0.6 * len(a | b):
        return True
    match = SequenceMatcher(None, words_of(left)[:2000], words_of(right)[:2000], autojunk=False)
    return match.real_quick_ratio() >= 0.8 and match.quick_ratio() >= 0.8 and match.ratio() >= 0.8


# The contenders: from a file to the representative of every document.


def texts_of(file: Path) -> list[str]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def ours(file: Path, model: Any, setting: tuple[str, float]) -> np.ndarray:
    return our_answer(*encoded(model, texts_of(file)), setting)


def our_answer(rows: Any, codes: np.ndarray, setting: tuple[str, float]) -> np.ndarray:
    measure, threshold = setting
    radius = default_radius(codes.shape[1] * 8)
    return find_duplicates(codes, rows, radius=radius, threshold=threshold, measure=measure).representative


def theirs(file: Path, setting: tuple[int, float]) -> np.ndarray:
    return their_answer(sketches(texts_of(file), setting[0]), setting[1])


def sketches(texts: list[str], size: int) -> list[MinHash]:
    sets = ([s.encode() for s in shingles(text, size)] for text in texts)
    # crc32 is faster than the default SHA-1 and as good: datasketch hashes it again.
    return list(MinHash.generator(sets, num_perm=PERMUTATIONS, hashfunc=zlib.crc32))


def their_answer(hashes: Iterable[MinHash], threshold: float) -> np.ndarray:
    index = MinHashLSH(threshold=threshold, num_perm=PERMUTATIONS)
    answer, kept = [], []
    for row, sketch in enumerate(hashes):
        near = [(kept[other].jaccard(sketch), -other) for other in index.query(sketch)]
        best = max(near, default=(0.0, 0))
        is_kept = best[0] < threshold
        answer.append(row if is_kept else -best[1])
        kept.append(sketch)
        if is_kept:
            index.insert(row, sketch)
    return np.array(answer)


# The quality of a result.


def score(world: World, answer: np.ndarray) -> dict[str, Any]:
    by_edit: dict[str, list[bool]] = {}
    for original, copy, edit in world.pairs:
        by_edit.setdefault(edit, []).append(bool(answer[original] == answer[copy]))
    dropped = np.flatnonzero(answer != np.arange(len(answer)))
    right = [is_right(world, int(row), int(answer[row])) for row in dropped]
    found = [hit for hits in by_edit.values() for hit in hits]
    recall, precision = float(np.mean(found)), float(np.mean(right)) if right else 1.0
    return {
        "recall": recall,
        "precision": precision,
        "f1": 2 * recall * precision / max(recall + precision, 1e-9),
        "dropped": len(dropped),
        "wrong": len(dropped) - sum(right),
        "recall_by_edit": {edit: round(float(np.mean(hits)), 3) for edit, hits in by_edit.items()},
    }


_known: dict[tuple[int, int], bool] = {}


def is_right(world: World, row: int, other: int) -> bool:
    if world.origin[row] == world.origin[other]:
        return True
    key = (hash(world.texts[row]), hash(world.texts[other]))
    if key not in _known:
        _known[key] = is_repeat(world.texts[row], world.texts[other])
    return _known[key]


# The measurements.


def radius_table(world: World, rows: Any, codes: np.ndarray) -> dict[str, Any]:
    """How far copies lie apart in bits, and the pairs of all documents from .8 on that a radius loses."""
    bits = unpack(codes)
    left, right = (np.array(side) for side in zip(*[(o, c) for o, c, _ in world.pairs], strict=True))
    cosine = np.asarray(rows[left].multiply(rows[right]).sum(axis=1)).ravel()
    apart = (bits[left] != bits[right]).sum(axis=1)
    near = cosine >= 0.8
    result: dict[str, Any] = {
        "planted_pairs": len(left),
        "of_cosine_from_.8": float(near.mean()),
        "radius_for_99%_of_those": int(np.quantile(apart[near], 0.99, method="higher")),
        "radius_for_99%_of_all": int(np.quantile(apart, 0.99, method="higher")),
        "default_radius": default_radius(bits.shape[1]),
        "within_default_radius": float((apart[near] <= default_radius(bits.shape[1])).mean()),
    }
    if rows.shape[0] <= 40_000:
        distances = all_pair_distances(rows, bits, 0.8)
        within = (distances <= default_radius(bits.shape[1])).mean()
        result |= {"all_pairs_from_.8": len(distances), "all_pairs_within_default_radius": float(within)}
    return result


def all_pair_distances(rows: Any, bits: np.ndarray, least: float) -> np.ndarray:
    """The distances of all pairs of documents of at least this cosine, by the full product."""
    distances = []
    for start in range(0, rows.shape[0], 1000):
        block = (rows[start : start + 1000] @ rows.T).tocoo()
        wanted = (block.data >= least) & (block.col > block.row + start)
        distances.append((bits[block.row[wanted] + start] != bits[block.col[wanted]]).sum(axis=1))
    return np.concatenate(distances)


def growth(model: Any, texts: list[str], *, rounds: int) -> dict[str, Any]:
    """Seconds and comparisons for growing numbers of documents, and the exponents between neighbours.

    There are more mixed documents than real ones: each takes half of the words of two random real ones.
    """
    rng = np.random.default_rng(0)
    rows, codes = encoded(model, texts)
    order = rng.permutation(len(codes))
    parts = [np.sort(order[: len(order) // divisor]) for divisor in (4, 2, 1)]
    pairs = rng.integers(0, len(texts), (8 * len(order), 2))
    mixed, mixed_codes = encoded(model, [half(texts[a], rng) + half(texts[b], rng) for a, b in pairs])
    sizes = [factor * len(order) for factor in (1, 2, 4, 8)]
    return {
        "threshold": 0.8,
        "real": growth_table([(rows[part], codes[part]) for part in parts], rounds=rounds),
        "mixed": growth_table(((mixed[:size], mixed_codes[:size]) for size in sizes), rounds=1),
    }


def half(text: str, rng: np.random.Generator) -> str:
    words = text.split()
    return "".join(
        f"{word} " for word, chosen in zip(words, rng.random(len(words)) < 0.5, strict=True) if chosen
    )


def growth_table(worlds: Iterable[tuple[Any, np.ndarray]], *, rounds: int) -> dict[str, Any]:
    table = []
    for rows, codes in worlds:
        radius = default_radius(codes.shape[1] * 8)
        found: list[Any] = []

        def run(rows: Any = rows, codes: Any = codes, radius: int = radius, found: Any = found) -> Any:
            found.append(find_duplicates(codes, rows, radius=radius, threshold=0.8))

        seconds = processor_seconds({"run": run}, rounds=rounds)["run"]
        table.append(
            {
                "documents": len(codes),
                "seconds": seconds,
                "codes_compared": found[-1].codes_compared,
                "rows_compared": found[-1].rows_compared,
                "fraction_of_all_pairs": found[-1].codes_compared / (len(codes) * (len(codes) - 1) / 2),
            }
        )
        print(table[-1], file=sys.stderr, flush=True)
    counts = ("seconds", "codes_compared", "rows_compared")
    exponents = {
        name: [round(float(np.log2(after[name] / before[name])), 2) for before, after in pairwise(table)]
        for name in counts
    }
    return {"parts": table, "exponents": exponents}


def measure(name: str, models: Path, *, bits: int, rounds: int, folder: Path) -> dict[str, Any]:
    texts = read_texts(name)
    model = load(models / f"{name}-{bits}")
    make = plant_titles if name in TITLES else plant
    tuning, world = make(texts, seed=0), make(texts, seed=1)
    rows, codes = encoded(model, tuning.texts)
    tuned = {"snuh": {}, "minhash": {}}
    for ours_at in OUR_SETTINGS:
        tuned["snuh"][ours_at] = score(tuning, our_answer(rows, codes, ours_at))
    for size in sorted({size for size, _ in THEIR_SETTINGS}):
        hashes = sketches(tuning.texts, size)
        for theirs_at in (setting for setting in THEIR_SETTINGS if setting[0] == size):
            tuned["minhash"][theirs_at] = score(tuning, their_answer(hashes, theirs_at[1]))
    print(f"{name}: settings options", file=sys.stderr, flush=True)
    best = {who: max(by, key=lambda setting: by[setting]["f1"]) for who, by in tuned.items()}
    file = folder / f"{name}.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in world.texts), encoding="utf-8")
    runs = {
        "snuh": lambda: ours(file, model, best["snuh"]),
        "minhash": lambda: theirs(file, best["minhash"]),
    }
    answers = {who: score(world, run()) for who, run in runs.items()}
    answers["snuh, defaults"] = score(world, ours(file, model, ("cosine", DEFAULT_THRESHOLD)))
    seconds = processor_seconds(runs, rounds=rounds)
    return {
        "corpus": name,
        "bits": bits,
        "documents": len(world.texts),
        "copies": len(world.pairs),
        "best_settings": {who: list(setting) for who, setting in best.items()},
        "f1_by_setting": {
            who: {f"{s[0]} {s[1]}": round(found["f1"], 4) for s, found in by.items()}
            for who, by in tuned.items()
        },
        "answers": answers,
        "seconds": seconds,
        "minhash_over_snuh": seconds["minhash"] / seconds["snuh"],
        "megabytes": {
            "snuh": peak(["snuh", str(file), str(models / f"{name}-{bits}"), *map(str, best["snuh"])]),
            "minhash": peak(["minhash", str(file), *map(str, best["minhash"])]),
        },
        "radius": radius_table(world, *encoded(model, world.texts)),
    }


def processor_seconds(contenders: dict[str, Callable[[], Any]], *, rounds: int) -> dict[str, float]:
    """Each contender's median over the rounds; all of them have run before."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def encoded(model: Any, texts: list[str]) -> tuple[Any, np.ndarray]:
    words = WordRows()
    for batch in text_batches(texts):
        words.add(batch)
    return words.rows(), model.encoder.encode(model.features.transform(texts, threads=1))


def peak(arguments: list[str]) -> float:
    """The largest memory of a process that does one contender's work."""
    command = [sys.executable, "-m", "benchmarks.duplicates", "--alone", *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def work_alone(who: str, file: str, *rest: str) -> None:
    if who == "snuh":
        ours(Path(file), load(rest[0]), (rest[1], float(rest[2])))
    else:
        theirs(Path(file), (int(rest[0]), float(rest[1])))
    # Not from getrusage, whose peak includes that of the parent process.
    status = Path("/proc/self/status").read_text()
    print(int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpora", nargs="*", default=["ng20", "agnews", "stackoverflow"])
    parser.add_argument("--bits", nargs="*", type=int, default=[64])
    parser.add_argument("--models", type=Path, help="a folder of models named CORPUS-BITS")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--growth", help="a corpus to take growing parts of")
    parser.add_argument("--alone", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        work_alone(*options.alone)
        return
    start = time.perf_counter()
    result: dict[str, Any] = {"machine": facts(), "rounds": options.rounds}
    with tempfile.TemporaryDirectory() as folder:
        result["comparisons"] = [
            measure(name, options.models, bits=bits, rounds=options.rounds, folder=Path(folder))
            for name in options.corpora
            for bits in options.bits
        ]
    if options.growth:
        model = load(options.models / f"{options.growth}-{options.bits[0]}")
        grown = growth(model, read_texts(options.growth), rounds=options.rounds)
        result["growth"] = {"corpus": options.growth} | grown
    print(f"{time.perf_counter() - start:.0f} s in all", file=sys.stderr)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
