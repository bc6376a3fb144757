"""Base of SNUH and SNUH-plus: builds the neighbour graph, samples forests, and trains on their edges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from scipy import sparse

from snuh.encoder import Encoder
from snuh.graph import DensePart, Neighbors, Search, gaussian_affinity, nearest_neighbors
from snuh.graph.forests import Sampler, sample_edges
from snuh.progress import OnProgress, stage_callback
from snuh.training import DEFAULTS_BY_SIZE
from snuh.training.estimator import Range, check_neighbors
from snuh.training.gradient import GradientHasher, Start
from snuh.training.spectral import LSA
from snuh.training.tree_objective import Correlation, Edges, MeansStart, TreeObjective

MEANS_FRACTION = 0.25  # weight of the learnt means in the similarity of a rebuilt graph
# If `warmup` is None: at least this many epochs and, unless that is too large a fraction of all epochs, this
# many steps. With a shorter warmup, codes of small corpora die before they have learnt anything.
WARMUP_EPOCHS, WARMUP_STEPS, WARMUP_FRACTION = 3.0, 140, 0.25


@dataclass(kw_only=True, eq=False, repr=False)
class TreeHasher(GradientHasher):
    """Base of the methods whose documents are correlated along forests of a neighbour graph."""

    batch_size: int | None = None  # documents in a step; None: 128, less below 1,280 documents
    neighbors: int | None = None  # K, per document; None: 20, less below 2,000 documents
    graph: Search = "auto"  # neighbour search; "auto": "exact", or "approximate" for large corpora
    trees: int = 20  # M, number of spanning forests
    sampler: Sampler = "depth-first"  # "star": the printed Algorithm 2
    alpha: float = 0.1  # temperature of the softmax that draws the next node of a tree
    affinity: Literal["constant", "gaussian"] = "constant"  # "gaussian": Eq. (5)
    sigma: float = 1.0  # width of the Gaussian affinity
    strength: float = 0.99  # lambda, prior correlation of neighbours
    tau: float = 0.1  # slope of the sigmoid of the means
    beta: float | None = None  # weight of all divergences; None: by the length of the codes
    correlation: Correlation = "encoder"  # "prior": SNUH_prior, "none": SNUH_ind
    word_dropout: float | None = 0.0  # fraction of words hidden from the encoder in a step
    warmup: float | None = None  # epochs over which beta grows; None: 3, more on small corpora
    init_range: float = 0.05  # initial weights are uniform within +- this
    threshold: Literal["half", "median"] = "half"  # of the means: 0.5 or the training median
    start: MeansStart = "random"  # initial weights of the means; "itq": LSA, rotated towards bits

    # Additions of SNUH-plus, where they are parameters: here plain class attributes, and off.
    lsa_graph = False
    neighbor_words = 0.0
    refresh = 0.0

    reads_vectors: ClassVar[bool] = True
    vector_fraction: ClassVar[float] = 0.8  # of the graph's similarity that comes from vectors
    vector_dropout: ClassVar[float] = 0.3  # fraction of the documents that the encoder reads without vector

    ranges: ClassVar[Mapping[str, Range]] = {
        **GradientHasher.ranges,
        "batch_size": Range(above=0, integer=True, optional=True),
        "neighbors": Range(above=0, integer=True, optional=True),
        "trees": Range(above=0, integer=True),
        "alpha": Range(above=0),
        "sigma": Range(above=0),
        "strength": Range(below=1),
        "tau": Range(above=0),
        "beta": Range(optional=True),
        "word_dropout": Range(below=1),
        "warmup": Range(optional=True),
        "init_range": Range(),
    }
    choices: ClassVar[Mapping[str, tuple[object, ...]]] = {
        **GradientHasher.choices,
        "graph": get_args(Search),
        "sampler": get_args(Sampler),
        "affinity": ("constant", "gaussian"),
        "correlation": get_args(Correlation),
        "threshold": ("half", "median"),
        "start": get_args(MeansStart),
    }

    def _check_size(self, docs: int) -> None:
        # On a corpus too small for the default of large ones, `neighbors` must be given.
        default = DEFAULTS_BY_SIZE["neighbors"].maximum
        check_neighbors(default if self.neighbors is None else self.neighbors, docs)

    def objective(self, start: Start) -> TreeObjective:
        """Return the objective to minimise."""
        data, X, shard = start.data, start.data.X, start.data.shard
        words, vectors = data.words, data.vectors
        dense_parts = self.graph_parts(words, data.lsa)
        if vectors is not None:
            others = [DensePart(part.rows, part.weight * (1 - self.vector_fraction)) for part in dense_parts]
            dense_parts = [*others, DensePart(vectors, self.vector_fraction)]
        edges = None if shard is None else shard.edges

        def rebuild_edges(encoder: Encoder) -> Edges:
            return self._sample_edges(words, _with_means(dense_parts, encoder, X), start)

        return TreeObjective(
            self,
            X,
            self._sample_edges(words, dense_parts, start) if edges is None else edges,
            generator=start.generator,
            rebuild_edges=rebuild_edges,
            documents=start.documents,
            vector_dims=data.vector_dims,
        )

    def _default(self, name: str, docs: int) -> float:
        if name != "warmup":
            return super()._default(name, docs)
        steps = math.ceil(docs / self.resolve("batch_size", docs))
        return max(WARMUP_EPOCHS, min(WARMUP_STEPS / steps, WARMUP_FRACTION * self.resolve("epochs", docs)))

    @property
    def has_trained_start(self) -> bool:
        """Whether the means start from ITQ."""
        return self.start == "itq"

    @property
    def uses_edges(self) -> bool:
        """Whether the objective has a term along edges."""
        return self.correlation != "none" or self.neighbor_words > 0

    def graph_parts(self, X: sparse.csr_matrix, lsa: LSA) -> list[DensePart]:
        """Return the dense vectors whose cosine is added to that of the rows in the first graph."""
        return [DensePart(lsa.unit_values(X), 0.5)] if self.lsa_graph else []

    def _sample_edges(self, X: sparse.csr_matrix, dense_parts: list[DensePart], start: Start) -> Edges:
        if not self.uses_edges:
            empty = np.zeros(0, dtype=np.float32)
            return Edges(np.zeros((0, 2), dtype=np.int32), empty, empty)
        neighbors = nearest_neighbors(
            X,
            k=int(self.resolve("neighbors", X.shape[0])),
            dense_parts=dense_parts,
            search=self.graph,
            rng=start.rng,
            on_progress=stage_callback(start.on_progress, "graph"),
        )
        start.data.graphs.append(neighbors.summary)
        return self.draw_edges(neighbors, rng=start.rng, on_progress=start.on_progress)

    def draw_edges(
        self, neighbors: Neighbors, *, rng: np.random.Generator, on_progress: OnProgress | None
    ) -> Edges:
        """Sample forests of a neighbour graph and merge them into weighted edges with prior correlations."""
        merged = sample_edges(
            neighbors.adjacency(),
            trees=int(self.trees),
            alpha=self.alpha,
            sampler=self.sampler,
            rng=rng,
            on_progress=stage_callback(on_progress, "trees"),
        )
        affinity = np.ones_like(merged.similarity)
        if self.affinity == "gaussian":
            affinity = gaussian_affinity(merged.similarity, sigma=self.sigma)
        return Edges(merged.pairs, merged.weight, (self.strength * affinity).astype(np.float32))


def _with_means(dense_parts: list[DensePart], encoder: Encoder, X: sparse.csr_matrix) -> list[DensePart]:
    """Add the learnt means to the parts of the similarity, scaling down the others."""
    means = encoder.values(X)
    means -= means.mean(axis=0)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    others = [DensePart(part.rows, part.weight * (1 - MEANS_FRACTION)) for part in dense_parts]
    return [*others, DensePart(means, MEANS_FRACTION)]
