from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from snuh.codes import hamming
from snuh.dedup import Duplicates, find_duplicates
from snuh.errors import InputError
from snuh.features.weighting import unit_rows

WORDS = 12


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, Any]:
    """Draw documents from few codes and few rows, so that duplicates, ties and empty rows are common."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    docs, distinct = draw(st.integers(1, 40)), draw(st.integers(1, 12))
    width = draw(st.sampled_from([1, 2, 8, 11]))
    centroid = rng.integers(0, 256, width, dtype=np.uint8)
    flips = np.packbits(rng.random((draw(st.integers(1, 6)), width * 8)) < 0.06, axis=1)
    base = rng.integers(0, 4, (distinct, WORDS)) * (
        rng.random((distinct, WORDS)) < rng.choice([0.2, 0.6, 0.95])
    )
    dense = base[rng.integers(0, distinct, docs)] * (rng.random((docs, WORDS)) > rng.choice([0.0, 0.05, 0.2]))
    dense[rng.random(docs) < 0.15] = 0
    return {
        "codes": (centroid ^ flips)[rng.integers(0, len(flips), docs)],
        "rows": sparse.csr_matrix(dense.astype(np.float32)),
        "radius": draw(st.integers(0, min(8 * width, 12))),
        "threshold": draw(st.sampled_from([0.05, 0.5, 0.75, 0.9, 1.0])),
        "measure": draw(st.sampled_from(["cosine", "overlap"])),
        "groups": draw(st.sampled_from([None, rng.integers(-1, 2, docs)])),
        "prefer": draw(st.sampled_from([None, rng.integers(0, 5, docs)])),
    }


def similarities(rows: sparse.csr_matrix, measure: str) -> np.ndarray:
    """Return the similarities of all pairs."""
    if measure == "overlap":
        has = (rows.toarray() != 0).astype(np.int64)
        common = has @ has.T
        either = has.sum(axis=1)[:, None] + has.sum(axis=1)[None] - common
        return (common / np.maximum(either, 1)).astype(np.float32)
    unit = unit_rows(rows).toarray().astype(np.float64)
    lengths = np.maximum(np.linalg.norm(unit, axis=1), 1e-9)
    return np.minimum(unit @ unit.T / lengths[:, None] / lengths, 1.0).astype(np.float32)


def comparable(world: dict[str, Any]) -> np.ndarray:
    codes, groups = world["codes"], world["groups"]
    has_words = np.diff(world["rows"].indptr) > 0
    near = hamming(codes, codes) <= world["radius"]
    same = True if groups is None else groups[:, None] == groups[None]
    return near & same & has_words[:, None] & has_words[None]


def exact_duplicates(world: dict[str, Any]) -> np.ndarray:
    """Return which pairs have equal codes, groups and measured rows."""
    dense = unit_rows(world["rows"]).toarray()
    if world["measure"] == "overlap":
        dense = dense != 0
    same_row = (dense[:, None] == dense[None]).all(axis=2)
    return same_row & comparable(world) & (hamming(world["codes"], world["codes"]) == 0)


def quadratic_leader_rule(world: dict[str, Any], similarity: np.ndarray) -> dict[int, int]:
    """Return the representative of each document, by comparing all pairs."""
    docs = len(world["codes"])
    prefer = np.zeros(docs) if world["prefer"] is None else world["prefer"]
    order = sorted(range(docs), key=lambda doc: (-prefer[doc], doc))
    is_similar = comparable(world) & (similarity >= np.float32(world["threshold"]))
    equal = exact_duplicates(world)
    representative: dict[int, int] = {}
    for position, doc in enumerate(order):
        earlier = [other for other in order[:position] if equal[doc, other]]
        if earlier:
            representative[doc] = representative[earlier[0]]
            continue
        kept = [
            other for other in order[:position] if representative[other] == other and is_similar[doc, other]
        ]
        # max returns the first of equals, and `kept` is in order of preference
        representative[doc] = max(kept, key=lambda other: similarity[doc, other]) if kept else doc
    return representative


@settings(max_examples=200)
@given(worlds())
def test_the_result_equals_the_leader_rule_over_all_pairs(world: dict[str, Any]) -> None:
    similarity = similarities(world["rows"], world["measure"])
    # Sums in another order may differ in the last digit: skip examples in which that would matter.
    gaps = np.diff(np.unique(np.append(similarity, np.float32(world["threshold"]))))
    assume(not ((gaps > 0) & (gaps < 1e-5)).any())
    found = find_duplicates(**world)
    representative = quadratic_leader_rule(world, similarity)
    assert found.representative.tolist() == [representative[doc] for doc in range(len(representative))]
    expected = similarity[np.arange(len(representative)), found.representative]
    np.testing.assert_allclose(found.similarity, np.where(found.kept, 1.0, expected), atol=1e-6)


@given(worlds(), st.integers(1, 40))
def test_every_dropped_document_has_a_similar_kept_representative(world: dict[str, Any], target: int) -> None:
    for limit in (None, target):
        found = find_duplicates(**world, target=limit)
        dropped = np.flatnonzero(~found.kept)
        assert found.kept[found.representative].all()
        assert comparable(world)[dropped, found.representative[dropped]].all()
        assert (found.similarity[dropped] >= np.float32(world["threshold"])).all()
        exact = similarities(world["rows"], world["measure"])[dropped, found.representative[dropped]]
        np.testing.assert_allclose(found.similarity[dropped], exact, atol=1e-6)


@given(worlds(), st.integers(1, 40))
def test_a_target_drops_no_more_than_necessary_and_the_most_similar(
    world: dict[str, Any], target: int
) -> None:
    plain, found = find_duplicates(**world), find_duplicates(**world, target=target)
    assert found.kept.sum() == max(min(target, len(found.kept)), plain.kept.sum())
    if plain.kept.sum() > target:
        np.testing.assert_array_equal(found.representative, plain.representative)
        assert found.threshold == world["threshold"]
        return
    if not found.kept.all():
        assert found.threshold == found.similarity[~found.kept].min()


def random_world(docs: int = 400, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    rows = sparse.random(docs, 200, density=0.05, random_state=rng, dtype=np.float32).tolil()
    rows[docs // 2 :] = rows[: docs - docs // 2]
    codes = rng.integers(0, 256, (docs, 8), dtype=np.uint8)
    codes[docs // 2 :] = codes[: docs - docs // 2]
    return {"codes": codes, "rows": rows.tocsr(), "radius": 6, "threshold": 0.8}


def test_the_first_document_is_kept_unless_another_is_preferred() -> None:
    codes, rows = np.zeros((3, 1), dtype=np.uint8), np.array([[1, 1], [1, 1], [1, 0.9]])
    found = find_duplicates(codes, rows, radius=0, threshold=0.9)
    assert found.representative.tolist() == [0, 0, 0]
    preferred = find_duplicates(codes, rows, radius=0, threshold=0.9, prefer=[0.0, 2.0, 1.0])
    assert preferred.representative.tolist() == [1, 1, 1]


def test_similarity_is_not_transitive() -> None:
    angles = np.deg2rad([0, 20, 40])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    found = find_duplicates(
        np.zeros((3, 1), dtype=np.uint8), rows, radius=0, threshold=np.cos(np.deg2rad(25))
    )
    assert found.representative.tolist() == [0, 0, 2]
    np.testing.assert_allclose(found.similarity, [1, np.cos(np.deg2rad(20)), 1], rtol=1e-6)


def test_a_dropped_document_joins_the_most_similar_kept_one() -> None:
    angles = np.deg2rad([0, 50, 30])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    found = find_duplicates(np.zeros((3, 1), dtype=np.uint8), rows, radius=0, threshold=0.8)
    assert found.representative.tolist() == [0, 1, 1]
    assert found.cluster.tolist() == [-1, 0, 0]


def test_documents_without_words_are_never_duplicates() -> None:
    found = find_duplicates(
        np.zeros((4, 1), dtype=np.uint8), np.array([[0, 0], [0, 0], [1, 0], [0, 0]]), radius=8, threshold=0.1
    )
    assert found.kept.all()
    assert found.cluster.tolist() == [-1] * 4


def test_exact_duplicates_of_a_dropped_document_have_its_representative() -> None:
    rows = np.array([[1, 0.2], [1, 0], [1, 0], [0, 1]])
    found = find_duplicates(np.zeros((4, 1), dtype=np.uint8), rows, radius=0, threshold=0.9)
    assert found.representative.tolist() == [0, 0, 0, 3]
    assert found.similarity[1] == found.similarity[2] < 1


def test_exact_duplicates_are_not_compared_with_each_other() -> None:
    docs = 5000
    found = find_duplicates(
        np.zeros((docs, 8), dtype=np.uint8), sparse.csr_matrix(np.ones((docs, 3))), radius=3, threshold=0.5
    )
    assert found.kept.sum() == 1
    assert found.codes_compared == found.rows_compared == 0


def test_documents_that_share_a_code_but_no_words_are_not_compared() -> None:
    docs = 500
    found = find_duplicates(np.zeros((docs, 8), dtype=np.uint8), sparse.eye(docs), radius=3, threshold=0.5)
    assert found.kept.all()
    assert found.codes_compared == 0


def test_documents_that_share_words_but_no_part_of_the_code_are_not_compared() -> None:
    codes = np.repeat(np.arange(250, dtype=np.uint8)[:, None], 8, axis=1)
    rows = np.concatenate([np.ones((250, 5)), np.eye(250)], axis=1)
    found = find_duplicates(codes, rows, radius=3, threshold=0.5)
    assert found.kept.all()
    assert found.codes_compared == 0


def test_exact_duplicates_of_half_a_corpus_are_found(seed: int = 3) -> None:
    world = random_world(seed=seed)
    found = find_duplicates(**world)
    np.testing.assert_array_equal(found.representative, np.tile(np.arange(200), 2))
    np.testing.assert_array_equal(found.cluster, np.tile(np.arange(200), 2))


def test_the_search_is_deterministic_and_leaves_its_arguments_unchanged() -> None:
    world = random_world()
    before = world["rows"].copy(), world["codes"].copy()
    first, second = (find_duplicates(**world, target=300) for _ in range(2))
    np.testing.assert_array_equal(first.representative, second.representative)
    assert first.kept.sum() == 300
    assert (before[0] != world["rows"]).nnz == 0
    np.testing.assert_array_equal(before[1], world["codes"])


def test_no_documents_have_no_duplicates() -> None:
    found = find_duplicates(
        np.zeros((0, 8), dtype=np.uint8), sparse.csr_matrix((0, 5)), radius=3, threshold=0.5
    )
    assert isinstance(found, Duplicates)
    assert len(found.kept) == len(found.cluster) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"radius": -1}, "radius must be an integer from 0 to 64, got -1"),
        ({"radius": 65}, "radius must be an integer from 0 to 64, got 65"),
        ({"radius": 1.5}, "radius must be an integer from 0 to 64, got 1.5"),
        ({"threshold": 0.0}, "threshold must be above 0 and at most 1, got 0.0"),
        ({"threshold": float("nan")}, "threshold must be above 0 and at most 1, got nan"),
        ({"measure": "jaccard"}, 'measure must be "cosine" or "overlap", got \'jaccard\''),
        ({"target": 0}, "target must be an integer of at least 1, got 0"),
        ({"groups": [1, 2]}, "groups must be one integer for each of the 400 documents"),
        ({"groups": np.zeros(400)}, "groups must be one integer .* got float64"),
        ({"prefer": [1.0]}, "prefer must be one number for each of the 400 documents"),
        ({"prefer": np.full(400, np.nan)}, "prefer must not contain NaN"),
        (
            {"rows": np.ones((3, 2))},
            r"expected one row for each of the 400 codes, got rows of shape \(3, 2\)",
        ),
        ({"codes": np.zeros((400, 8))}, "codes must be uint8"),
    ],
)
def test_invalid_arguments_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_duplicates(**(random_world() | change))
