"""How the words of a text make the bits of its code.

An encoder of one linear layer sets bit j where `activation(x @ W + b)[j] > threshold[j]`. Where the
activation ascends, that is where the margin

    margin[j] = sum over words w of x[w] W[w, j]  +  b[j] - inverse(threshold[j])

is above 0: each word pushes each bit, up or down, and the rest is the same for every text. Where it goes up
and down (a cosine), what a word does to a bit hangs on the other words, and there is no such sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snuh.codes import unpack
from snuh.encoder import Floats, inverse
from snuh.errors import InputError
from snuh.features import TfidfFeatures, unit_rows
from snuh.model import Model


@dataclass(frozen=True, eq=False)
class Pushes:
    """What makes the bits of one text's code."""

    words: tuple[str, ...]
    """The words of the text that the model knows, in the order of the vocabulary."""
    pushes: NDArray[np.float64]
    """How far each word moves each margin, (words, bits)."""
    constant: NDArray[np.float64]
    """The margin of a text without words, (bits,); infinite where no text can change the bit."""
    bits: NDArray[np.bool_]
    """The bits of the code, (bits,)."""

    @property
    def margins(self) -> NDArray[np.float64]:
        """How far each bit is above (set) or below its threshold, before the activation, (bits,)."""
        margins: NDArray[np.float64] = self.pushes.sum(axis=0) + self.constant
        return margins


def word_pushes(model: Model, text: str) -> Pushes:
    """Return what each word of a text does to each bit of its code."""
    if not isinstance(text, str):
        raise InputError(f"expected a text, got {type(text).__name__}")
    features, weight = readable_parts(model)
    layer = model.encoder.layers[0]
    row = features.transform([text])
    bits = unpack(model.encoder.encode(row))[0]
    if model.encoder.unit_rows:
        row = unit_rows(row)
    pushes = row.data[:, None].astype(np.float64) * weight[row.indices]
    constant = layer.bias - inverse(layer.activation, model.encoder.threshold)
    return Pushes(tuple(features.terms[column] for column in row.indices), pushes, constant, bits)


def readable_parts(model: Model) -> tuple[TfidfFeatures, Floats]:
    """Return the features and the weights (terms, bits); InputError where words have no say of their own."""
    if model.features is None:
        raise InputError(
            "this model was trained on a matrix of features: only a model of texts can be explained by words"
        )
    layers = model.encoder.layers
    if len(layers) != 1:
        raise InputError(
            f"expected an encoder of one linear layer, got {len(layers)} layers: in a deeper one "
            "no word has a share of its own in a bit"
        )
    if not layers[0].ascends:
        raise InputError(
            f"expected an encoder whose activation ascends, got {layers[0].activation}: where it goes up and "
            "down no word has a share of its own in a bit, use a model of another method"
        )
    return model.features, layers[0].weight
