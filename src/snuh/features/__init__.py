"""Feature rows: TF-IDF of texts with scikit-learn's definitions, and validation of given matrices."""

from __future__ import annotations

from snuh.features.tfidf import TfidfFeatures
from snuh.features.weighting import check_matrix, unit_rows

__all__ = ["TfidfFeatures", "check_matrix", "unit_rows"]
