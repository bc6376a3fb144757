"""From texts to rows of numbers: TF-IDF as scikit-learn defines it, and checks for rows made elsewhere."""

from __future__ import annotations

from snuh.features.tfidf import TfidfFeatures
from snuh.features.weighting import check_matrix, unit_rows

__all__ = ["TfidfFeatures", "check_matrix", "unit_rows"]
