from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from tests.dedup.worlds import share_a_token, some_rows

from snuh.codes import hamming, unpack
from snuh.dedup.signatures import code_signatures, rarest_first, suffix_norms, word_signatures
from snuh.features.weighting import unit_rows


@given(st.integers(0, 2**32), st.sampled_from([1, 3, 8, 16]), st.integers(0, 10))
def test_codes_within_the_radius_share_a_part(seed: int, width: int, radius: int) -> None:
    rng = np.random.default_rng(seed)
    radius = min(radius, 8 * width - 1)
    codes = rng.integers(0, 256, width, dtype=np.uint8) ^ np.packbits(
        rng.random((20, width * 8)) < 0.05, axis=1
    )
    signatures = code_signatures(codes, radius=radius)
    assert len(signatures.tokens) == 20 * (radius + 1)
    assert share_a_token(signatures)[hamming(codes, codes) <= radius].all()


def test_codes_that_differ_in_every_part_share_none() -> None:
    codes = np.array([[0b00000000, 0], [0b00010001, 0b00010001]], dtype=np.uint8)
    assert unpack(codes).shape == (2, 16)
    assert not share_a_token(code_signatures(codes, radius=3))[0, 1]


@given(st.integers(0, 2**32), st.floats(0.01, 1.0))
def test_rows_of_sufficient_cosine_share_a_word(seed: int, cosine: float) -> None:
    rows = rarest_first(unit_rows(some_rows(seed, docs=25)))
    pairs = (rows @ rows.T).toarray() >= cosine
    assert share_a_token(word_signatures(rows, suffix_norms(rows), cosine=cosine))[pairs].all()


def test_only_words_with_sufficient_suffix_norm_are_tokens() -> None:
    # Three documents have word 2, two have word 1 and one has word 0, the rarest.
    rows = rarest_first(unit_rows(np.array([[0.8, 0.0, 0.6], [0.0, 0.6, 0.8], [0.0, 0.6, 0.8]])))
    signatures = word_signatures(rows, suffix_norms(rows), cosine=0.7)
    assert signatures.indptr.tolist() == [0, 1, 3, 5]  # 0.6 is below 0.7
    np.testing.assert_allclose(signatures.suffix_norm, [1, 1, 0.8, 1, 0.8], atol=1e-6)
    assert signatures.n_pairs == 2


def test_documents_of_different_groups_share_no_token() -> None:
    rows = rarest_first(unit_rows(sparse.csr_matrix(np.ones((4, 3)))))
    shared = share_a_token(
        word_signatures(rows, suffix_norms(rows), cosine=0.5).within(np.array([0, 1, 0, 1]))
    )
    np.testing.assert_array_equal(shared, np.array([[1, 0, 1, 0], [0, 1, 0, 1]] * 2, dtype=bool))
