"""Runs a job in its own process: python -m snuh.server.job_runner KIND OUT LOCK SECONDS OPTIONS.

The process exits when its standard input is closed, or after SECONDS.
"""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.codes import unpack
from snuh.collection import Collection
from snuh.collection.backend import evenly_spaced
from snuh.collection.results import index_to_json
from snuh.corpus import Document
from snuh.dedup import deduplicate
from snuh.encoding import encode_documents
from snuh.errors import InputError, MissingExtraError, SnuhError, suggest
from snuh.index import nearest
from snuh.io import atomic_write, write_json
from snuh.model import Model

COLLECTION_VARIABLE = (
    "SNUH_JOB_COLLECTION"  # not an argument: other users can read those, and URLs hold passwords
)
FORMAT_VERSION = 4
EXIT_INPUT, EXIT_OTHER = 2, 3  # errors of the request, and all others
NICENESS = 5  # searches have priority
STANDARD_INPUT = 0

MAX_POINTS, MAX_TSNE_POINTS = 100_000, 10_000  # of a map; of those, projected by t-SNE
PLACED_BY, JITTER = 3, 0.004  # mapped neighbours that place another point; its shift
REGIONS = (8, 32, 128)  # named at increasing zoom
MIN_REGION_DOCUMENTS, REGION_WORDS = 20, 3
NAMING_CHARACTERS = 1_000  # of a text, whose words name regions
MAX_ID_CHARACTERS = 8_000_000  # of all documents of a map, which is sent as a whole
TSNE_FRACTION, READING_FRACTION = 0.9, 0.3  # of the work of a job, for reports of progress
REPORTED_ITERATIONS, REPORTED_DOCUMENTS = 10, 100  # between two reports
MAX_CLUSTERS, MAX_CLUSTER_DOCUMENTS = 100, 100
MAX_TITLE_CHARACTERS, MAX_MAP_TITLE_CHARACTERS = 100, 60
TITLES_AT_ONCE = 2_000  # documents in memory to read their titles
# Metadata fields that hold a title, the best first; titles.js of the page has the same list.
TITLE_FIELDS = ("title", "subject", "headline", "heading", "name", "question")
SUBJECT_LINE = re.compile(r"^subject:[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
HEAD_CHARACTERS = 1_000  # of a text, in which the subject is looked for
TITLE_SOURCE_CHARACTERS = 2_000  # of a text, in which its first line is looked for
MIN_TSNE_POINTS = 10  # fewer are projected onto two principal components
PERPLEXITY, COMPONENTS = 30.0, 32
EXAGGERATED_ITERATIONS, ITERATIONS = 250, 500  # of t-SNE, one phase after the other

Report: TypeAlias = Callable[[float], None]  # takes the fraction done


def main(kind: str, out: str, lock: str, seconds: str, options: str) -> None:
    """Run a job; if another process is running the same one, wait for it instead."""
    exit_with_stdin(EXIT_OTHER)
    signal.alarm(int(seconds))
    os.nice(NICENESS)
    with open(lock, "w", encoding="utf-8") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock_file, fcntl.LOCK_EX)  # returns once the other process is done
            return
        try:
            report = _writer_of_progress(lock_file)
            run_job(kind, os.environ[COLLECTION_VARIABLE], Path(out), json.loads(options), report)
        finally:
            Path(lock).unlink(missing_ok=True)  # waiting processes have it open


def _writer_of_progress(file: TextIO) -> Report:
    """Return a function that replaces the content of a file by the fraction of the work that is done."""

    def report(done: float) -> None:
        file.seek(0)
        file.write(f"{done:.3f}\n")
        file.flush()

    return report


def run_job(kind: str, address: str, out: Path, options: dict[str, Any], report: Report) -> None:
    """Run a job and write its result as JSON, with the version of the collection it was computed from."""
    with Collection(address) as collection:
        header = {"format": FORMAT_VERSION, "version": collection.version(), "computed": time.time()}
        result = JOBS[kind](collection, report, **options)
    with atomic_write(out) as temporary:
        write_json(temporary, {**header, **result})


