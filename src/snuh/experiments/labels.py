"""Choosing the epoch by labels, as the paper does: precision@100 of the validation documents.

Labels are for evaluation, and nothing else in this software looks at them before; this is here to repeat the
paper's protocol, and a table never mixes the two.
"""

from __future__ import annotations

from snuh.corpus import MatrixSplit
from snuh.encoder import Encoder
from snuh.features import check_matrix, unit_rows
from snuh.metrics import code_health, precision_at_k
from snuh.training.result import Score


class LabelScore:
    """Scores encoders by how well validation documents find training documents that share a label."""

    def __init__(self, train: MatrixSplit, val: MatrixSplit) -> None:
        self._train, self._val = train, val
        # An encoder in training takes rows of unit length.
        self._database = unit_rows(check_matrix(train.X))
        self._queries = unit_rows(check_matrix(val.X))

    def __call__(self, encoder: Encoder) -> Score:
        """Encode both splits and return their precision@100."""
        codes = encoder.encode(self._database)
        queries = encoder.encode(self._queries)
        precision = precision_at_k(queries, self._val.labels, codes, self._train.labels)
        return Score(precision, code_health(codes).alive)
