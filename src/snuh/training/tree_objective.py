r"""The tree-structured variational objective of SNUH: codes explain words and are correlated along forests.

The bound of the paper (Eq. 18 and appendix), with all divergences weighted by beta:

    L = sum_i ( E_q log p(x_i|z_i) - beta KL_i ) - beta sum_edges w_ij ( KL_ij - KL_i - KL_j )

| symbol | here |
|---|---|
| x_i, V | a feature row; the words of a document are the columns with a positive value |
| mu_i = sigmoid(W x_i / tau) | mean of q(z_i\|x_i), near 0 or 1, so that thresholding loses little |
| sigma_i = softplus(W' x_i) | standard deviation of q(z_i\|x_i) |
| gamma_ij | correlation of z_i and z_j under q, see `Correlation` |
| t_ij = lambda a_ij | `prior` correlation of an edge |
| w_ij | fraction of the forests that contain the edge |
| E, b | the word decoder |

The divergences are the closed forms of `kl`. A batch of b documents and b edges estimates the sums
(Algorithm 1) as means per document. Each document is paired with one of its d_i edges, drawn uniformly. The
term of that edge is weighted by d_i / 2, since every edge can be drawn from both ends:

    sum_edges w_ij f_ij = sum_i d_i / 2  E_{j ~ neighbours of i} w_ij f_ij

In a corpus of short documents the words weigh too little to outweigh the divergences, and the codes die. So
the terms of the words are multiplied by max(1, MIN_WORDS / mean number of words), as if a document repeated
its words until it had MIN_WORDS of them.

Three additions are not in the paper and off at 0: `neighbor_words` weights a term in which, on a sampled
edge, the code of j also explains the words of i with the same decoder; `word_dropout` hides that fraction of
a document's words from the encoder (never from the decoder's target) in each step; `refresh` rebuilds the
graph with the learnt means after that fraction of the epochs, and samples its edges again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor
from torch.nn.functional import softplus

from snuh.encoder import Encoder, Layer
from snuh.features.vectors import split_rows
from snuh.training.gradient import linear_warmup
from snuh.training.kl import best_correlation, edge_divergence, node_divergence
from snuh.training.layers import WordDecoder, sparse_linear, word_sets
from snuh.training.sparse_ops import SparseRows, take_rows
from snuh.training.spectral import distinct_rows, fit_principal, medians, rotate_to_bits

if TYPE_CHECKING:
    from snuh.training.tree_estimator import TreeHasher

Correlation = Literal["encoder", "optimum", "prior", "none"]
"""Where neighbours are correlated, and how gamma is computed.

