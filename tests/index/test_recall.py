from __future__ import annotations

import numpy as np
import pytest

from snuh.errors import InputError
from snuh.index import ivf
from snuh.index.ivf import IVF, choose_probes, measure_recall


@pytest.fixture(autouse=True)
def only_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small worlds would otherwise soon be read in order, and every answer be exact."""
    monkeypatch.setattr(ivf, "SCAN_FROM", 2.0)


def random_codes(rows: int = 2000) -> np.ndarray:
    """Codes without any clusters, so that lists miss much."""
    return np.random.default_rng(0).integers(0, 256, (rows, 8), dtype=np.uint8)


def test_all_lists_find_everything() -> None:
    codes = random_codes()
    clusters = IVF.build(codes, lists=32)
    assert measure_recall(clusters, codes, k=10, probes=32, sample=50) == 1.0


def test_few_lists_miss_what_lies_in_others() -> None:
    codes = random_codes()
    clusters = IVF.build(codes, lists=32)
    few, more = (measure_recall(clusters, codes, k=10, probes=probes, sample=50) for probes in (1, 8))
    assert 0.1 <= few < more < 1  # each finds at least itself


def test_any_of_the_rows_at_the_kth_distance_is_right() -> None:
    codes = np.array([[0], [1], [2], [4], [8]], dtype=np.uint8)
    # By hand: a list for each code, and a query of 0 at distance 1 from all the others.
    clusters = IVF(codes, np.arange(6), np.arange(5, dtype=np.int32))
    found = clusters.search(codes[0], codes, k=2, probes=1)
    assert found.rows.tolist() == [0, 1]  # the first list has too few, so a second was read
    assert measure_recall(clusters, codes[:, :], k=2, probes=1, sample=5) == 1.0


def test_the_chosen_probes_are_the_smallest_power_of_two_that_is_enough() -> None:
    codes = random_codes()
    clusters = IVF.build(codes, lists=32)
    probes, recall = choose_probes(clusters, codes, k=10, wanted=0.8, sample=60)
    assert probes in (2, 4, 8, 16)
    assert recall == measure_recall(clusters, codes, k=10, probes=probes, sample=60) >= 0.8
    assert measure_recall(clusters, codes, k=10, probes=probes // 2, sample=60) < 0.8


def test_a_recall_of_one_can_always_be_had() -> None:
    codes = random_codes()
    assert choose_probes(IVF.build(codes, lists=20), codes, k=10, wanted=1.0, sample=30)[1] == 1.0


def test_nothing_to_find_is_found() -> None:
    codes = random_codes(0)
    assert measure_recall(IVF.build(codes), codes, k=10, probes=1) == 1.0


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"wanted": 0.0}, "wanted must be above 0"), ({"sample": 0}, "sample must be at least 1, got 0")],
)
def test_a_choice_that_makes_no_sense_is_refused(changed: dict, message: str) -> None:
    codes = random_codes(50)
    with pytest.raises(InputError, match=message):
        choose_probes(IVF.build(codes), codes, **{"k": 3} | changed)