def compute_map(collection: Collection, report: Report) -> dict[str, Any]:
    """Project documents, or a sample of many, into two dimensions, and name the regions."""
    sample = collection.sample(MAX_POINTS, characters=NAMING_CHARACTERS)
    length = sum(len(document.id) for document in sample.documents)
    if length > MAX_ID_CHARACTERS:
        fewer = MAX_POINTS * MAX_ID_CHARACTERS // length
        sample = collection.sample(fewer, characters=NAMING_CHARACTERS)
    points = place_codes(sample.codes, report=lambda done: report(TSNE_FRACTION * done)).round(4)
    report(TSNE_FRACTION)
    features = collection.model.features
    rows = None if features is None else features.transform(document.text for document in sample.documents)
    return {
        "documents": len(collection),
        "ids": [document.id for document in sample.documents],
        "codes": [code.tobytes().hex() for code in sample.codes],  # to place other documents
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "regions": [] if features is None else name_regions(points, rows, features.words),
    }


def find_duplicates(collection: Collection, report: Report, **options: Any) -> dict[str, Any]:
    """Find duplicates, and return a summary with the largest clusters."""
    fields = ["labels", "split", *collection.info().fields]
    if (field := options.get("group_by")) is not None and field not in fields:
        raise InputError(f'no document has a field "{field}"{suggest(field, fields)}')
    documents = _reported(collection.documents(), len(collection), report)
    found = deduplicate(collection.model, documents, **options)
    clusters = [cluster[:MAX_CLUSTER_DOCUMENTS] for cluster in found.largest(MAX_CLUSTERS)]
    return {
        **found.summary(),
        "largest": [
            [{**one.to_json(), "similarity": round(one.similarity, 6)} for one in cluster]
            for cluster in clusters
        ],
    }


def _reported(documents: Iterable[Document], total: int, report: Report) -> Iterator[Document]:
    """Yield documents, and report the fraction read; the comparisons follow."""
    for number, document in enumerate(documents):
        if number % REPORTED_DOCUMENTS == 0:
            report(READING_FRACTION * number / max(1, total))
        yield document


def build_index(collection: Collection, _: Report, **options: Any) -> dict[str, Any]:
    """Build the index of approximate searches, as `snuh index` does."""
    index = collection.build_index(**options)
    return {**index_to_json(index), "description": index.description}


# Results hold ids but no texts: these are added when a result is returned, so that a deleted document is not.
# The names of regions are words of many documents.


def map_with_titles(collection: Collection, result: dict[str, Any]) -> dict[str, Any]:
    """Return a map with the titles and first labels of its documents, without those that were deleted."""
    left: list[int] = []
    titles: list[str] = []
    labels: list[str | None] = []
    for start in range(0, len(result["ids"]), TITLES_AT_ONCE):
        ids = result["ids"][start : start + TITLES_AT_ONCE]
        documents = collection.get_many(ids, characters=TITLE_SOURCE_CHARACTERS)
        for index, doc_id in enumerate(ids, start=start):
            if document := documents.get(doc_id):
                left.append(index)
                titles.append(title_of(document)[:MAX_MAP_TITLE_CHARACTERS])
                labels.append(document.labels[0] if document.labels else None)
    return {
        **result,
        **{name: [result[name][index] for index in left] for name in ("ids", "codes", "x", "y")},
        "titles": titles,
        "labels": labels,
    }


def duplicates_with_titles(collection: Collection, result: dict[str, Any]) -> dict[str, Any]:
    """Return duplicates with titles, without documents that were deleted and clusters that are none now."""
    ids = [one["id"] for cluster in result["largest"] for one in cluster]
    documents = collection.get_many(ids, characters=TITLE_SOURCE_CHARACTERS)
    clusters = []
    for cluster in result["largest"]:
        left = [
            {**one, "title": title_of(documents[one["id"]])}
            for one in cluster
            if one["id"] in documents and one["representative"] in documents
        ]
        if len(left) > 1:
            clusters.append(left)
    return {**result, "largest": clusters}


