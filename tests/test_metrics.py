from __future__ import annotations

import json

import numpy as np
import pytest
import pytrec_eval
from hypothesis import assume, given
from hypothesis import strategies as st

from snuh.codes import pack, unpack
from snuh.errors import InputError
from snuh.metrics import (
    DistanceCounts,
    code_health,
    count_by_distance,
    evaluate_codes,
    expected_precision,
    paired_interval,
    precision_at_k,
    ranking_quality,
)

Labels = list[tuple[str, ...]]


def codes_of(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint8)[:, None]


def ranked_hits(
    query: np.ndarray, names: tuple[str, ...], codes: np.ndarray, labels: Labels, rng: np.random.Generator
) -> list[bool]:
    """Rank the database for one query, ties in random order, and say which ranks are hits."""
    distances = (unpack(codes) != unpack(query[None])).sum(axis=1)
    order = sorted(range(len(codes)), key=lambda row: (distances[row], rng.random()))
    return [bool(set(names) & set(labels[row])) for row in order]


def slow_precision(
    queries: np.ndarray, query_labels: Labels, codes: np.ndarray, labels: Labels, k: int
) -> float:
    """Compute the expected precision one query and one distance at a time."""
    scores = []
    for query, names in zip(queries, query_labels, strict=True):
        if not names:
            continue
        distances = (unpack(codes) != unpack(query[None])).sum(axis=1).tolist()
        hit = [bool(set(names) & set(other)) for other in labels]
        wanted = min(k, len(codes))
        cut = sorted(distances)[wanted - 1]
        closer = [h for d, h in zip(distances, hit, strict=True) if d < cut]
        tied = [h for d, h in zip(distances, hit, strict=True) if d == cut]
        scores.append((sum(closer) + (wanted - len(closer)) * sum(tied) / len(tied)) / wanted)
    return sum(scores) / len(scores)


label_tuples = st.lists(st.sampled_from("abcd"), max_size=3).map(tuple)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[np.ndarray, Labels, np.ndarray, Labels]:
    """Draw queries and a database whose codes collide often; at least one query has labels."""
    values = st.sampled_from([0, 1, 2, 3, 7, 128, 255])
    queries = draw(st.lists(values, min_size=1, max_size=5))
    documents = draw(st.lists(values, min_size=1, max_size=25))
    query_labels = [("a",), *(draw(label_tuples) for _ in queries[1:])]
    return codes_of(*queries), query_labels, codes_of(*documents), [draw(label_tuples) for _ in documents]


@given(worlds(), st.integers(1, 30))
def test_precision_equals_the_formula_written_out_slowly(
    world: tuple[np.ndarray, Labels, np.ndarray, Labels], k: int
) -> None:
    assert precision_at_k(*world, k=k) == pytest.approx(slow_precision(*world, k), abs=1e-12)


@pytest.mark.parametrize("k", [1, 10, 100])
def test_precision_is_the_mean_over_random_orders_of_ties(k: int) -> None:
    rng = np.random.default_rng(7)
    codes, queries = (rng.integers(0, 256, (count, 1), dtype=np.uint8) & 0b111 for count in (150, 3))
    labels: Labels = [(name,) for name in rng.choice(list("abc"), 150)]
    query_labels: Labels = [("a",), ("b", "c"), ("c",)]
    draws = [
        np.mean(ranked_hits(query, names, codes, labels, rng)[:k])
        for _ in range(400)
        for query, names in zip(queries, query_labels, strict=True)
    ]
    # Four standard errors of the mean over 1,200 draws.
    tolerance = 4 * np.std(draws) / np.sqrt(len(draws))
    assert precision_at_k(queries, query_labels, codes, labels, k=k) == pytest.approx(
        float(np.mean(draws)), abs=tolerance
    )


def test_the_formula_counts_closer_hits_and_a_fraction_of_the_tied_ones() -> None:
    # Closer: 3 documents, 2 of them hits. At the cut: 8 documents, 4 of them hits, and 2 places left.
    counts = DistanceCounts(documents=np.array([[1, 2, 8, 9]]), hits=np.array([[1, 1, 4, 0]]))
    assert expected_precision(counts, k=5).tolist() == [(2 + 2 * 4 / 8) / 5]


def test_a_cut_that_falls_between_distances_takes_no_part_of_a_tie() -> None:
    counts = DistanceCounts(documents=np.array([[1, 2, 8]]), hits=np.array([[1, 1, 8]]))
    assert expected_precision(counts, k=3).tolist() == [2 / 3]


def test_a_cut_beyond_the_database_takes_all_of_it() -> None:
    world = (codes_of(0), [("a",)], codes_of(0, 1, 255, 3), [("a",), ("b",), ("a",), ()])
    assert precision_at_k(*world, k=100) == precision_at_k(*world, k=4) == 0.5


