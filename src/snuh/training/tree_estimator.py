"""From feature rows to a trained tree-structured model: graph, forests, edges, training."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from scipy import sparse

from snuh.encoder import Encoder
from snuh.graph import DensePart, Neighbors, Search, gaussian_affinity, nearest_neighbors
from snuh.graph.forests import Sampler, sample_edges
from snuh.progress import OnProgress, stage_callback
from snuh.training.estimator import BY_SIZE, Limit, check_neighbors
from snuh.training.gradient import GradientHasher, Start
from snuh.training.spectral import LSA
from snuh.training.tree_objective import Correlation, Edges, MeansStart, TreeObjective, TreeSettings

MEANS_SHARE = 0.25  # of the similarity, in a graph built anew
WARMUP_EPOCHS = 3.0  # over which beta grows, where they are not given
WARMUP_STEPS = 140  # or over so many, if they are more: sooner, codes of few documents die before they learn
WARMUP_SHARE = 0.25  # of all epochs, that these may take


@dataclass(frozen=True)
class Additions:
    """What a method may add to the paper's graph and objective; nothing by default."""

    neighbor_words: float = 0.0  # weight of explaining a document's words by its neighbour's code
    graph_of_lsa: bool = False  # the graph joins LSA cosine to the cosine of the rows
    refresh: float = 0.0  # share of the epochs after which the graph is built anew, with the learnt means


@dataclass(kw_only=True, eq=False, repr=False)
class TreeHasher(GradientHasher):
    """Base of the methods whose documents are correlated along forests of a neighbour graph."""

    batch_size: int | None = None  # documents in a step; None: 128, fewer below 1,280 documents
    neighbors: int | None = None  # K, in the graph; None: 20, fewer below 2,000 documents
    graph: Search = "auto"  # how they are searched for; "auto": "exact" or, for many, "approximate"
    trees: int = 20  # M, spanning forests
    sampler: Sampler = "depth-first"  # "star": the printed Algorithm 2
    alpha: float = 0.1  # how much the next neighbour of a tree is drawn at random
    affinity: Literal["constant", "gaussian"] = "constant"  # "gaussian": Eq. (5)
    sigma: float = 1.0  # width of the Gaussian affinity
    strength: float = 0.99  # lambda, prior correlation of neighbours
    tau: float = 0.1  # slope of the sigmoid of the means
    beta: float | None = None  # weight of all divergences; None: by the length of the codes
    correlation: Correlation = "encoder"  # "prior": SNUH_prior, "none": SNUH_ind
    word_dropout: float | None = 0.0  # share of words hidden from the encoder in a step
    warmup: float | None = None  # epochs over which beta grows; None: 3, more where they are few steps
    init_range: float = 0.05  # weights start uniform within +- this
    threshold: Literal["half", "median"] = "half"  # where a mean becomes a 1
    start: MeansStart = "random"  # of the means' weights; "itq": LSA, turned close to bits

    limits: ClassVar[Mapping[str, Limit]] = {
        **GradientHasher.limits,
        "batch_size": Limit(above=0, whole=True, optional=True),
        "neighbors": Limit(above=0, whole=True, optional=True),
        "trees": Limit(above=0, whole=True),
        "alpha": Limit(above=0),
        "sigma": Limit(above=0),
        "strength": Limit(below=1),
        "tau": Limit(above=0),
        "beta": Limit(optional=True),
        "word_dropout": Limit(below=1),
        "warmup": Limit(optional=True),
        "init_range": Limit(),
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

    @abstractmethod
    def _additions(self) -> Additions:
        """What the method adds to the paper's graph and objective."""

    def _check_size(self, docs: int) -> None:
        # Fewer documents than the usual neighbours are no corpus: fewer neighbours have to be asked for.
        check_neighbors(BY_SIZE["neighbors"].most if self.neighbors is None else self.neighbors, docs)

    def _objective(self, start: Start) -> TreeObjective:
        X, additions = start.data.X, self._additions()
        settings = TreeSettings(
            bits=self.n_bits,
            tau=self.tau,
            beta=self.chosen("beta"),
            correlation=self.correlation,
            neighbor_words=additions.neighbor_words,
            word_dropout=self.chosen("word_dropout"),
            refresh=max(1, round(additions.refresh * start.epochs)) if additions.refresh else 0,
            warmup=self._warmup(len(start.documents), start.epochs),
            init_range=self.init_range,
            start=self.start,
            threshold=self.threshold,
            batch=self.by_size("batch_size", X.shape[0]),
        )
        beside = self.graph_parts(X, start.data.lsa)
        share = start.data.share

        def new_edges(encoder: Encoder) -> Edges:
            return self._sample_edges(X, _with_means(beside, encoder, X), start)

        return TreeObjective(
            X,
            self._sample_edges(X, beside, start) if share is None or share.edges is None else share.edges,
            settings,
            generator=start.generator,
            new_edges=new_edges if additions.refresh else None,
            documents=start.documents,
        )

    def derived_parameters(self, docs: int) -> dict[str, float]:
        """Return what parameters that are None come to, for so many documents to train on."""
        warmup = {"warmup": self._warmup(docs, self._epochs(docs))} if self.warmup is None else {}
        return super().derived_parameters(docs) | warmup

    def _warmup(self, docs: int, epochs: int) -> float:
        """The epochs over which beta grows, as given or by the documents."""
        if self.warmup is not None:
            return self.warmup
        steps = math.ceil(docs / self.by_size("batch_size", docs))
        return max(WARMUP_EPOCHS, min(WARMUP_STEPS / steps, WARMUP_SHARE * epochs))

    @property
    def is_using_edges(self) -> bool:
        """Whether the objective has a term along edges at all."""
        return self.correlation != "none" or self._additions().neighbor_words > 0

    def graph_parts(self, X: sparse.csr_matrix, lsa: LSA) -> list[DensePart]:
        """Return what the first graph joins to the cosine of the rows."""
        return [DensePart(lsa.unit_values(X), 0.5)] if self._additions().graph_of_lsa else []

    def _sample_edges(self, X: sparse.csr_matrix, beside: list[DensePart], start: Start) -> Edges:
        if not self.is_using_edges:
            nothing = np.zeros(0, dtype=np.float32)
            return Edges(np.zeros((0, 2), dtype=np.int32), nothing, nothing)
        report = stage_callback(start.on_progress, "graph")
        found = nearest_neighbors(
            X,
            k=self.by_size("neighbors", X.shape[0]),
            dense_parts=beside,
            search=self.graph,
            rng=start.rng,
            on_progress=report,
        )
        start.data.graphs.append(found.summary)
        return self.draw_edges(found, rng=start.rng, on_progress=start.on_progress)

    def draw_edges(
        self, found: Neighbors, *, rng: np.random.Generator, on_progress: OnProgress | None
    ) -> Edges:
        """Draw forests of a neighbour graph and merge them to edges with their prior correlations."""
        merged = sample_edges(
            found.adjacency(),
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


def _with_means(beside: list[DensePart], encoder: Encoder, X: sparse.csr_matrix) -> list[DensePart]:
    """Give the means learnt so far their share of the similarity; what was there keeps the rest."""
    means = encoder.values(X)
    means -= means.mean(axis=0)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), np.finfo(np.float32).tiny)
    others = [DensePart(part.rows, part.weight * (1 - MEANS_SHARE)) for part in beside]
    return [*others, DensePart(means, MEANS_SHARE)]
