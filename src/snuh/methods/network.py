"""The encoder network of the deep methods: a sparse first layer, ReLU layers, and several heads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from snuh.encoder import Activation, Encoder, Layer
from snuh.methods.layers import sparse_linear
from snuh.methods.thresholds import medians

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