def test_a_hit_is_any_shared_label_however_many_are_shared() -> None:
    labels: Labels = [("a", "b"), ("b", "c"), ("c",), ()]
    assert precision_at_k(codes_of(0), [("a", "b", "a")], codes_of(0, 0, 0, 0), labels, k=4) == 0.5


def test_queries_without_labels_are_skipped_and_counted() -> None:
    evaluation = evaluate_codes(codes_of(0, 255), [("a",), ()], codes_of(0, 1, 2), [("a",)] * 3)
    assert (evaluation.queries, evaluation.queries_without_labels) == (1, 1)
    assert evaluation.precision == {1: 1.0, 100: 1.0}


def test_a_label_the_database_does_not_have_is_a_miss_not_an_error() -> None:
    assert precision_at_k(codes_of(0), [("unseen",)], codes_of(0, 1), [("a",), ("b",)], k=1) == 0.0


def test_documents_without_labels_are_never_hits() -> None:
    assert precision_at_k(codes_of(0), [("a",)], codes_of(0, 0), [(), ()], k=2) == 0.0


def test_precision_within_the_radius_counts_an_empty_ball_as_zero() -> None:
    # The first query has a hit and a miss within two bits (and a hit at three), the second has nothing.
    labels: Labels = [("a",), ("b",), ("a",)]
    evaluation = evaluate_codes(
        codes_of(0b0, 0b11111000), [("a",), ("a",)], codes_of(0b1, 0b11, 0b111), labels, radius=2
    )
    assert evaluation.precision_within_radius == 0.25
    assert evaluation.empty_radius_fraction == 0.5


def test_the_default_cutoffs_are_those_the_database_can_fill_and_always_100() -> None:
    def cutoffs(documents: int) -> list[int]:
        codes = np.zeros((documents, 1), dtype=np.uint8)
        return list(evaluate_codes(codes_of(0), [("a",)], codes, [("a",)] * documents).precision)

    assert cutoffs(30) == [1, 10, 100]
    assert cutoffs(1000) == [1, 10, 50, 100, 1000]


def test_chance_is_the_precision_of_the_whole_database() -> None:
    labels: Labels = [("a",), ("b",), ("a", "b"), ()]
    evaluation = evaluate_codes(codes_of(0, 7), [("a",), ("c",)], codes_of(0, 1, 255, 3), labels, cutoffs=[1])
    assert evaluation.random_precision == (2 / 4 + 0 / 4) / 2
    assert list(evaluation.precision) == [1]


def test_counting_does_not_depend_on_the_size_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    codes, queries = (rng.integers(0, 256, (count, 2), dtype=np.uint8) for count in (40, 11))
    labels, query_labels = ([(name,) for name in rng.choice(list("ab"), count)] for count in (40, 11))
    whole = count_by_distance(queries, query_labels, codes, labels)
    monkeypatch.setattr("snuh.codes.BLOCK_PAIRS", 90)
    blocked = count_by_distance(queries, query_labels, codes, labels)
    np.testing.assert_array_equal(blocked.documents, whole.documents)
    np.testing.assert_array_equal(blocked.hits, whole.hits)


def test_an_evaluation_can_be_written_as_json() -> None:
    evaluation = evaluate_codes(codes_of(0), [("a",)], codes_of(0, 1), [("a",), ("b",)])
    content = json.loads(json.dumps(evaluation.to_json()))
    assert content["precision"] == {"1": 1.0, "100": 0.5}
    assert content["health"]["alive"] is False
    assert len(content["health"]["ones_fraction"]) == 8


def test_a_string_is_not_taken_for_a_tuple_of_labels() -> None:
    with pytest.raises(InputError, match="needs a tuple of labels, got a string"):
        precision_at_k(codes_of(0), [("sport",)], codes_of(0), ["sport"])


def test_codes_and_labels_must_have_equal_lengths() -> None:
    with pytest.raises(InputError, match="each query document needs labels: got 1 codes and 2 labels"):
        precision_at_k(codes_of(0), [("a",), ("b",)], codes_of(0), [("a",)])


def test_queries_without_any_label_cannot_be_scored() -> None:
    with pytest.raises(InputError, match="no query has labels"):
        precision_at_k(codes_of(0), [()], codes_of(0), [("a",)])


def test_an_empty_database_cannot_be_scored() -> None:
    with pytest.raises(InputError, match="the database is empty"):
        precision_at_k(codes_of(0), [("a",)], np.zeros((0, 1), dtype=np.uint8), [])


