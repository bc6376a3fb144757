from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from snuh.dedup import signatures
from snuh.dedup.signatures import first_equals

CODES = np.array([[1], [1], [2], [1], [1], [1]], dtype=np.uint64)
DENSE = np.array([[1, 2], [1, 2], [1, 2], [1, 2], [1, 3], [1, 2]], dtype=np.float32)
GROUPS = np.array([0, 0, 0, 1, 0, 0])


def test_documents_are_equal_in_code_row_and_group_or_not_at_all() -> None:
    assert first_equals(CODES, sparse.csr_matrix(DENSE), GROUPS).tolist() == [0, 0, 2, 3, 4, 0]


def test_documents_of_equal_hash_are_still_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        signatures, "_hash_documents", lambda codes, *_: np.zeros(len(codes), dtype=np.uint64)
    )
    assert first_equals(CODES, sparse.csr_matrix(DENSE), GROUPS).tolist() == [0, 0, 2, 3, 4, 0]
