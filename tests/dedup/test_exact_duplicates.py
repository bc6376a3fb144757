from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from snuh.dedup import signatures
from snuh.dedup.signatures import find_exact_duplicates

CODES = np.array([[1], [1], [2], [1], [1], [1]], dtype=np.uint64)
DENSE = np.array([[1, 2], [1, 2], [1, 2], [1, 2], [1, 3], [1, 2]], dtype=np.float32)
GROUPS = np.array([0, 0, 0, 1, 0, 0])


def test_exact_duplicates_have_equal_code_row_and_group() -> None:
    assert find_exact_duplicates(CODES, sparse.csr_matrix(DENSE), GROUPS).tolist() == [0, 0, 2, 3, 4, 0]


def test_different_documents_with_equal_hashes_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        signatures, "_hash_documents", lambda codes, *_: np.zeros(len(codes), dtype=np.uint64)
    )
    assert find_exact_duplicates(CODES, sparse.csr_matrix(DENSE), GROUPS).tolist() == [0, 0, 2, 3, 4, 0]
