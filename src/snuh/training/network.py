"""Base of the methods whose encoder is a `Network`: parameters, batches, the encoder."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from snuh.codes import pack
from snuh.encoder import Activation, Encoder, Layer
from snuh.index import nearest
from snuh.progress import stage_callback
from snuh.training.estimator import Range, check_neighbors
from snuh.training.gradient import GradientHasher, Start, linear_warmup
from snuh.training.layers import WordDecoder, sparse_linear
from snuh.training.spectral import distinct_rows, medians, spectral_bits

# The encoder network of the deep methods: a sparse first layer, ReLU layers, and several heads.

LINEAR_RANGE, SPARSE_RANGE = 0.02, 0.1  # initial weights of the sparse layer are uniform within +- this


class Network:
    """Maps sparse rows to several named outputs, with ReLU hidden layers or none (a linear map).

    Args:
        terms: columns of the rows.
        hidden: units of each hidden layer.
        depth: number of hidden layers, 0 for a linear map.
        heads: the length of each output; the first is the code.
        dropout: fraction of the hidden units dropped in a step.
        generator: for initial weights and dropout.
        importance: a trained factor for each term, applied to the rows.
    """

    def __init__(
        self,
        terms: int,
        *,
        hidden: int,
        depth: int,
        heads: Mapping[str, int],
        dropout: float,
        generator: torch.Generator,
        importance: Tensor | None = None,
    ) -> None:
        self.heads, self.dropout, self.generator, self.importance = heads, dropout, generator, importance
        sizes = [terms, *[hidden] * depth, sum(heads.values())]
        # Rows have unit length, so outputs of the sparse layer have about half of its range.
        ranges = [SPARSE_RANGE if depth else LINEAR_RANGE]
        ranges += [math.sqrt(6.0 / (inputs + outputs)) for inputs, outputs in pairwise(sizes[1:])]
        self.weights = [
            torch.empty(shape).uniform_(-size, size, generator=generator)
            for shape, size in zip(pairwise(sizes), ranges, strict=True)
        ]
        self.biases = [torch.zeros(outputs) for outputs in sizes[1:]]
        self.parameters = [tensor.requires_grad_() for tensor in (*self.weights, *self.biases)]
        self._gradient = torch.empty_like(self.weights[0])  # reused by every step

    def __call__(self, rows: sparse.csr_matrix) -> dict[str, Tensor]:
        """Return the outputs by name, each (documents, length), with dropout."""
        first = sparse_linear(rows, self.weights[0], gradient=self._gradient, scale=self.importance)
        values = first + self.biases[0]
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            values = torch.addmm(bias, self._drop_units(torch.relu(values)), weight)
        return dict(zip(self.heads, torch.split(values, list(self.heads.values()), dim=1), strict=True))

    def _drop_units(self, units: Tensor) -> Tensor:
        if not self.dropout:
            return units
        mask = torch.rand(units.shape, generator=self.generator) >= self.dropout
        return units * (mask / (1.0 - self.dropout))

    def encoder(self, activation: Activation) -> Encoder:
        """Return a copy of the layers up to the first head, with thresholds of 0."""
        bits = next(iter(self.heads.values()))
        weights = [weight.detach().numpy().copy() for weight in self.weights]
        biases = [bias.detach().numpy().copy() for bias in self.biases]
        if self.importance is not None:
            weights[0] *= self.importance.detach().numpy()[:, None]
        weights[-1], biases[-1] = weights[-1][:, :bits], biases[-1][:bits]
        layers = [Layer(*parts, "relu") for parts in zip(weights[:-1], biases[:-1], strict=True)]
        layers.append(Layer(weights[-1], biases[-1], activation))
        return Encoder(tuple(layers), np.zeros(bits, dtype=np.float32))

    def balance(self, X: sparse.csr_matrix, *, spread: float | None) -> None:
        """Shift each bit to have median 0 and, behind hidden layers, scale it to this standard deviation.

        If all documents are on one side of a threshold, or hardly differ, all codes are equal and the decoder
        learns to ignore them. A linear map is not scaled: large initial weights are never quite unlearnt.
        """
        encoder = self.encoder("identity")
        values = encoder.values(X)
        scale = np.ones(encoder.bits, dtype=np.float32)
        if spread is not None and len(self.weights) > 1:
            scale = spread / np.maximum(values.std(axis=0), 1e-6)
        with torch.no_grad():
            self.weights[-1][:, : encoder.bits] *= torch.from_numpy(scale)
            self.biases[-1][: encoder.bits] = torch.from_numpy(-medians(values) * scale)


Documents: TypeAlias = npt.NDArray[np.int64]
INIT_RANGE = 0.05  # initial weights of the decoder are uniform within +- this


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkHasher(GradientHasher):
    """Base of the methods with an encoder network."""

    hidden: int = 500  # units of each hidden layer
    depth: int = 1  # hidden layers; 0: the encoder is linear
    dropout: float = 0.1  # fraction of the hidden units dropped in a step
    beta: float | None = None  # weight of the divergence from the prior; None: by the length of the codes
    warmup: float = 5.0  # epochs over which beta grows

    ranges: ClassVar[Mapping[str, Range]] = {
        **GradientHasher.ranges,
        "hidden": Range(above=0, integer=True),
        "depth": Range(integer=True),
        "dropout": Range(below=1),
        "beta": Range(optional=True),
        "warmup": Range(),
    }


Method = TypeVar("Method", bound=NetworkHasher)


class NetworkObjective(ABC, Generic[Method]):
    """Base of their objectives: a batch is a set of documents, an epoch has each document once.

    Args:
        method: the estimator, whose parameters are used.
        start: documents and random generators.
        heads: the network's outputs by name and length; the first is the code.
        importance: a trained factor for each term.
    """

    activation: ClassVar[Activation]  # of the code: "identity" for real values, "sigmoid" for probabilities
    threshold: ClassVar[Literal["half", "median"]]  # 0.5, or the training median of each bit
    spread: ClassVar[float | None] = None  # initial standard deviation of the code's values; None: unscaled
    words: WordDecoder

    def __init__(
        self, method: Method, start: Start, heads: Mapping[str, int], *, importance: Tensor | None = None
    ) -> None:
        self.method, self.X, self.documents = method, start.data.X, start.documents
        self.rng, self.generator = start.rng, start.generator
        docs = len(self.documents)
        self.batch_size = int(method.resolve("batch_size", docs))
        self.epochs = method.resolve("epochs", docs)
        self.beta = method.resolve("beta", docs)
        self.network = Network(
            self.X.shape[1],
            hidden=int(method.hidden),
            depth=int(method.depth),
            heads=heads,
            dropout=method.dropout,
            generator=start.generator,
            importance=importance,
        )
        self.distinct = distinct_rows(self.X)
        self.network.balance(self.distinct, spread=self.spread)
        self.parameters: list[Tensor] = list(self.network.parameters)

    def add_decoder(self, dims: int, *, batches: int = 1) -> WordDecoder:
        """Create a word decoder, trained with the network, that scores up to n batches in one call."""
        decoder = WordDecoder(
            self.X,
            dims,
            documents=batches * self.batch_size,
            init_range=INIT_RANGE,
            generator=self.generator,
        )
        self.parameters += decoder.parameters
        return decoder

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        return math.ceil(len(self.documents) / self.batch_size)

    def batches(self, rng: np.random.Generator, *, epoch: int) -> Iterator[Documents]:
        """Draw every document once."""
        # Of equal sizes: a last batch of one document would be a poor sample.
        yield from np.array_split(rng.permutation(self.documents), self.steps)

    @abstractmethod
    def loss(self, batch: Documents, *, epoch: float) -> Mapping[str, Tensor]:
        """Return the loss by named parts, each a mean per document."""

    def weight(self, epoch: float) -> float:
        """Return beta with its warmup."""
        return self.beta * linear_warmup(epoch, self.method.warmup)

    def noise(self, like: Tensor) -> Tensor:
        """Draw standard normal numbers."""
        return torch.randn(like.shape, generator=self.generator)

    def encoder(self) -> Encoder:
        """Return a copy of the current encoder."""
        encoder = self.network.encoder(self.activation)
        if self.threshold == "half":
            return replace(encoder, threshold=np.full(encoder.bits, 0.5, dtype=np.float32))
        return replace(encoder, threshold=medians(encoder.values(self.distinct)))

    def decoder(self) -> npt.NDArray[np.float32] | None:
        """Return a copy of the word weights of each bit (terms, bits)."""
        return self.words.array()


# Weak supervision for RBSH and PairRec: the documents with the nearest spectral bits (`spectral`).

MAX_SPECTRAL_BITS = 64
DOCS_PER_BIT = 10  # a small corpus has few informative eigenvectors
GRAPH_NEIGHBORS = 25  # per document


def weak_neighbors(start: Start, *, k: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the k nearest other documents of each document, (docs, k), and their Hamming distances."""
    X = start.data.X
    check_neighbors(k, X.shape[0])  # some documents are held out
    bits = spectral_bits(
        X,
        bits=8 * max(1, min(MAX_SPECTRAL_BITS, X.shape[0] // DOCS_PER_BIT) // 8),
        neighbors=min(GRAPH_NEIGHBORS, X.shape[0] - 1),
        rng=start.rng,
        on_progress=stage_callback(start.on_progress, "graph"),
    )
    codes = pack(bits)
    hits = nearest(codes, codes, k=k + 1)
    # A document with many equal codes before it may not be among its own hits: then the last hit is dropped.
    is_own = hits.rows == np.arange(len(codes))[:, None]
    is_own[~is_own.any(axis=1), -1] = True
    shape = (len(codes), k)
    return hits.rows[~is_own].reshape(shape), hits.distances[~is_own].reshape(shape).astype(np.int64)
