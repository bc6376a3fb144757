"""Base of the methods whose encoder is a `Network`: parameters, batches, the encoder."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from snuh.encoder import Activation, Encoder
from snuh.methods.annealing import linear_warmup
from snuh.methods.decoder import WordDecoder
from snuh.methods.gradient import GradientHasher, Start
from snuh.methods.limits import Range
from snuh.methods.network import Network
from snuh.methods.thresholds import distinct_rows, medians

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
