"""What the methods share that encode documents by a `Network`: parameters, batches, the encoder."""

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

from snuh.encoder import Activation, Encoder, Layer
from snuh.training.bits import distinct_rows, medians, rise
from snuh.training.estimator import Limit
from snuh.training.gradient import GradientHasher, Start
from snuh.training.layers import WordDecoder, sparse_linear

# The encoder network of the deep methods: a sparse first layer, ReLU layers, and heads that share them.

LINEAR_RANGE, SPARSE_RANGE = 0.02, 0.1  # weights of the sparse layer start uniform within +- this


class Network:
    """Maps sparse rows to several outputs by name: linear without hidden layers, ReLU between them.

    Args:
        terms: columns of the rows.
        hidden: units of each hidden layer.
        depth: how many hidden layers, 0 for a linear map.
        heads: the length of each output; the first is the code.
        dropout: share of the hidden units that are silenced in a step.
        generator: of the start, and of dropout.
        importance: a factor for each term, learnt along and applied to the rows.
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
        # Rows have length 1, so outputs of the sparse layer have about half of its range.
        ranges = [SPARSE_RANGE if depth else LINEAR_RANGE]
        ranges += [math.sqrt(6.0 / (inputs + outputs)) for inputs, outputs in pairwise(sizes[1:])]
        self.weights = [
            torch.empty(shape).uniform_(-size, size, generator=generator)
            for shape, size in zip(pairwise(sizes), ranges, strict=True)
        ]
        self.biases = [torch.zeros(outputs) for outputs in sizes[1:]]
        self.parameters = [tensor.requires_grad_() for tensor in (*self.weights, *self.biases)]
        self._gradient = torch.empty_like(self.weights[0])  # an array that every step works in

    def __call__(self, rows: sparse.csr_matrix) -> dict[str, Tensor]:
        """Return the outputs by name, each (documents, length); hidden units are silenced at random."""
        first = sparse_linear(rows, self.weights[0], gradient=self._gradient, scale=self.importance)
        values = first + self.biases[0]
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            values = torch.addmm(bias, self._silenced(torch.relu(values)), weight)
        return dict(zip(self.heads, torch.split(values, list(self.heads.values()), dim=1), strict=True))

    def _silenced(self, units: Tensor) -> Tensor:
        if not self.dropout:
            return units
        kept = torch.rand(units.shape, generator=self.generator) >= self.dropout
        return units * (kept / (1.0 - self.dropout))

    def encoder(self, activation: Activation) -> Encoder:
        """Return the way to the first head, as arrays of their own, with thresholds of 0."""
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
        """Let each bit start with its median at 0, and behind hidden layers with this deviation.

        With all documents on one side of a threshold, or hardly apart, every code is equal, and the decoder
        learns to do without codes. A linear map is left small: what it starts with is never quite unlearnt.
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
INIT_RANGE = 0.05  # the decoder's weights start uniform within +- this


@dataclass(kw_only=True, eq=False, repr=False)
class NetworkHasher(GradientHasher):
    """Base of the methods with an encoder network."""

    hidden: int = 500  # units of each hidden layer
    depth: int = 1  # hidden layers; 0: the encoder is linear
    dropout: float = 0.1  # share of the hidden units silenced in a step
    beta: float | None = None  # weight of the divergence from the prior; None: by the length of the codes
    warmup: float = 5.0  # epochs over which beta grows

    limits: ClassVar[Mapping[str, Limit]] = {
        **GradientHasher.limits,
        "hidden": Limit(above=0, whole=True),
        "depth": Limit(whole=True),
        "dropout": Limit(below=1),
        "beta": Limit(optional=True),
        "warmup": Limit(),
    }


Method = TypeVar("Method", bound=NetworkHasher)


class NetworkObjective(ABC, Generic[Method]):
    """Base of their objectives: each batch is some documents, an epoch has each of them once.

    Args:
        method: its parameters.
        start: documents and randomness.
        heads: the network's outputs by name and length; the first is the code.
        importance: a factor for each term, learnt along.
    """

    activation: ClassVar[Activation]  # of the code: "identity" for real values, "sigmoid" for probabilities
    threshold: ClassVar[Literal["half", "median"]]  # of probabilities, or of what training documents get
    spread: ClassVar[float | None] = None  # deviation of the code's values at the start; None: as it comes
    words: WordDecoder

    def __init__(
        self, method: Method, start: Start, heads: Mapping[str, int], *, importance: Tensor | None = None
    ) -> None:
        self.method, self.X, self.epochs = method, start.data.X, start.epochs
        self.documents = start.documents
        self.batch = method.by_size("batch_size", self.X.shape[0])
        self.rng, self.generator = start.rng, start.generator
        self.beta = method.chosen("beta")
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

    def add_decoder(self, dims: int, *, documents: int = 1) -> WordDecoder:
        """Make a word decoder that is trained along; `documents`: as many batches at once."""
        decoder = WordDecoder(
            self.X,
            dims,
            documents=documents * self.batch,
            init_range=INIT_RANGE,
            generator=self.generator,
        )
        self.parameters += decoder.parameters
        return decoder

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        return math.ceil(len(self.documents) / self.batch)

    def batches(self, rng: np.random.Generator, *, epoch: int) -> Iterator[Documents]:
        """Draw every document once."""
        # Of even size: a last batch of one document would be a poor sample of all.
        yield from np.array_split(rng.permutation(self.documents), self.steps)

    @abstractmethod
    def loss(self, batch: Documents, *, epoch: float) -> Mapping[str, Tensor]:
        """Return the loss by named parts, each a mean per document."""

    def weight(self, epoch: float) -> float:
        """Return beta as it has grown up to now."""
        return self.beta * rise(epoch, self.method.warmup)

    def noise(self, like: Tensor) -> Tensor:
        """Draw standard normal numbers."""
        return torch.randn(like.shape, generator=self.generator)

    def encoder(self) -> Encoder:
        """Return the encoder as it is now."""
        encoder = self.network.encoder(self.activation)
        if self.threshold == "half":
            return replace(encoder, threshold=np.full(encoder.bits, 0.5, dtype=np.float32))
        return replace(encoder, threshold=medians(encoder.values(self.distinct)))

    def decoder(self) -> npt.NDArray[np.float32] | None:
        """Return what explains words by bits (terms, bits) as it is now."""
        return self.words.array()
