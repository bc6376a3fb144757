"""The result of training any method: a small feed-forward network and one threshold per bit, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from snuh.codes import check_bits, pack
from snuh.errors import InputError
from snuh.features.vectors import append_columns
from snuh.features.weighting import SparseRows, unit_rows

Activation = Literal["identity", "relu", "tanh", "sigmoid", "cos"]
Floats: TypeAlias = NDArray[np.float32]
# A scipy sparse matrix or array, SparseRows, or a 2-D array-like; scipy has no type stubs.
Rows: TypeAlias = Any

BLOCK_ROWS = 4096


def _sigmoid(x: Floats) -> Floats:
    # With tanh it cannot overflow.
    half = np.float32(0.5)
    return cast(Floats, half * np.tanh(half * x) + half)


def _identity(x: Floats) -> Floats:
    return x


def _relu(x: Floats) -> Floats:
    return np.maximum(x, np.float32(0))


_ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {
    "identity": _identity,
    "relu": _relu,
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "cos": np.cos,
}


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer `activation(x @ weight + bias)`, with weight (inputs, outputs) and bias (outputs,)."""

    weight: Floats
    bias: Floats
    activation: Activation = "identity"

    def __post_init__(self) -> None:
        # A torch weight is a transposed view.
        object.__setattr__(self, "weight", np.ascontiguousarray(self.weight, dtype=np.float32))
        object.__setattr__(self, "bias", np.ascontiguousarray(self.bias, dtype=np.float32))
        if self.weight.ndim != 2 or self.bias.shape != self.weight.shape[1:]:
            raise InputError(
                "a layer needs weights of shape (inputs, outputs) and biases of shape (outputs,), "
                f"got {self.weight.shape} and {self.bias.shape}"
            )
        if self.activation not in _ACTIVATIONS:
            known = ", ".join(get_args(Activation))
            raise InputError(f"activation must be one of {known}, got {self.activation!r}")
        _check_finite(self.weight, "weights")
        _check_finite(self.bias, "biases")

    @property
    def is_monotonic(self) -> bool:
        """Whether the activation is non-decreasing, so that a threshold on its output is one on its input."""
        return self.activation != "cos"

    def __call__(self, X: Rows) -> Floats:
        """Map rows (documents, inputs), sparse or dense, to (documents, outputs)."""
        return _ACTIVATIONS[self.activation](np.asarray(X @ self.weight, dtype=np.float32) + self.bias)


