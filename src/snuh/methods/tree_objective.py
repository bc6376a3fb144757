"""The tree-structured variational objective: words explained by codes, codes correlated along forests.

The bound of the paper (Eq. 18 and appendix), with every divergence weighed by beta:

    L = sum_i ( E_q log p(x_i|z_i) - beta KL_i ) - beta sum_edges w_ij ( KL_ij - KL_i - KL_j )

| symbol | here |
|---|---|
| x_i, V | a row of features; its words are the columns with a positive value |
| mu_i = sigmoid(W x_i / tau) | `Posterior.mu`, near 0 or 1, so that thresholding loses little |
| sigma_i = softplus(W' x_i) | `Posterior.sigma` |
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
from torch.nn.functional import softplus

from snuh.encoder import Encoder, Layer
from snuh.methods.annealing import rise
from snuh.methods.decoder import WordDecoder
from snuh.methods.gaussians import best_correlation, edge_divergence, node_divergence
from snuh.methods.layers import WordSets, sparse_linear, word_sets
from snuh.methods.principal import fit_principal, turn_to_bits
from snuh.methods.thresholds import medians

Correlation = Literal["encoder", "optimum", "prior", "none"]
"""Where documents are correlated, and from where gamma comes.

encoder: in prior and posterior, gamma from the paper's correlated encoder (SNUH); optimum: the same with the
closed-form best gamma, which needs no weights; prior: in the prior alone, gamma = 0 (SNUH_prior); none: not
at all (SNUH_ind).
"""

MeansStart = Literal["random", "itq"]
"""From where the means start; itq: LSA, turned close to bits: good codes from the first step on."""

CLOSE_TO_ONE = 1.0 - 1e-6
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
    prior: Tensor  # (b, 1)


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
            return TreeBatch(documents, documents[:0], nothing, nothing[:, None])
        first = self._first[documents]
        degree = self._first[documents + 1] - first
        place = np.where(degree > 0, first + (rng.random(len(documents)) * degree).astype(np.int64), 0)
        return TreeBatch(
            documents,
            np.where(degree > 0, self._other[place], documents),
            torch.from_numpy(0.5 * degree.astype(np.float32) * self._weight[place]),
            torch.from_numpy(self._prior[place])[:, None],
        )


@dataclass(frozen=True)
class Posterior:
    """q(z|x) of some documents, and their share of the correlated encoder's sum."""

    mu: Tensor  # (docs, bits)
    sigma: Tensor  # (docs, bits)
    gamma_part: Tensor  # (docs, bits) or (docs, 0)

    def split(self, sizes: list[int]) -> list[Posterior]:
        """Cut into parts of these many documents (in one operation: slices are slow to differentiate)."""
        parts = (torch.split(values, sizes) for values in (self.mu, self.sigma, self.gamma_part))
        return [Posterior(*part) for part in zip(*parts, strict=True)]


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
    ) -> None:
        self.X, self.settings, self.generator = X, settings, generator
        self.neighborhoods = Neighborhoods(edges, X.shape[0])
        self.new_edges = new_edges
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
        docs: int = self.X.shape[0]
        return math.ceil(docs / self.settings.batch)

    def batches(self, rng: np.random.Generator, *, epoch: int) -> Iterator[TreeBatch]:
        """Draw every document once, each with one of its edges."""
        if self.new_edges is not None and epoch == self.settings.refresh > 0:
            self.neighborhoods = Neighborhoods(self.new_edges(self.encoder()), self.X.shape[0])
        documents = rng.permutation(self.X.shape[0])
        for start in range(0, len(documents), self.settings.batch):
            yield self.neighborhoods.draw(documents[start : start + self.settings.batch], rng)

    def posterior(self, rows: sparse.csr_matrix) -> Posterior:
        """q(z|x) for feature rows (the architecture table's encoders)."""
        bits = self.settings.bits
        outputs = sparse_linear(rows, self.weight, gradient=self._weight_gradient) + self.bias
        widths = [bits, bits, outputs.shape[1] - 2 * bits]
        mean, deviation, gamma_part = torch.split(outputs, widths, dim=1)
        return Posterior(torch.sigmoid(mean / self.settings.tau), softplus(deviation), gamma_part)

    def loss(self, batch: TreeBatch, *, epoch: float) -> Mapping[str, Tensor]:
        """The negative bound of a batch by named parts, each a mean per document."""
        docs = len(batch.documents)
        rows = self.X[np.concatenate([batch.documents, batch.neighbors])]
        q = self.posterior(self._hide_words(rows))
        node, other = q.split([docs, len(batch.neighbors)])
        beta = self.settings.beta * rise(epoch, self.settings.warmup)

        parts = self._explain(node, other, word_sets(rows[:docs]))
        parts["nodes"] = beta * node_divergence(node.mu, node.sigma).sum() / docs
        if self.settings.correlation != "none" and len(batch.neighbors):
            by_edge = self._edge_terms(node, other, batch.prior).sum(dim=1)
            parts["edges"] = beta * torch.dot(batch.weight, by_edge) / docs
        return parts

    def _hide_words(self, rows: sparse.csr_matrix) -> sparse.csr_matrix:
        share = self.settings.word_dropout
        if not share:
            return rows
        kept = torch.rand(rows.nnz, generator=self.generator).numpy() >= share
        data = rows.data * (kept / np.float32(1.0 - share))
        return sparse.csr_matrix((data, rows.indices, rows.indptr), shape=rows.shape)

    def _explain(self, node: Posterior, other: Posterior, words: WordSets) -> dict[str, Tensor]:
        """-E_q log p(x_i|z_i), and with neighbours also -E_q log p(x_i|z_j), by one sample z each.

        With neighbours, half of the batch estimates each of the two means: the decoder is what a step costs.
        """
        weight = self.settings.neighbor_words
        if not weight or not len(other.mu):
            return {"words": -self._log_likelihood(node.mu, node.sigma, words).mean()}
        own = (len(node.mu) + 1) // 2
        mu, sigma = (
            torch.cat([of_node[:own], of_other[own:]])
            for of_node, of_other in ((node.mu, other.mu), (node.sigma, other.sigma))
        )
        explained = self._log_likelihood(mu, sigma, words)
        parts = {"words": -explained[:own].mean()}
        if own < len(explained):
            parts["neighbor words"] = -weight * explained[own:].mean()
        return parts

    def _log_likelihood(self, mu: Tensor, sigma: Tensor, words: WordSets) -> Tensor:
        z = mu + sigma * torch.randn(mu.shape, generator=self.generator)
        return self.words.log_likelihood(z, words)

    def _edge_terms(self, first: Posterior, second: Posterior, prior: Tensor) -> Tensor:
        """KL_ij - KL_i - KL_j of each edge and bit."""
        if self.settings.correlation == "encoder":
            # f(x_i, x_j) averaged over both orders is one linear map of x_i + x_j, so gamma has no order.
            gamma = CLOSE_TO_ONE * torch.tanh((first.gamma_part + second.gamma_part) / 2)
        elif self.settings.correlation == "optimum":
            # At the optimum the derivative by gamma is zero: no gradient needs to pass through it.
            gamma = best_correlation(first.sigma.detach(), second.sigma.detach(), prior=prior)
        else:
            gamma = torch.zeros_like(first.mu)
        return edge_divergence(first.mu, first.sigma, second.mu, second.sigma, prior=prior, posterior=gamma)

    def encoder(self) -> Encoder:
        """The mean's map sigmoid(W x / tau) and the thresholds, as arrays of their own."""
        bits, tau = self.settings.bits, self.settings.tau
        weight, bias = self.weight.detach()[:, :bits] / tau, self.bias.detach()[:bits] / tau
        layer = Layer(weight.numpy(), bias.numpy(), "sigmoid")
        encoder = Encoder((layer,), np.full(bits, 0.5, dtype=np.float32))
        if self.settings.threshold == "half":
            return encoder
        return replace(encoder, threshold=medians(encoder.values(self.X)))

    def decoder(self) -> npt.NDArray[np.float32]:
        """The word embedding E (terms, bits) as it is now, as an array of its own."""
        return self.words.array()