encoder: in prior and posterior, gamma from the paper's correlated encoder (SNUH); optimum: the same with the
closed-form optimal gamma, which has no weights; prior: in the prior only, gamma = 0 (SNUH_prior); none: not
at all (SNUH_ind).
"""

MeansStart = Literal["random", "itq"]
"""How the weights of the means are initialised; itq: LSA rotated towards bits, good codes from the start."""

# Standard deviation of the initial logits of the means: with tau = 0.1, bits are fairly sure but can change.
ITQ_SPREAD, ITQ_ITERATIONS = 0.2, 50
MIN_WORDS = 50  # distinct words of a document for which beta is meant; Reuters has 54 on average, titles 5
MAX_CORRELATION = 1.0 - 1e-6  # of the correlated encoder: at 1 the divergence is infinite


@dataclass(frozen=True)
class Edges:
    """Edges between documents with their weights w_ij and prior correlations t_ij."""

    pairs: npt.NDArray[np.int32]  # (edges, 2)
    weight: npt.NDArray[np.float32]  # (edges,)
    prior: npt.NDArray[np.float32]  # (edges,)


@dataclass(frozen=True)
class TreeBatch:
    """A batch of documents, each with a neighbour drawn from its edges (itself if it has none)."""

    documents: npt.NDArray[np.int64]  # (b,)
    neighbors: npt.NDArray[np.int64]  # (b,), or (0,) if the corpus has no edges
    weight: Tensor  # (b,) d_i / 2 times w_ij
    prior: Tensor  # (b,)

    def __getitem__(self, part: slice) -> TreeBatch:
        """Return a smaller batch."""
        return TreeBatch(self.documents[part], self.neighbors[part], self.weight[part], self.prior[part])


class Neighborhoods:
    """The edges of every document, to draw from."""

    def __init__(self, edges: Edges, docs: int) -> None:
        starts, ends = edges.pairs.T
        source = np.concatenate([starts, ends])
        order = np.argsort(source, kind="stable")
        self._offsets = np.searchsorted(source[order], np.arange(docs + 1))
        self._neighbor = np.concatenate([ends, starts])[order].astype(np.int64)
        self._prior = np.tile(edges.prior, 2)[order]
        self._weight = np.tile(edges.weight, 2)[order]

    def draw(self, documents: npt.NDArray[np.int64], rng: np.random.Generator) -> TreeBatch:
        """Draw one edge of each document uniformly."""
        if not len(self._neighbor):
            empty = torch.zeros(0)
            return TreeBatch(documents, documents[:0], empty, empty)
        first = self._offsets[documents]
        degree = self._offsets[documents + 1] - first
        edge = np.where(degree > 0, first + (rng.random(len(documents)) * degree).astype(np.int64), 0)
        return TreeBatch(
            documents,
            np.where(degree > 0, self._neighbor[edge], documents),
            torch.from_numpy(0.5 * degree.astype(np.float32) * self._weight[edge]),
            torch.from_numpy(self._prior[edge]),
        )


@dataclass(frozen=True)
class JoinedInputs:
    """Joined rows in two parts: a document's words weigh less if its vector is read beside them."""

    words: sparse.csr_matrix  # unit rows, (documents, terms)
    word_scale: npt.NDArray[np.float32]  # (documents,), of the words in the joined row
    vectors: Tensor  # (documents, dims), scaled as in the joined row

    @classmethod
    def of(cls, X: sparse.csr_matrix, dims: int) -> JoinedInputs:
        """Take joined rows apart."""
        own = X[:, : X.shape[1] - dims]
        scale = np.sqrt(np.asarray(own.multiply(own).sum(axis=1), dtype=np.float32).ravel())
        return cls(split_rows(X, dims).words, scale, torch.from_numpy(X[:, X.shape[1] - dims :].toarray()))

    def scaled_words(
        self, words: SparseRows, documents: npt.NDArray[np.int64], has_vector: npt.NDArray[np.bool_]
    ) -> SparseRows:
        """Scale the unit rows of documents as in their joined rows, where the vector is read too."""
        scale = np.where(has_vector, self.word_scale[documents], np.float32(1))
        return replace(words, data=words.data * np.repeat(scale, np.diff(words.indptr)))


