r"""The tree-structured variational objective: words explained by codes, codes correlated along forests.

The bound of the paper (Eq. 18 and appendix), with every divergence weighed by beta:

    L = sum_i ( E_q log p(x_i|z_i) - beta KL_i ) - beta sum_edges w_ij ( KL_ij - KL_i - KL_j )

| symbol | here |
|---|---|
| x_i, V | a row of features; its words are the columns with a positive value |
| mu_i = sigmoid(W x_i / tau) | mean of q(z_i\|x_i), near 0 or 1, so that thresholding loses little |
| sigma_i = softplus(W' x_i) | its deviation |
| gamma_ij | correlation of z_i and z_j under q, see `Correlation` |
| t_ij = lambda a_ij | `prior` correlation of an edge |
| w_ij | share of the forests that contain the edge |
| E, b | the word decoder |

A batch of b documents and b edges estimates the sums (Algorithm 1) as means per document. Each document
brings one of its d_i edges; that edge's term then counts d_i / 2 times, since every edge can be drawn from
both ends:

    sum_edges w_ij f_ij = sum_i d_i / 2  E_{j ~ neighbours of i} w_ij f_ij

Three additions that the paper does not have, all off at 0: `neighbor_words` weighs a term by which, on a
sampled edge, the code of j must also explain the words of i with the same decoder; `word_dropout` hides that
share of a document's words from the encoder (never from the decoder's target) in each step; before epoch
`refresh` the edges are drawn anew from a graph that knows the means learnt so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from snuh.encoder import Encoder, Layer
from snuh.training.bits import distinct_rows, medians, rise
from snuh.training.layers import WordDecoder, sparse_linear, word_sets
from snuh.training.sparse_ops import SparseRows, take_rows
from snuh.training.spectral import fit_principal, turn_to_bits
from snuh.training.tree_terms import CORRELATIONS, TermsOf, tree_terms

Correlation = Literal["encoder", "optimum", "prior", "none"]
"""Where documents are correlated, and from where gamma comes.

