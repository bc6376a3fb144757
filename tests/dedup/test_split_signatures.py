from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.dedup.worlds import share_a_token, some_rows

from snuh.codes import pack
from snuh.dedup import Measure, find_duplicates, leaders
from snuh.dedup.leaders import split_signatures
from snuh.dedup.signatures import rarest_first, suffix_norms, word_signatures
from snuh.features.weighting import unit_rows


@pytest.fixture(autouse=True, scope="module")
def _split_even_short_lists() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaders, "MIN_LIST_SIZE", 1)
        patch.setattr(leaders, "ENTRY_COST", 0.1)
        yield


@settings(max_examples=200)
@given(st.integers(0, 2**32), st.floats(0.01, 1.0))
def test_rows_of_sufficient_cosine_share_a_token_after_splitting(seed: int, cosine: float) -> None:
    dense = some_rows(seed, docs=40)
    dense[2, 3:] = dense[3, 3:]
    rows = rarest_first(unit_rows(dense))
    signatures = split_signatures(
        word_signatures(rows, suffix_norms(rows), cosine=cosine), rows, suffix_norms(rows), cosine=cosine
    )
    assert share_a_token(signatures)[(rows @ rows.T).toarray() >= cosine].all()


def make_rows(docs: int, *, common: int, seed: int = 0) -> sparse.csr_matrix:
    """Return rows of 20 words out of 400, and `common` more words that all of them have."""
    rng = np.random.default_rng(seed)
    dense = np.zeros((docs, 400 + common))
    for row in dense:
        row[rng.choice(400, 20, replace=False)] = 1.0
    dense[:, 400:] = 1.0
    return rarest_first(unit_rows(dense))


def test_splitting_leaves_fewer_pairs_that_share_a_token() -> None:
    rows = make_rows(1000, common=2)
    before = word_signatures(rows, suffix_norms(rows), cosine=0.8)
    after = split_signatures(before, rows, suffix_norms(rows), cosine=0.8)
    assert after.n_pairs < 0.2 * before.n_pairs


def test_words_of_all_documents_do_not_make_ever_more_tokens() -> None:
    rows = make_rows(200, common=60)  # all documents are similar
    before = word_signatures(rows, suffix_norms(rows), cosine=0.8)
    after = split_signatures(before, rows, suffix_norms(rows), cosine=0.8)
    assert after.n_pairs <= before.n_pairs
    assert len(after.tokens) < 100 * len(before.tokens)


def test_suffix_norms_bound_the_cosine_of_pairs_that_share_a_token() -> None:
    rows = make_rows(60, common=10)
    signatures = split_signatures(
        word_signatures(rows, suffix_norms(rows), cosine=0.3), rows, suffix_norms(rows), cosine=0.3
    )
    products = (rows @ rows.T).toarray()
    norms = [
        dict(zip(signatures.tokens[a:b].tolist(), signatures.suffix_norm[a:b].tolist(), strict=True))
        for a, b in zip(signatures.indptr, signatures.indptr[1:], strict=False)
    ]
    for left in range(60):
        for right in range(left):
            shared = norms[left].keys() & norms[right].keys()
            bounds = [norms[left][token] * norms[right][token] for token in shared]
            if products[left, right] >= 0.3:
                assert max(bounds) >= products[left, right] - 1e-6


@pytest.mark.parametrize("measure", ["cosine", "overlap"])
@pytest.mark.parametrize("groups", [None, 3])
def test_splitting_does_not_change_the_result(
    measure: Measure, groups: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    rows = sparse.vstack([make_rows(300, common=3), make_rows(300, common=3, seed=1)]).tolil()
    for row in range(100):  # near-duplicates
        rows[599 - row] = rows[row]
        rows[599 - row, rng.integers(400)] = 0.2
    codes = pack(rng.random((600, 16)) < 0.5)
    codes[500:] = codes[:100][::-1]
    given_groups = None if groups is None else rng.integers(0, groups, 600)
    arguments = {"radius": 3, "threshold": 0.7, "measure": measure, "groups": given_groups}
    split = find_duplicates(codes, rows.tocsr(), **arguments)
    monkeypatch.setattr(leaders, "MIN_LIST_SIZE", 10**9)
    whole = find_duplicates(codes, rows.tocsr(), **arguments)
    assert (~whole.kept).sum() > 20
    np.testing.assert_array_equal(split.representative, whole.representative)
    np.testing.assert_array_equal(split.similarity, whole.similarity)
    assert split.codes_compared < whole.codes_compared