class TreeObjective:
    """The weights of the model and the loss of a batch.

    Args:
        method: the estimator, whose parameters are used.
        X: unit rows to train on; with vectors, words joined with them.
        edges: between these rows.
        generator: for initial weights, noise and dropout.
        rebuild_edges: returns new edges given the current encoder, called before `refresh_epoch`.
        documents: rows to draw batches from; all if not given.
        vector_dims: the last columns of X that hold a vector.
    """

    def __init__(
        self,
        method: TreeHasher,
        X: sparse.csr_matrix,
        edges: Edges,
        *,
        generator: torch.Generator,
        rebuild_edges: Callable[[Encoder], Edges] | None = None,
        documents: npt.NDArray[np.int64] | None = None,
        vector_dims: int = 0,
    ) -> None:
        self.method, self.X, self.generator = method, X, generator
        self.joined = JoinedInputs.of(X, vector_dims) if vector_dims else None
        self.word_rows = X if self.joined is None else self.joined.words
        self.documents = np.arange(X.shape[0]) if documents is None else documents
        self.neighborhoods = Neighborhoods(edges, X.shape[0])
        self.rebuild_edges = rebuild_edges

        docs = len(self.documents)
        self.batch_size = int(method.resolve("batch_size", docs))
        self.beta = method.resolve("beta", docs)
        self.warmup = method.resolve("warmup", docs)
        self.word_dropout = method.resolve("word_dropout", docs)
        self.word_weight = word_weight(self.word_rows)
        self.refresh_epoch = (
            max(1, round(method.refresh * method.resolve("epochs", docs))) if method.refresh else None
        )

        bits = method.n_bits
        outputs = bits * (3 if method.correlation == "encoder" else 2)
        # One matrix for mean, deviation and correlation, so that one sparse product computes them all.
        self.weight = self._uniform(self.word_rows.shape[1], outputs)
        self.vector_weight = self._uniform(vector_dims, outputs)
        self.bias = self._uniform(outputs)
        self.words = WordDecoder(
            self.word_rows, bits, documents=self.batch_size, init_range=method.init_range, generator=generator
        )
        self._gradient_buffer = torch.empty_like(self.weight)
        self._balance_bits()
        self.parameters = [self.weight.requires_grad_(), self.bias.requires_grad_(), *self.words.parameters]
        if self.joined is not None:
            self.parameters.append(self.vector_weight.requires_grad_())

    def _uniform(self, *shape: int) -> Tensor:
        size = self.method.init_range
        return torch.empty(shape).uniform_(-size, size, generator=self.generator)

    def _balance_bits(self) -> None:
        """Start every bit with its threshold at the median of the training documents.

        If all means are on one side of the threshold, all codes are equal, the decoder learns to ignore them,
        and the prior, centred at 0, keeps them there: dead codes.
        """
        bits = self.method.n_bits
        if self.method.start == "itq":
            directions = self._itq_directions()
            terms = len(self.weight)
            self.weight[:, :bits], self.vector_weight[:, :bits] = directions[:terms], directions[terms:]
        logits = self.X @ self._mean_weight().numpy()
        self.bias[:bits] = -torch.from_numpy(np.median(logits, axis=0))

    def _itq_directions(self) -> Tensor:
        bits, seed = self.method.n_bits, self.generator.initial_seed()
        principal = fit_principal(self.X, dims=bits, seed=seed)
        rng = np.random.default_rng(seed)
        rotated = rotate_to_bits(principal, self.X, bits=bits, iterations=ITQ_ITERATIONS, rng=rng)
        directions = torch.from_numpy(rotated.directions).float()
        return directions * (ITQ_SPREAD / max(float(rotated.values(self.X).std()), 1e-6))

    def _mean_weight(self) -> Tensor:
        """Return the weights of the means, (inputs, bits)."""
        return torch.cat([self.weight.detach(), self.vector_weight.detach()])[:, : self.method.n_bits]

    @property
    def steps(self) -> int:
        """Batches in an epoch: each document once."""
        return math.ceil(len(self.documents) / self.batch_size)

    def batches(self, rng: np.random.Generator, *, epoch: int) -> Iterator[TreeBatch]:
        """Draw every document once, each with one of its edges."""
        if self.rebuild_edges is not None and epoch == self.refresh_epoch:
            self.neighborhoods = Neighborhoods(self.rebuild_edges(self.encoder()), self.X.shape[0])
        drawn = self.neighborhoods.draw(rng.permutation(self.documents), rng)
        for start in range(0, len(drawn.documents), self.batch_size):
            yield drawn[start : start + self.batch_size]

    def loss(self, batch: TreeBatch, *, epoch: float) -> Mapping[str, Tensor]:
        """The negative bound of a batch by named parts, each a mean per document."""
        docs, has_neighbors = len(batch.documents), len(batch.neighbors) > 0
        documents = np.concatenate([batch.documents, batch.neighbors])
        rows = take_rows(self.word_rows, documents)
        mu, sigma, pair = self._posterior(rows, documents)
        mu_i, mu_j = mu[:docs], mu[docs:]
        sigma_i, sigma_j = sigma[:docs], sigma[docs:]
        beta = self.beta * linear_warmup(epoch, self.warmup)

        # E_q log p(x_i|z), by one sample. The decoder dominates the cost of a step, so with neighbour words
        # the first half of the batch is explained by the documents' own codes, the rest by their neighbours'.
        own = (docs + 1) // 2 if self.method.neighbor_words and has_neighbors else docs
        noise = torch.randn(mu_i.shape, generator=self.generator)
        z = torch.cat([mu_i[:own], mu_j[own:]]) + torch.cat([sigma_i[:own], sigma_j[own:]]) * noise
        words = self.word_weight * self.words.log_likelihood(z, word_sets(rows, documents=docs))
        parts = {"words": -words[:own].mean()}
        if own < docs:
            parts["neighbor words"] = -self.method.neighbor_words * words[own:].mean()

        # beta KL_i
        parts["nodes"] = beta * node_divergence(mu_i, sigma_i).sum(dim=1).mean()

        # beta w_ij (KL_ij - KL_i - KL_j)
        if self.method.correlation != "none" and has_neighbors:
            t = batch.prior[:, None]
            gamma = self._correlation(sigma_i, sigma_j, pair[:docs] + pair[docs:], prior=t)
            edges = edge_divergence(mu_i, sigma_i, mu_j, sigma_j, prior=t, posterior=gamma).sum(dim=1)
            parts["edges"] = beta * (batch.weight * edges).mean()
        return parts

    def _posterior(
        self, words: SparseRows, documents: npt.NDArray[np.int64]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return mu, sigma (rows, bits) and the input of the correlated encoder (empty if there is none).

        The encoder reads the words that are not hidden, and the vectors that are not dropped.
        """
        by_vectors = None
        if self.joined is not None:
            kept = torch.rand(len(documents), generator=self.generator) >= self.method.vector_dropout
            words = self.joined.scaled_words(words, documents, kept.numpy())
            by_vectors = (self.joined.vectors[documents] * kept[:, None]) @ self.vector_weight
        words = hide_words(words, self.word_dropout, self.generator)
        outputs = sparse_linear(words, self.weight, gradient=self._gradient_buffer) + self.bias
        if by_vectors is not None:
            outputs = outputs + by_vectors
        bits = self.method.n_bits
        mean, deviation, pair = torch.tensor_split(outputs, [bits, 2 * bits], dim=1)
        return torch.sigmoid(mean / self.method.tau), softplus(deviation), pair

    def _correlation(self, sigma_i: Tensor, sigma_j: Tensor, pair: Tensor, *, prior: Tensor) -> Tensor:
        """Return gamma of each edge and bit."""
        if self.method.correlation == "encoder":
            return MAX_CORRELATION * torch.tanh(pair / 2)
        if self.method.correlation == "optimum":
            return best_correlation(sigma_i, sigma_j, prior=prior)
        return torch.zeros_like(sigma_i)

    def encoder(self) -> Encoder:
        """Return a copy of the map of the means, sigmoid(W x / tau), with thresholds."""
        bits, tau = self.method.n_bits, self.method.tau
        weight, bias = self._mean_weight() / tau, self.bias.detach()[:bits] / tau
        layer = Layer(weight.numpy(), bias.numpy(), "sigmoid")
        encoder = Encoder((layer,), np.full(bits, 0.5, dtype=np.float32))
        if self.method.threshold == "half":
            return encoder
        return replace(encoder, threshold=medians(encoder.values(distinct_rows(self.X))))

    def decoder(self) -> npt.NDArray[np.float32]:
        """Return a copy of the word embedding E (terms, bits)."""
        return self.words.array()


def mean_words(X: sparse.csr_matrix) -> float:
    """Return the mean number of distinct words of the documents that have any."""
    words, documents = int((X.data > 0).sum()), int((np.diff(X.indptr) > 0).sum())
    return words / max(1, documents)


def word_weight(X: sparse.csr_matrix) -> float:
    """Return max(1, MIN_WORDS / mean number of words)."""
    return max(1.0, MIN_WORDS / max(1.0, mean_words(X)))


def hide_words(rows: SparseRows, fraction: float, generator: torch.Generator) -> SparseRows:
    """Set a random fraction of the values to 0 and scale up the others to keep the expectation."""
    if not fraction:
        return rows
    is_visible = torch.rand(len(rows.data), generator=generator).numpy() >= fraction
    return replace(rows, data=rows.data * (is_visible / np.float32(1.0 - fraction)))