@dataclass(frozen=True, eq=False)
class Encoder:
    """Layers and a threshold per bit: a bit is set where the last layer's output is above its threshold."""

    layers: tuple[Layer, ...]
    threshold: Floats
    unit_rows: bool = False
    """Whether to scale rows to unit length first (TF-IDF rows have unit length already)."""
    vector_dims: int = 0
    """The last inputs that hold a vector; rows without them are words alone."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        object.__setattr__(self, "threshold", np.ascontiguousarray(self.threshold, dtype=np.float32))
        if not self.layers:
            raise InputError("an encoder needs at least one layer, got none")
        for before, after in zip(self.layers, self.layers[1:], strict=False):
            if before.weight.shape[1] != after.weight.shape[0]:
                raise InputError(
                    f"a layer with {before.weight.shape[1]} outputs cannot precede one with "
                    f"{after.weight.shape[0]} inputs"
                )
        if self.threshold.shape != self.layers[-1].bias.shape:
            raise InputError(
                f"an encoder needs one threshold per bit ({len(self.layers[-1].bias)}), "
                f"got thresholds of shape {self.threshold.shape}"
            )
        check_bits(len(self.threshold))
        _check_finite(self.threshold, "thresholds")
        if not 0 <= self.vector_dims < self.inputs:
            raise InputError(
                f"an encoder of {self.inputs} inputs must have words, got vectors of {self.vector_dims} "
                "dimensions"
            )

    @property
    def bits(self) -> int:
        """The code length."""
        return len(self.threshold)

    @property
    def inputs(self) -> int:
        """The number of columns of a feature row."""
        return int(self.layers[0].weight.shape[0])

    @property
    def terms(self) -> int:
        """The number of columns of a row of words alone."""
        return self.inputs - self.vector_dims

    def values(self, X: Rows) -> Floats:
        """Return the real outputs of the last layer (documents, bits) for sparse or dense rows."""
        blocks = list(self._value_blocks(X))
        return np.concatenate(blocks) if blocks else np.zeros((0, self.bits), dtype=np.float32)

    def encode(self, X: Rows) -> NDArray[np.uint8]:
        """Return the packed codes (documents, bits / 8) for sparse or dense rows."""
        blocks = [pack(values > self.threshold) for values in self._value_blocks(X)]
        return np.concatenate(blocks) if blocks else np.zeros((0, self.bits // 8), dtype=np.uint8)

    def margins(self, X: Rows) -> NDArray[np.float64]:
        """Return each bit's signed distance to its threshold before the last activation (documents, bits).

        It measures confidence without the saturation of the activation. If the activation is not monotonic,
        the distance is measured after it.
        """
        last = self.layers[-1]
        if not last.is_monotonic:
            return self.values(X).astype(np.float64) - self.threshold
        return self._linear.values(X) - self._linear_threshold

    @cached_property
    def _linear(self) -> Encoder:
        """The encoder without its last activation; checking its weights takes longer than a query."""
        last = replace(self.layers[-1], activation="identity")
        return replace(self, layers=(*self.layers[:-1], last))

    @cached_property
    def _linear_threshold(self) -> NDArray[np.float64]:
        return inverse(self.layers[-1].activation, self.threshold)

    def _value_blocks(self, X: Rows) -> Iterator[Floats]:
        rows = self._check_rows(X)
        for start in range(0, rows.shape[0], BLOCK_ROWS):
            values = rows[start : start + BLOCK_ROWS]
            if self.unit_rows:
                values = unit_rows(values)
            for layer in self.layers:
                values = layer(values)
            yield cast(Floats, values)

    def _check_rows(self, X: Rows) -> Rows:
        """Return CSR or dense float32 rows after checking their columns and values."""
        if isinstance(X, SparseRows) and not self.unit_rows and X.columns in (self.terms, self.inputs):
            return X if X.columns == self.inputs else replace(X, columns=self.inputs)
        is_sparse = hasattr(X, "tocsr")
        rows: Rows = X.tocsr() if is_sparse else np.asarray(X)
        if self.vector_dims and rows.ndim == 2 and rows.shape[1] == self.terms:
            dims = self.vector_dims
            rows = append_columns(rows, dims) if is_sparse else np.pad(rows, ((0, 0), (0, dims)))
        if rows.ndim != 2 or rows.shape[1] != self.inputs:
            raise InputError(
                f"this encoder takes rows with {self.inputs} columns, got an array of shape {rows.shape}: "
                "use the features of its training"
            )
        if rows.dtype.kind not in "fiub":
            raise InputError(f"rows must be numeric, got {rows.dtype}")
        rows = rows.astype(np.float32, copy=False)
        _check_finite(rows.data if is_sparse else rows, "rows")
        return rows

    def meta(self) -> dict[str, Any]:
        """Return the settings that `arrays` does not contain, as a JSON object."""
        meta = {"activations": [layer.activation for layer in self.layers], "unit_rows": self.unit_rows}
        return meta | ({"vector_dims": self.vector_dims} if self.vector_dims else {})

    def arrays(self) -> dict[str, Floats]:
        """Return all arrays by name, for saving."""
        arrays = {"threshold": self.threshold}
        for number, layer in enumerate(self.layers):
            arrays[f"layer{number}.weight"] = layer.weight
            arrays[f"layer{number}.bias"] = layer.bias
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Encoder:
        """Build an encoder from `arrays()` and `meta()`; InputError if they are inconsistent."""
        activations = meta.get("activations")
        if not isinstance(activations, list) or not all(isinstance(name, str) for name in activations):
            raise InputError(f"an encoder's activations must be a list of names, got {activations!r}")
        unit_rows = meta.get("unit_rows", False)
        if not isinstance(unit_rows, bool):
            raise InputError(f"an encoder's unit_rows must be true or false, got {unit_rows!r}")
        vector_dims = meta.get("vector_dims", 0)
        if type(vector_dims) is not int:
            raise InputError(f"an encoder's vector_dims must be an integer, got {vector_dims!r}")
        names = [f"layer{number}.{part}" for number in range(len(activations)) for part in ("weight", "bias")]
        expected = {"threshold", *names}
        if set(arrays) != expected:
            got = ", ".join(sorted(arrays)) or "none"
            raise InputError(f"expected the arrays {', '.join(sorted(expected))}, got {got}")
        for name, array in arrays.items():
            if array.dtype != np.float32:
                raise InputError(f"the array {name} must be float32, got {array.dtype}")
        layers = tuple(
            Layer(
                arrays[f"layer{number}.weight"], arrays[f"layer{number}.bias"], cast(Activation, activation)
            )
            for number, activation in enumerate(activations)
        )
        return cls(layers, arrays["threshold"], unit_rows, vector_dims)


def inverse(activation: Activation, value: Floats) -> NDArray[np.float64]:
    """Return the input at which a monotonic activation reaches a value, infinite if it never does."""
    v = value.astype(np.float64)
    with np.errstate(divide="ignore"):
        if activation == "sigmoid":
            v = np.clip(v, 0.0, 1.0)
            return np.log(v) - np.log1p(-v)
        if activation == "tanh":
            return np.arctanh(np.clip(v, -1.0, 1.0))
    return np.where(v < 0, -np.inf, v) if activation == "relu" else v


def _check_finite(array: NDArray[Any], what: str) -> None:
    if not np.isfinite(array).all():
        raise InputError(f"the {what} must be finite numbers, got NaN or infinity")
