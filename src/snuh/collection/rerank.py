"""Ordering a shortlist better than Hamming distance alone can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.codes import unpack
from snuh.encoder import Encoder
from snuh.features import TfidfFeatures

Rerank = Literal["asymmetric", "cosine"]
SHORTLISTS: dict[Rerank, int] = {"asymmetric": 1_000, "cosine": 200}  # documents looked at, unless told
Row: TypeAlias = Any  # a CSR matrix of one row; scipy has no type stubs


def asymmetric_scores(encoder: Encoder, query: Row, codes: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Score codes by the query's real values: a bit that the query is unsure of counts little.

    Each differing bit costs the query's margin to its threshold, so 0 is best.
    """
    margins = encoder.margins(query)[0]
    differs = unpack(codes) != (margins > 0)
    # A bit that no text can change has an infinite margin, and never differs.
    weights = np.where(np.isfinite(margins), np.abs(margins), 0.0)
    scores: NDArray[np.float64] = -(differs @ weights)
    return scores


def cosine_scores(features: TfidfFeatures, query: Row, texts: Sequence[str]) -> NDArray[np.float64]:
    """Score texts by the cosine of their TF-IDF rows with the query's."""
    scores: NDArray[np.float64] = (features.transform(texts) @ query.T).toarray()[:, 0].astype(np.float64)
    return scores