@pytest.mark.parametrize(("options", "message"), [({"cutoffs": [0]}, "cutoff"), ({"radius": -1}, "radius")])
def test_impossible_cutoffs_and_radii_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_codes(codes_of(0), [("a",)], codes_of(0), [("a",)], **options)  # type: ignore[arg-type]


def test_health_counts_codes_ones_and_constant_bits() -> None:
    health = code_health(codes_of(0b10000001, 0b10000001, 0b10000010, 0b10000000))
    assert (health.documents, health.bits, health.distinct_codes) == (4, 8, 3)
    assert health.largest_bucket_fraction == 0.5
    assert health.ones_fraction == (1.0, 0, 0, 0, 0, 0, 0.25, 0.5)
    assert health.constant_bits == 6


def test_bit_correlation_is_numpys_over_the_bits_that_vary() -> None:
    bits = np.random.default_rng(0).random((500, 16)) < np.linspace(0.1, 0.9, 16)
    bits[:, 3] = bits[:, 4]  # a pair that agrees
    bits[:, 9] = True  # a bit that does not vary
    varying = np.delete(bits, 9, axis=1)
    expected = np.abs(np.corrcoef(varying.T)[np.triu_indices(15, k=1)]).mean()
    assert code_health(pack(bits)).bit_correlation == pytest.approx(expected, abs=1e-12)


def test_bit_correlation_is_unknown_where_nothing_varies() -> None:
    assert code_health(codes_of(5, 5)).bit_correlation is None


def test_random_codes_are_alive() -> None:
    codes = np.random.default_rng(0).integers(0, 256, (100, 8), dtype=np.uint8)
    assert code_health(codes).alive


@pytest.mark.parametrize(
    ("case", "codes"),
    [
        ("two codes", codes_of(0, 255, 0, 255)),
        ("half of the bits constant", codes_of(*range(16))),
        ("most documents on one code", codes_of(*range(100), *[255] * 101)),
    ],
)
def test_collapsed_codes_are_not_alive(case: str, codes: np.ndarray) -> None:
    assert not code_health(codes).alive, case


def test_one_code_less_or_one_bit_more_keeps_codes_alive() -> None:
    assert code_health(codes_of(0, 255, 15, 240)).alive
    assert code_health(codes_of(*range(32))).alive
    assert code_health(codes_of(*range(100), *[255] * 100)).alive


def test_health_needs_a_code() -> None:
    with pytest.raises(InputError, match="there are no codes"):
        code_health(np.zeros((0, 8), dtype=np.uint8))


@pytest.mark.slow
def test_random_codes_of_the_papers_size_score_at_chance() -> None:
    rng = np.random.default_rng(0)
    codes, queries = (rng.integers(0, 256, (count, 8), dtype=np.uint8) for count in (11016, 3668))
    labels, query_labels = ([(str(name),) for name in rng.integers(0, 20, n)] for n in (11016, 3668))
    score = precision_at_k(queries, query_labels, codes, labels)
    assert score == pytest.approx(0.05, abs=0.005)  # random codes, twenty even classes


@given(
    grades=st.dictionaries(st.sampled_from("abcdefghijkl"), st.integers(0, 3), min_size=1),
    ranking=st.permutations("abcdefghijklmnop"),
    found=st.integers(0, 16),
)
def test_rankings_are_judged_as_by_trec_eval(grades: dict[str, int], ranking: list[str], found: int) -> None:
    assume(any(grades.values()))
    ranking = ranking[:found]
    measures = {"ndcg_cut_10", "map", "recall_100", "recip_rank"}
    evaluator = pytrec_eval.RelevanceEvaluator({"q": grades}, measures)
    scores = {doc_id: float(len(ranking) - rank) for rank, doc_id in enumerate(ranking)}
    quality = ranking_quality(ranking, grades)
    expected = evaluator.evaluate({"q": scores}).get("q") or dict.fromkeys(measures, 0.0)
    assert quality.ndcg_at_10 == pytest.approx(expected["ndcg_cut_10"])
    assert quality.average_precision == pytest.approx(expected["map"])
    assert quality.recall_at_100 == pytest.approx(expected["recall_100"])
    assert quality.reciprocal_rank == pytest.approx(expected["recip_rank"])


def test_the_interval_of_a_difference_covers_the_mean_and_shrinks_with_queries() -> None:
    differences = np.random.default_rng(0).normal(0.1, 1.0, size=400)
    low, high = paired_interval(differences[:25].tolist())
    assert low < differences[:25].mean() < high
    narrow_low, narrow_high = paired_interval(differences.tolist())
    error = 1.96 * differences.std() / 20.0
    assert narrow_low == pytest.approx(differences.mean() - error, abs=0.02)
    assert narrow_high == pytest.approx(differences.mean() + error, abs=0.02)
