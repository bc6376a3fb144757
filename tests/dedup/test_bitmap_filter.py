from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from snuh.dedup.signatures import BITMAP_BITS, NIBBLES, exceeds_loss, fill_losses, row_bitmaps
from snuh.features.weighting import unit_rows


def losses_of(row: sparse.csr_matrix) -> np.ndarray:
    losses = np.empty((NIBBLES, 16))
    fill_losses(row.indices, row.data, losses)
    return losses


@given(st.integers(0, 2**32), st.integers(1, 300))
def test_the_loss_is_the_weight_in_bits_that_the_other_lacks(seed: int, words: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = (unit_rows(sparse.random(1, 1000, words / 1000, random_state=rng)) for _ in range(2))
    lacks = ~np.isin(left.indices % BITMAP_BITS, right.indices % BITMAP_BITS)
    loss = float((left.data[lacks].astype(np.float64) ** 2).sum())
    bitmap, losses = row_bitmaps(right)[0], losses_of(left)
    assert exceeds_loss(bitmap, losses, loss - 1e-9)
    assert not exceeds_loss(bitmap, losses, loss + 1e-9)


@given(st.integers(0, 2**32))
def test_the_loss_and_the_squared_cosine_are_at_most_one_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.random((2, 400)) * (rng.random((2, 400)) < 0.1)
    dense[1] += rng.random() * dense[0]
    rows = unit_rows(dense)
    cosine = float((rows[0] @ rows[1].T).toarray()[0, 0])
    assert not exceeds_loss(row_bitmaps(rows)[1], losses_of(rows[0]), 1.0 - cosine**2 + 1e-6)
