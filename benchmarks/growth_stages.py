"""The stages whose growth is measured; each reads the files that earlier stages left in a folder.

A stage loads its inputs and returns the function to measure.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import snuh
from snuh.corpus import open_source
from snuh.features import TfidfFeatures
from snuh.graph import DensePart, Neighbors, nearest_neighbors
from snuh.index import scan
from snuh.index.ivf import IVF
from snuh.model import Model

NEIGHBORS, BITS, QUERIES, TOP = 20, 64, 200, 100
OPTIONAL = ("exact graph", "lists")  # optional, for comparison

Facts = dict[str, object] | None
Run = Callable[[], Facts]


def write_documents(corpus: str, folder: Path, docs: int) -> None:
    """Write the first `count` documents of a corpus, all in the training split."""
    (folder / str(docs)).mkdir()
    with open(folder / str(docs) / "documents.jsonl", "w", encoding="utf-8") as file:
        for doc in islice(open_source(corpus), docs):
            file.write(json.dumps({"id": doc.id, "text": doc.text}) + "\n")


def read(folder: Path) -> Run:
    return lambda: {"characters": sum(len(doc.text) for doc in documents(folder))}


def features(folder: Path) -> Run:
    texts = [doc.text for doc in documents(folder)]

    def run() -> Facts:
        made = TfidfFeatures().fit(texts)
        sparse.save_npz(folder / "rows.npz", made.transform(texts), compressed=False)
        (folder / "features.json").write_text(json.dumps(made.to_json()), encoding="utf-8")
        return None

    return run


def lsa(folder: Path) -> Run:
    from snuh.training.spectral import fit_lsa

    X = rows(folder)

    def run() -> Facts:
        found = fit_lsa(X, dims=128, seed=0)
        np.savez(folder / "lsa.npz", directions=found.directions, values=found.unit_values(X))
        return None

    return run


def graph(folder: Path, search: Any = "auto") -> Run:
    X, dense_parts = rows(folder), [DensePart(np.load(folder / "lsa.npz")["values"], 0.5)]
    if X.shape[0] <= 1_000:
        search = "approximate"  # so that the warm-up compiles it

    def run() -> Facts:
        found = nearest_neighbors(X, k=NEIGHBORS, dense_parts=dense_parts, search=search)
        np.savez(folder / "graph.npz", rows=found.rows, similarity=found.similarity)
        return found.summary

    return run


def exact_graph(folder: Path) -> Run:
    X, dense_parts = rows(folder), [DensePart(np.load(folder / "lsa.npz")["values"], 0.5)]
    return lambda: nearest_neighbors(X, k=NEIGHBORS, dense_parts=dense_parts, search="exact").summary


def trees(folder: Path) -> Run:
    from snuh.methods import make

    method = make("snuh-plus", bits=BITS, seed=0)
    found = Neighbors(**np.load(folder / "graph.npz"))

    def run() -> Facts:
        edges = method.draw_edges(found, rng=np.random.default_rng(0), on_progress=None)
        np.savez(folder / "edges.npz", pairs=edges.pairs, weight=edges.weight, prior=edges.prior)
        return {"edges": len(edges.weight)}

    return run


def epoch(folder: Path) -> Run:
    import torch

    from benchmarks.epoch import one_epoch, own_adam
    from snuh.methods import make
    from snuh.training.distributed import Share
    from snuh.training.estimator import TrainingData
    from snuh.training.gradient import Start
    from snuh.training.spectral import LSA
    from snuh.training.tree_objective import Edges

    X, directions = rows(folder), np.load(folder / "lsa.npz")["directions"]
    share: Any = Share(np.arange(X.shape[0]), Edges(**np.load(folder / "edges.npz")), team=None)
    data: Any = TrainingData(X, LSA(directions), score=None, X_held=None, share=share)
    rng = np.random.default_rng(0)
    start = Start(data, 12, rng, torch.Generator().manual_seed(0), None)
    objective = make("snuh-plus", bits=BITS, seed=0)._objective(start)
    train = one_epoch(objective, rng, own_adam(objective.parameters))

    def run() -> Facts:
        train()
        made = TfidfFeatures.from_json(json.loads((folder / "features.json").read_text(encoding="utf-8")))
        encoder = replace(objective.encoder(), unit_rows=False)
        Model(encoder, made, "snuh-plus", {}, {}).save(folder / "model")
        return None

    return run


def encode(folder: Path) -> Run:
    model, texts = snuh.load(folder / "model"), [doc.text for doc in documents(folder)]

    def run() -> Facts:
        np.save(folder / "codes.npy", model.encode(texts))
        return None

    return run


def index(folder: Path) -> Run:
    """Add documents to a collection: encode, store and prepare them for searches."""
    model, texts = snuh.load(folder / "model"), list(documents(folder))
    number = len(list(folder.glob("collection*")))

    def run() -> Facts:
        with snuh.Collection.create(folder / f"collection{number}", model) as collection:
            collection.add(texts)
        return None

    return run


def search(folder: Path) -> Run:
    codes = np.load(folder / "codes.npy")
    queries = codes[:: max(1, len(codes) // QUERIES)][:QUERIES]

    def run() -> Facts:
        for query in queries:
            scan(query, codes, k=TOP)
        return {"queries": len(queries)}

    return run


def lists(folder: Path) -> Run:
    codes = np.load(folder / "codes.npy")

    def run() -> Facts:
        return {"lists": len(IVF.build(codes).centroids)}

    return run


def documents(folder: Path) -> Any:
    return open_source(str(folder / "documents.jsonl"))


def rows(folder: Path) -> sparse.csr_matrix:
    return sparse.csr_matrix(sparse.load_npz(folder / "rows.npz"))


STAGES: dict[str, Callable[[Path], Run]] = {
    "read": read,
    "features": features,
    "LSA": lsa,
    "graph": graph,
    "trees": trees,
    "epoch": epoch,
    "encode": encode,
    "index": index,
    "search": search,
    "exact graph": exact_graph,
    "lists": lists,
}
