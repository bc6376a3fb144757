"""Codes as rows of an array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class CodeRows:
    """Codes with the seq of their documents, by seq."""

    seqs: NDArray[np.int64]  # (documents,)
    codes: NDArray[np.uint8]  # (documents, bytes)
