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

A batch of b documents and b edges estimates the sums (Algorithm 1): the mean over the documents plus
|E| / N times the mean over the edges, so that the loss is a mean per document.

Three additions that the paper does not have, all off at 0: `neighbor_words` weighs a term by which, on a
sampled edge, the code of j must also explain the words of i with the same decoder; `word_dropout` hides that
share of a document's words from the encoder (never from the decoder's target) in each step; before epoch
`refresh` the edges are drawn anew from a graph that knows the means learnt so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor
from torch.nn.functional import softplus

from snuh.encoder import Encoder, Layer
from snuh.methods.gaussians import best_correlation, edge_divergence, node_divergence
from snuh.methods.layers import DecoderArrays, sparse_linear, word_log_likelihood, word_sets

Correlation = Literal["encoder", "optimum", "prior", "none"]
"""Where documents are correlated, and from where gamma comes.

encoder: in prior and posterior, gamma from the paper's correlated encoder (SNUH); optimum: the same with the
closed-form best gamma, which needs no weights; prior: in the prior alone, gamma = 0 (SNUH_prior); none: not
at all (SNUH_ind).
"""

CLOSE_TO_ONE = 1.0 - 1e-6


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
    """Rows of a batch of documents, and the edges drawn with it."""

    documents: npt.NDArray[np.int64]  # (b,)
    pairs: npt.NDArray[np.int32]  # (b, 2), in random direction
    weight: Tensor  # (b,)
    prior: Tensor  # (b, 1)


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
        self.X, self.edges, self.settings, self.generator = X, edges, settings, generator
        self.new_edges = new_edges
        terms, bits = X.shape[1], settings.bits
        outputs = bits * (3 if settings.correlation == "encoder" else 2)
        # One matrix for mean, deviation and correlation, so that one sparse product makes them all.
        self.weight = self._uniform(terms, outputs)
        self.bias = self._uniform(outputs)
        self.embedding = self._uniform(terms, bits)
        self.word_bias = _log_frequencies(X)
        # Arrays that every step works in; a batch explains one document more where its halves are odd.
        self._weight_gradient = torch.empty_like(self.weight)
        logits = torch.empty((settings.batch + 1, terms))
        self._decoder_arrays = DecoderArrays(logits, torch.empty_like(self.embedding))
        self._balance_bits()
        self.parameters = [self.weight, self.bias, self.embedding, self.word_bias]
        for parameter in self.parameters:
            parameter.requires_grad_()

    def _uniform(self, *shape: int) -> Tensor:
        size = self.settings.init_range
        return torch.empty(shape).uniform_(-size, size, generator=self.generator)

    def _balance_bits(self) -> None:
        """Start every bit at the middle of the training documents.

        With all means on one side of the threshold every code is equal, the decoder learns to do without
        them, and the prior, centred at 0, keeps them there: dead codes.
        """
        bits = self.settings.bits
        logits = self.X @ self.weight[:, :bits].numpy()
        self.bias[:bits] = -torch.from_numpy(np.median(logits, axis=0))

    @property
    def steps(self) -> int:
        """Batches in an epoch: each document once."""
        docs: int = self.X.shape[0]
        return math.ceil(docs / self.settings.batch)

    def batches(self, rng: np.random.Generator, *, epoch: int) -> Iterator[TreeBatch]:
        """Draw every document once, with as many edges, each in random direction."""
        if self.new_edges is not None and epoch == self.settings.refresh > 0:
            self.edges = self.new_edges(self.encoder())
        documents = rng.permutation(self.X.shape[0])
        edges = rng.permutation(len(self.edges.pairs))
        edges = np.resize(edges, len(documents)) if len(edges) else edges
        for start in range(0, len(documents), self.settings.batch):
            part = slice(start, start + self.settings.batch)
            drawn = edges[part]
            turned = rng.random(len(drawn)) < 0.5
            pairs = self.edges.pairs[drawn]
            pairs[turned] = pairs[turned, ::-1]
            yield TreeBatch(
                documents[part],
                pairs,
                torch.from_numpy(self.edges.weight[drawn]),
                torch.from_numpy(self.edges.prior[drawn])[:, None],
            )

    def posterior(self, rows: sparse.csr_matrix) -> Posterior:
        """q(z|x) for feature rows (the architecture table's encoders)."""
        bits = self.settings.bits
        outputs = sparse_linear(rows, self.weight, gradient=self._weight_gradient) + self.bias
        widths = [bits, bits, outputs.shape[1] - 2 * bits]
        mean, deviation, gamma_part = torch.split(outputs, widths, dim=1)
        return Posterior(torch.sigmoid(mean / self.settings.tau), softplus(deviation), gamma_part)

    def loss(self, batch: TreeBatch, *, epoch: float) -> Mapping[str, Tensor]:
        """The negative bound of a batch by named parts, each a mean per document."""
        docs, drawn = len(batch.documents), len(batch.pairs)
        rows = self.X[np.concatenate([batch.documents, batch.pairs[:, 0], batch.pairs[:, 1]])]
        q = self.posterior(self._hide_words(rows))
        node, first, second = q.split([docs, drawn, drawn])
        beta = self.settings.beta * self._warmth(epoch)

        parts = self._explain(node, second, rows)
        parts["nodes"] = beta * node_divergence(node.mu, node.sigma).sum() / docs
        if self.settings.correlation != "none" and drawn:
            by_edge = self._edge_terms(first, second, batch.prior).sum(dim=1)
            edges_per_document = len(self.edges.pairs) / self.X.shape[0]
            parts["edges"] = beta * edges_per_document * (batch.weight * by_edge).sum() / drawn
        return parts

    def _warmth(self, epoch: float) -> float:
        return min(1.0, epoch / self.settings.warmup) if self.settings.warmup else 1.0

    def _hide_words(self, rows: sparse.csr_matrix) -> sparse.csr_matrix:
        share = self.settings.word_dropout
        if not share:
            return rows
        kept = torch.rand(rows.nnz, generator=self.generator).numpy() >= share
        data = rows.data * (kept / np.float32(1.0 - share))
        return sparse.csr_matrix((data, rows.indices, rows.indptr), shape=rows.shape)

    def _explain(self, node: Posterior, second: Posterior, rows: sparse.csr_matrix) -> dict[str, Tensor]:
        """-E_q log p(x_i|z_i), and with neighbours also -E_q log p(x_i|z_j), by one sample z each.

        With neighbours, half of the batch estimates each of the two means: the decoder is what a step costs.
        """
        docs, drawn = len(node.mu), len(second.mu)
        if not self.settings.neighbor_words or not drawn:
            return {"words": -self._log_likelihood(node.mu, node.sigma, rows[:docs]).mean()}
        own, others = (docs + 1) // 2, (drawn + 1) // 2
        explained = self._log_likelihood(
            torch.cat([node.mu[:own], second.mu[:others]]),
            torch.cat([node.sigma[:own], second.sigma[:others]]),
            rows[np.r_[:own, docs : docs + others]],
        )
        weight = self.settings.neighbor_words
        return {"words": -explained[:own].mean(), "neighbor words": -weight * explained[own:].mean()}

    def _log_likelihood(self, mu: Tensor, sigma: Tensor, rows: sparse.csr_matrix) -> Tensor:
        z = mu + sigma * torch.randn(mu.shape, generator=self.generator)
        lent = self._decoder_arrays if len(z) <= len(self._decoder_arrays.logits) else None
        return word_log_likelihood(z, self.embedding, self.word_bias, word_sets(rows), lent=lent)

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
        return Encoder((layer,), np.median(encoder.values(self.X), axis=0).astype(np.float32))


def _log_frequencies(X: sparse.csr_matrix) -> Tensor:
    """The decoder's bias at the start: each word as likely as it is in the corpus, whatever the code.

    The bits then have to explain only what is particular about a document, from the first step on.
    """
    present = np.bincount(X.indices[X.data > 0], minlength=X.shape[1])
    return torch.from_numpy(np.log((present + 1.0) / X.shape[0])).float()