def without_titles(kind: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored of a result."""
    if kind == "map":
        return {name: value for name, value in result.items() if name not in ("titles", "labels")}
    clusters = [
        [{name: value for name, value in one.items() if name != "title"} for one in cluster]
        for cluster in result["largest"]
    ]
    return {**result, "largest": clusters}


WITH_TITLES: dict[str, Callable[[Collection, dict[str, Any]], dict[str, Any]]] = {
    "map": map_with_titles,
    "duplicates": duplicates_with_titles,
}
JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "map": compute_map,
    "duplicates": find_duplicates,
    "index": build_index,
}


def project_codes(
    codes: NDArray[np.uint8], *, seed: int = 0, report: Report = lambda _: None
) -> NDArray[np.float64]:
    """Return a t-SNE projection (documents, 2) of codes, scaled to [-1, 1]; deterministic."""
    bits = unpack(codes).astype(np.float64) * 2.0 - 1.0  # (documents, bits), -1 or 1
    components = _principal_components(bits)
    if len(codes) >= MIN_TSNE_POINTS and len(np.unique(codes, axis=0)) >= MIN_TSNE_POINTS:
        components = _tsne(components, seed, report)
    points = np.zeros((len(codes), 2))
    points[:, : min(2, components.shape[1])] = components[:, :2]
    points -= points.mean(axis=0) if len(points) else 0.0
    return points / (np.abs(points).max(initial=0.0) or 1.0)


def place_codes(
    codes: NDArray[np.uint8], *, seed: int = 0, report: Report = lambda _: None
) -> NDArray[np.float64]:
    """Return the positions of codes (documents, 2): of some by t-SNE, of the others at their neighbours."""
    mapped = evenly_spaced(len(codes), MAX_TSNE_POINTS)
    points = np.zeros((len(codes), 2))
    points[mapped] = project_codes(codes[mapped], seed=seed, report=report)
    others = np.setdiff1d(np.arange(len(codes)), mapped)
    if len(others):
        neighbors = nearest(codes[others], codes[mapped], k=PLACED_BY).rows
        noise = np.random.default_rng(seed).normal(scale=JITTER, size=(len(others), 2))
        points[others] = np.clip(points[mapped][neighbors].mean(axis=1) + noise, -1.0, 1.0)
    return points


def place_documents(
    model: Model, documents: Iterable[Document], result: Mapping[str, Any]
) -> list[tuple[float, float] | None]:
    """Return positions on a stored map, each the mean of those of the documents with the nearest codes.

    None for a document without a code.
    """
    mapped = np.frombuffer(bytes.fromhex("".join(result["codes"])), np.uint8).reshape(-1, model.bits // 8)
    positions = np.column_stack((result["x"], result["y"]))
    placed: list[tuple[float, float] | None] = []
    for batch in encode_documents(model, documents):
        neighbors = nearest(batch.codes, mapped, k=PLACED_BY).rows
        points = positions[neighbors].mean(axis=1).round(4).tolist()
        known = batch.known & (len(mapped) > 0)
        placed += [(x, y) if has_code else None for (x, y), has_code in zip(points, known, strict=True)]
    return placed


def name_regions(
    points: NDArray[np.float64], rows: Any, words: Sequence[str], *, seed: int = 0
) -> list[dict[str, Any]]:
    """Cluster positions at several scales, and name each cluster by the words typical of its documents.

    A word's score is its mean weight in the cluster times the logarithm of how much larger that is than its
    mean weight in all documents (class-based TF-IDF).

    Args:
        points: positions (documents, 2).
        rows: TF-IDF rows of the documents (CSR).
        words: of the columns.
        seed: of the clustering.
    """
    from scipy.cluster.vq import kmeans2
    from scipy.sparse import csr_matrix

    regions: list[dict[str, Any]] = []
    overall = np.asarray(rows.mean(axis=0))[0] if len(points) else np.zeros(0)
    before = 0
    for level, most in enumerate(REGIONS):
        count = min(most, len(points) // MIN_REGION_DOCUMENTS)
        if count <= before:
            break
        before = count
        centroids, assignments = kmeans2(points, count, minit="++", rng=seed)
        sizes = np.bincount(assignments, minlength=count)
        members = csr_matrix((np.ones(len(points)), (assignments, np.arange(len(points)))))
        means = (members @ rows).toarray() / np.maximum(sizes[: members.shape[0]], 1)[:, None]
        scores = means * np.log(np.maximum(means, 1e-12) / np.maximum(overall, 1e-12))
        for region in np.flatnonzero(sizes[: len(scores)] >= MIN_REGION_DOCUMENTS).tolist():
            best = np.argsort(-scores[region], kind="stable")[:REGION_WORDS]
            names = [words[column] for column in best.tolist() if scores[region, column] > 0]
            if names:
                x, y = centroids[region].round(4).tolist()
                documents = int(sizes[region])
                regions.append({"level": level, "x": x, "y": y, "words": names, "documents": documents})
    return regions


def _principal_components(bits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the coordinates along the axes of largest variance (documents, up to COMPONENTS)."""
    if not len(bits):
        return bits
    centered = bits - bits.mean(axis=0)
    values, vectors = np.linalg.eigh(centered.T @ centered)
    components: NDArray[np.float64] = centered @ vectors[:, np.argsort(-values)[:COMPONENTS]]
    return components


def _tsne(components: NDArray[np.float64], seed: int, report: Report) -> NDArray[np.float64]:
    try:
        from openTSNE import TSNE
    except ModuleNotFoundError:
        raise MissingExtraError('the map needs openTSNE: pip install "snuhash[serve]"') from None
    perplexity = min(PERPLEXITY, (len(components) - 1) / 3.0)
    done = 0

    def on_iteration(*_: object) -> None:  # in both phases
        nonlocal done
        done += REPORTED_ITERATIONS
        report(done / (EXAGGERATED_ITERATIONS + ITERATIONS))

    tsne = TSNE(
        perplexity=perplexity,
        initialization="pca",
        random_state=seed,
        n_jobs=1,
        early_exaggeration_iter=EXAGGERATED_ITERATIONS,
        n_iter=ITERATIONS,
        callbacks=on_iteration,
        callbacks_every_iters=REPORTED_ITERATIONS,
    )
    return np.asarray(tsne.fit(components))


def title_of(document: Document) -> str:
    """Return a field such as "title", the line "Subject: ...", or the first line of the text, truncated."""
    fields = {name.lower(): value for name, value in document.metadata.items()}
    titles = (fields.get(name) for name in TITLE_FIELDS)
    title = next((value for value in titles if isinstance(value, str) and value.strip()), None)
    if title is None and (subject := SUBJECT_LINE.search(document.text[:HEAD_CHARACTERS])):
        title = subject[1]
    lines = (document.text if title is None else title).splitlines()
    first = next((" ".join(line.split()) for line in lines if line.strip()), "")
    return first[:MAX_TITLE_CHARACTERS]


def exit_with_parent() -> None:
    """Send this worker process SIGTERM once the process that started it has exited."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def exit_with_stdin(code: int) -> None:
    """Exit at once when standard input is closed, which happens when the server has exited."""

    def wait() -> None:
        os.read(STANDARD_INPUT, 1)  # not sys.stdin: its lock would block the interpreter's shutdown
        os._exit(code)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except SnuhError as error:
        sys.stderr.write(" ".join(str(error).split()) + "\n")
        sys.exit(EXIT_INPUT if isinstance(error, InputError) else EXIT_OTHER)