encoder: in prior and posterior, gamma from the paper's correlated encoder (SNUH); optimum: the same with the
closed-form best gamma, which needs no weights; prior: in the prior alone, gamma = 0 (SNUH_prior); none: not
at all (SNUH_ind).
"""

MeansStart = Literal["random", "itq"]
"""From where the means start; itq: LSA, turned close to bits: good codes from the first step on."""

# Deviation of the means' inputs at the start: with tau = 0.1 the bits are fairly sure, and can still change.
ITQ_SPREAD, ITQ_ITERATIONS = 0.2, 50


@dataclass(frozen=True)
class TreeSettings:
    """The numbers of the objective that the paper names, and how the codes start and end."""

    bits: int
    tau: float
    beta: float
    correlation: Correlation
    neighbor_words: float
    word_dropout: float
    refresh: int  # epoch before which the edges are drawn anew, 0 for never
    warmup: float  # epochs over which beta grows from 0
    init_range: float  # weights start uniform within +- this
    start: MeansStart  # of the means' weights
    threshold: Literal["half", "median"]
    batch: int


@dataclass(frozen=True)
class Edges:
    """Edges between documents with their weights w_ij and prior correlations t_ij."""

    pairs: npt.NDArray[np.int32]  # (edges, 2)
    weight: npt.NDArray[np.float32]  # (edges,)
    prior: npt.NDArray[np.float32]  # (edges,)


@dataclass(frozen=True)
class TreeBatch:
    """Rows of a batch of documents, each with a neighbour drawn from its edges (itself where it has none)."""

    documents: npt.NDArray[np.int64]  # (b,)
    neighbors: npt.NDArray[np.int64]  # (b,), or none at all where there are no edges
    weight: Tensor  # (b,) d_i / 2 times w_ij
    prior: Tensor  # (b,)

    def part(self, chosen: slice) -> TreeBatch:
        """Return a smaller batch of some of its documents."""
        return TreeBatch(
            self.documents[chosen], self.neighbors[chosen], self.weight[chosen], self.prior[chosen]
        )


class Neighborhoods:
    """The edges of every document, to draw from."""

    def __init__(self, edges: Edges, docs: int) -> None:
        starts, ends = edges.pairs.T
        source = np.concatenate([starts, ends])
        order = np.argsort(source, kind="stable")
        self._first = np.searchsorted(source[order], np.arange(docs + 1))
        self._other = np.concatenate([ends, starts])[order].astype(np.int64)
        self._prior = np.tile(edges.prior, 2)[order]
        self._weight = np.tile(edges.weight, 2)[order]

    def draw(self, documents: npt.NDArray[np.int64], rng: np.random.Generator) -> TreeBatch:
        """Draw one edge of each document, all of its edges being equally likely."""
        if not len(self._other):
            nothing = torch.zeros(0)
            return TreeBatch(documents, documents[:0], nothing, nothing)
        first = self._first[documents]
        degree = self._first[documents + 1] - first
        place = np.where(degree > 0, first + (rng.random(len(documents)) * degree).astype(np.int64), 0)
        return TreeBatch(
            documents,
            np.where(degree > 0, self._other[place], documents),
            torch.from_numpy(0.5 * degree.astype(np.float32) * self._weight[place]),
            torch.from_numpy(self._prior[place]),
        )


class TreeObjective:
    """The parameters of the model and the loss of a batch."""

    def __init__(
        self,
        X: sparse.csr_matrix,
        edges: Edges,
        settings: TreeSettings,
        *,
        generator: torch.Generator,
        new_edges: Callable[[Encoder], Edges] | None = None,
        documents: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self.X, self.settings, self.generator = X, settings, generator
        self.documents = np.arange(X.shape[0]) if documents is None else documents  # drawn once an epoch
        self.neighborhoods = Neighborhoods(edges, X.shape[0])
        self.new_edges = new_edges
        self._correlation = CORRELATIONS[settings.correlation]
        terms, bits = X.shape[1], settings.bits
        outputs = bits * (3 if settings.correlation == "encoder" else 2)
        # One matrix for mean, deviation and correlation, so that one sparse product makes them all.
        self.weight = self._uniform(terms, outputs)
        self.bias = self._uniform(outputs)
        self.words = WordDecoder(
            X, bits, documents=settings.batch, init_range=settings.init_range, generator=generator
        )
        self._weight_gradient = torch.empty_like(self.weight)  # an array that every step works in
        self._balance_bits()
        self.parameters = [self.weight.requires_grad_(), self.bias.requires_grad_(), *self.words.parameters]

    def _uniform(self, *shape: int) -> Tensor:
        size = self.settings.init_range
        return torch.empty(shape).uniform_(-size, size, generator=self.generator)

    def _balance_bits(self) -> None:
        """Start every bit at the middle of the training documents.

        With all means on one side of the threshold every code is equal, the decoder learns to do without
        them, and the prior, centred at 0, keeps them there: dead codes.
        """
        bits = self.settings.bits
        if self.settings.start == "itq":
            self.weight[:, :bits] = self._itq_directions()
        logits = self.X @ self.weight[:, :bits].numpy()
        self.bias[:bits] = -torch.from_numpy(np.median(logits, axis=0))

    def _itq_directions(self) -> Tensor:
        rng = np.random.default_rng(self.generator.initial_seed())
        found = fit_principal(self.X, dims=self.settings.bits, seed=self.generator.initial_seed())
        turned = turn_to_bits(found, self.X, bits=self.settings.bits, iterations=ITQ_ITERATIONS, rng=rng)
        directions = torch.from_numpy(turned.directions).float()
        return directions * (ITQ_SPREAD / max(float(turned.values(self.X).std()), 1e-6))

    @property
    def steps(self) -> int:
        """Batches in an epoch: each document once."""
        return math.ceil(len(self.documents) / self.settings.batch)

    def batches(self, rng: np.random.Generator, *, epoch: int) -> Iterator[TreeBatch]:
        """Draw every document once, each with one of its edges."""
        if self.new_edges is not None and epoch == self.settings.refresh > 0:
            self.neighborhoods = Neighborhoods(self.new_edges(self.encoder()), self.X.shape[0])
        drawn = self.neighborhoods.draw(rng.permutation(self.documents), rng)
        for start in range(0, len(drawn.documents), self.settings.batch):
            yield drawn.part(slice(start, start + self.settings.batch))

    def loss(self, batch: TreeBatch, *, epoch: float) -> Mapping[str, Tensor]:
        """The negative bound of a batch by named parts, each a mean per document.

        With neighbour words, half of the batch estimates each of the two means over words: the decoder is
        what a step costs.
        """
        docs, has_neighbors = len(batch.documents), len(batch.neighbors) > 0
        rows = take_rows(self.X, np.concatenate([batch.documents, batch.neighbors]))
        outputs = sparse_linear(self._hide_words(rows), self.weight, gradient=self._weight_gradient)
        neighbor_words = self.settings.neighbor_words if has_neighbors else 0.0
        own = (docs + 1) // 2 if neighbor_words else docs
        noise = torch.randn((docs, self.settings.bits), generator=self.generator)
        z, nodes, edges = tree_terms(
            outputs,
            self.bias,
            TermsOf(batch.weight, batch.prior, noise, own, self.settings.tau, self._correlation),
        )
        explained = self.words.log_likelihood(z, word_sets(rows, documents=docs))
        parts = {"words": -explained[:own].mean()}
        if own < docs:
            parts["neighbor words"] = -neighbor_words * explained[own:].mean()
        beta = self.settings.beta * rise(epoch, self.settings.warmup)
        parts["nodes"] = beta / docs * nodes
        if self.settings.correlation != "none" and has_neighbors:
            parts["edges"] = beta / docs * edges
        return parts

    def _hide_words(self, rows: SparseRows) -> SparseRows:
        share = self.settings.word_dropout
        if not share:
            return rows
        kept = torch.rand(len(rows.data), generator=self.generator).numpy() >= share
        return replace(rows, data=rows.data * (kept / np.float32(1.0 - share)))

    def encoder(self) -> Encoder:
        """The mean's map sigmoid(W x / tau) and the thresholds, as arrays of their own."""
        bits, tau = self.settings.bits, self.settings.tau
        weight, bias = self.weight.detach()[:, :bits] / tau, self.bias.detach()[:bits] / tau
        layer = Layer(weight.numpy(), bias.numpy(), "sigmoid")
        encoder = Encoder((layer,), np.full(bits, 0.5, dtype=np.float32))
        if self.settings.threshold == "half":
            return encoder
        return replace(encoder, threshold=medians(encoder.values(distinct_rows(self.X))))

    def decoder(self) -> npt.NDArray[np.float32]:
        """The word embedding E (terms, bits) as it is now, as an array of its own."""
        return self.words.array()
