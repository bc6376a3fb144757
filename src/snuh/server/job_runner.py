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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.codes import unpack
from snuh.collection import Collection
from snuh.collection.backend import evenly_spaced
from snuh.collection.results import index_to_json
from snuh.corpus import Document
from snuh.dedup import deduplicate
from snuh.errors import InputError, MissingExtraError, SnuhError, suggest
from snuh.index import nearest
from snuh.io import atomic_write, write_json

COLLECTION_VARIABLE = (
    "SNUH_JOB_COLLECTION"  # not an argument: other users can read those, and URLs hold passwords
)
FORMAT_VERSION = 3
EXIT_INPUT, EXIT_OTHER = 2, 3  # errors of the request, and all others
NICENESS = 5  # searches have priority
STANDARD_INPUT = 0

MAX_POINTS, MAX_TSNE_POINTS = 30_000, 10_000  # of a map; of those, projected by t-SNE
PLACED_BY, JITTER = 3, 0.004  # mapped neighbours that place another point; its shift
REGIONS = (8, 32, 128)  # named at increasing zoom
MIN_REGION_DOCUMENTS, REGION_WORDS = 20, 3
MAX_CLUSTERS, MAX_CLUSTER_DOCUMENTS = 100, 100
MAX_TITLE_CHARACTERS = 100
# Metadata fields that hold a title, the best first; titles.js of the page has the same list.
TITLE_FIELDS = ("title", "subject", "headline", "heading", "name", "question")
SUBJECT_LINE = re.compile(r"^subject:[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
HEAD_CHARACTERS = 1_000  # of a text, in which the subject is looked for
TITLE_SOURCE_CHARACTERS = 2_000  # of a text, in which its first line is looked for
MIN_TSNE_POINTS = 10  # fewer are projected onto two principal components
PERPLEXITY, COMPONENTS = 30.0, 32


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
            run_job(kind, os.environ[COLLECTION_VARIABLE], Path(out), json.loads(options))
        finally:
            Path(lock).unlink(missing_ok=True)  # waiting processes have it open


def run_job(kind: str, address: str, out: Path, options: dict[str, Any]) -> None:
    """Run a job and write its result as JSON, with the version of the collection it was computed from."""
    with Collection(address) as collection:
        header = {"format": FORMAT_VERSION, "version": collection.version(), "computed": time.time()}
        result = JOBS[kind](collection, **options)
    with atomic_write(out) as temporary:
        write_json(temporary, {**header, **result})


def compute_map(collection: Collection) -> dict[str, Any]:
    """Project documents, or a sample of many, into two dimensions, and name the regions."""
    sample = collection.sample(MAX_POINTS, characters=TITLE_SOURCE_CHARACTERS)
    points = place_codes(sample.codes).round(4)
    features = collection.model.features
    rows = None if features is None else features.transform(document.text for document in sample.documents)
    return {
        "documents": len(collection),
        "ids": [document.id for document in sample.documents],
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "regions": [] if features is None else name_regions(points, rows, features.words),
    }


def find_duplicates(collection: Collection, **options: Any) -> dict[str, Any]:
    """Find duplicates, and return a summary with the largest clusters."""
    fields = ["labels", "split", *collection.info().fields]
    if (field := options.get("group_by")) is not None and field not in fields:
        raise InputError(f'no document has a field "{field}"{suggest(field, fields)}')
    report = deduplicate(collection.model, collection.documents(), **options)
    clusters = [cluster[:MAX_CLUSTER_DOCUMENTS] for cluster in report.largest(MAX_CLUSTERS)]
    return {
        **report.summary(),
        "largest": [
            [{**one.to_json(), "similarity": round(one.similarity, 6)} for one in cluster]
            for cluster in clusters
        ],
    }


def build_index(collection: Collection, **options: Any) -> dict[str, Any]:
    """Build the index of approximate searches, as `snuh index` does."""
    index = collection.build_index(**options)
    return {**index_to_json(index), "description": index.description}


# Results hold ids but no texts: these are added when a result is returned, so that a deleted document is not.
# The names of regions are words of many documents.


def map_with_titles(collection: Collection, result: dict[str, Any]) -> dict[str, Any]:
    """Return a map with the titles and first labels of its documents, without those that were deleted."""
    documents = collection.get_many(result["ids"], characters=TITLE_SOURCE_CHARACTERS)
    left = [index for index, doc_id in enumerate(result["ids"]) if doc_id in documents]
    ordered = [documents[result["ids"][index]] for index in left]
    return {
        **result,
        **{name: [result[name][index] for index in left] for name in ("ids", "x", "y")},
        "titles": [title_of(document) for document in ordered],
        "labels": [document.labels[0] if document.labels else None for document in ordered],
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


def project_codes(codes: NDArray[np.uint8], *, seed: int = 0) -> NDArray[np.float64]:
    """Return a t-SNE projection (documents, 2) of codes, scaled to [-1, 1]; deterministic."""
    bits = unpack(codes).astype(np.float64) * 2.0 - 1.0  # (documents, bits), -1 or 1
    components = _principal_components(bits)
    if len(codes) >= MIN_TSNE_POINTS and len(np.unique(codes, axis=0)) >= MIN_TSNE_POINTS:
        components = _tsne(components, seed)
    points = np.zeros((len(codes), 2))
    points[:, : min(2, components.shape[1])] = components[:, :2]
    points -= points.mean(axis=0) if len(points) else 0.0
    return points / (np.abs(points).max(initial=0.0) or 1.0)


def place_codes(codes: NDArray[np.uint8], *, seed: int = 0) -> NDArray[np.float64]:
    """Return the positions of codes (documents, 2): of some by t-SNE, of the others at their neighbours."""
    mapped = evenly_spaced(len(codes), MAX_TSNE_POINTS)
    points = np.zeros((len(codes), 2))
    points[mapped] = project_codes(codes[mapped], seed=seed)
    others = np.setdiff1d(np.arange(len(codes)), mapped)
    if len(others):
        neighbors = nearest(codes[others], codes[mapped], k=PLACED_BY).rows
        noise = np.random.default_rng(seed).normal(scale=JITTER, size=(len(others), 2))
        points[others] = np.clip(points[mapped][neighbors].mean(axis=1) + noise, -1.0, 1.0)
    return points


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


def _tsne(components: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    try:
        from openTSNE import TSNE
    except ModuleNotFoundError:
        raise MissingExtraError('the map needs openTSNE: pip install "snuhash[serve]"') from None
    perplexity = min(PERPLEXITY, (len(components) - 1) / 3.0)
    tsne = TSNE(perplexity=perplexity, initialization="pca", random_state=seed, n_jobs=1)
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
