"""What a collection promises, one behaviour at a time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snuh.collection import Added, Collection
from snuh.corpus import Document
from snuh.errors import InputError
from tests.collection.worlds import (
    UNKNOWN,
    WORDS,
    assert_answers_like,
    document,
    documents,
    stored,
    tiny_thresholds,
    toy_model,
)


@pytest.fixture
def collection(folder: Path) -> Iterator[Collection]:
    with Collection(folder) as opened:
        yield opened


def ids(hits: list[Any]) -> list[str]:
    return [hit.document.id for hit in hits]


# Searching


def test_equally_near_documents_come_in_order_of_insertion(workspace: Path) -> None:
    with Collection.create(workspace / "c", toy_model()) as collection:
        collection.add(document(number, "ship") for number in (5, 3, 9, 1))
        collection.add([document(3, "ship", again=True)])
        assert ids(collection.search("ship", mode="codes", k=3)) == ["d5", "d3", "d9"]


def test_a_replaced_document_keeps_its_position_and_a_deleted_one_loses_it(collection: Collection) -> None:
    collection.add([document(4, "fog", year=1)])
    assert [one.id for one in collection.documents()][4] == "d4"
    assert collection.get("d4") == document(4, "fog", year=1)
    collection.delete(["d4"])
    collection.add([document(4, "fog")])
    assert [one.id for one in collection.documents()][-1] == "d4"


def test_a_large_k_returns_all_documents_with_a_code(collection: Collection) -> None:
    collection.add([Document("silent", UNKNOWN), Document("empty", "")])
    assert len(collection.search("ship", mode="codes", k=1_000)) == 12
    assert len(collection) == 14 and collection.info().searchable == 12


def test_a_filter_returns_k_documents_where_k_exist(workspace: Path) -> None:
    with Collection.create(workspace / "c", toy_model()) as collection:
        collection.add(document(number, "ship", rare=False) for number in range(300))
        collection.add(document(number, "fog", rare=True) for number in range(300, 305))
        found = collection.search("ship", mode="codes", k=5, where="rare = true")
        assert ids(found) == [f"d{number}" for number in range(300, 305)]


def test_a_radius_leaves_out_what_is_farther(collection: Collection) -> None:
    everything = collection.search("ship", mode="codes", k=100)
    for radius in (0, 3, 16, 1_000):
        found = collection.search("ship", k=100, radius=radius)
        assert found == [hit for hit in everything if hit.distance <= radius]


def test_similar_documents_leave_out_the_document_itself(workspace: Path) -> None:
    with Collection.create(workspace / "c", toy_model()) as collection:
        collection.add(document(number, "ship") for number in range(5))
        assert ids(collection.similar("d3", k=4)) == ["d0", "d1", "d2", "d4"]
        assert ids(collection.similar("d3", k=2)) == ["d0", "d1"]
        assert ids(collection.similar("d3", where='id = "d3"')) == []


@pytest.mark.parametrize("rerank", ["asymmetric", "cosine"])
def test_reranking_orders_the_same_documents_by_score(collection: Collection, rerank: Any) -> None:
    plain = collection.search("ship fog", mode="codes", k=12)
    ranked = collection.search("ship fog", k=12, rerank=rerank)
    scores = [hit.score for hit in ranked]
    assert all(isinstance(score, float) for score in scores)
    assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]
    assert {hit.document.id: hit.distance for hit in ranked} == {h.document.id: h.distance for h in plain}
    assert ids(collection.search("ship fog", k=3, rerank=rerank)) == ids(ranked)[:3]
    shortlisted = collection.search("ship fog", k=2, rerank=rerank, shortlist=4)
    assert set(ids(shortlisted)) <= set(ids(plain)[:4])


def test_the_cosine_of_a_document_with_itself_is_one(collection: Collection) -> None:
    text = collection.get("d2").text
    best = collection.search(text, rerank="cosine")[0]
    assert best.score == pytest.approx(1.0, abs=1e-6)


def test_search_many_returns_the_results_of_single_searches(collection: Collection) -> None:
    texts = ["ship", UNKNOWN, "fog ice"]
    for mode in ("hybrid", "words", "codes"):
        found = collection.search_many(texts, mode=mode, k=4)  # type: ignore[arg-type]
        assert found == [collection.search(text, mode=mode, k=4) for text in texts]  # type: ignore[arg-type]
    assert collection.search_many([]) == []


def test_a_code_finds_what_its_text_finds(collection: Collection) -> None:
    (found,) = collection.search_codes(toy_model().encode(["ship fog"]), k=5)
    by_text = collection.search("ship fog", mode="codes", k=5)  # which orders ties by words
    assert [hit.distance for hit in found] == [hit.distance for hit in by_text]


def test_an_empty_collection_answers_with_nothing(workspace: Path) -> None:
    with Collection.create(workspace / "c", toy_model()) as collection:
        assert len(collection) == 0
        assert collection.search("ship") == []
        assert list(collection.documents()) == []
        assert collection.info().health is None
        assert collection.delete([]) == 0
        assert collection.add([]) == Added(0, 0, 0)


# Fast lists


def test_approximate_searches_follow_every_change(workspace: Path) -> None:
    with (
        tiny_thresholds(changes=5, batch=1_000),
        Collection.create(workspace / "c", toy_model()) as collection,
    ):
        collection.add(documents(40))
        collection.build_index(recall=1.0)
        for number in range(40, 80):
            collection.add([document(number), document(number - 20, "fog")])
            collection.delete([f"d{number - 40}"])
            stored_ids = {one.id for one in collection.documents()}
            found = collection.search("ship fog", k=100, approximate=True)
            assert set(ids(found)) == stored_ids  # k exceeds their number
        assert_answers_like(collection, stored(workspace / "c"))


def test_documents_can_be_added_after_an_index_was_built_on_none(workspace: Path) -> None:
    with tiny_thresholds(), Collection.create(workspace / "c", toy_model()) as collection:
        collection.build_index()
        collection.add(documents(12))
        assert collection.search("ship", k=20, approximate=True) == collection.search(
            "ship", k=20, mode="codes"
        )
    with Collection(workspace / "c") as collection:
        assert_answers_like(collection, stored(workspace / "c"))


@pytest.mark.parametrize("seed", [0, 1])
def test_the_index_of_an_older_model_is_not_used(workspace: Path, seed: int) -> None:
    with Collection.create(workspace / "c", toy_model()) as collection:
        collection.add(documents(300))
        collection.build_index()
        collection.rehash(toy_model(seed))
        assert collection.info().index is None
        assert collection.search("ship", approximate=True) == collection.search("ship", mode="codes")


def test_the_index_of_a_newer_store_is_not_used_after_a_restore(workspace: Path) -> None:
    folder = workspace / "c"
    with Collection.create(folder, toy_model()) as collection:
        collection.add(documents(30))
    backup = (folder / "store.sqlite").read_bytes()
    with Collection(folder) as collection:
        collection.add(document(number) for number in range(100, 150))
        collection.build_index()
    (folder / "store.sqlite").write_bytes(backup)
    with Collection(folder) as collection:
        assert_answers_like(collection, stored(folder))
        assert collection.info().index is None
        assert collection.search("ship", approximate=True) == collection.search("ship", mode="codes")
        collection.build_index()
        assert len(collection.search("ship", k=100, approximate=True)) == 30


def test_a_damaged_index_file_is_not_used(workspace: Path) -> None:
    folder = workspace / "c"
    with Collection.create(folder, toy_model()) as collection:
        collection.add(documents(300))
        collection.build_index(recall=1.0)
        expected = collection.search("ship", mode="codes", k=300)
    whole = (folder / "lists.safetensors").read_bytes()
    for damaged in (
        b"",
        b"x",
        whole[:-1],
        whole[:50],
        *(_flipped(whole, p) for p in range(0, len(whole), 97)),
    ):
        (folder / "lists.safetensors").write_bytes(damaged)
        with Collection(folder) as collection:
            assert collection.search("ship", k=300, approximate=True) == expected


def _flipped(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 4]) + content[position + 1 :]


# Looking up


def test_documents_come_back_as_they_were_given(workspace: Path) -> None:
    given = [
        Document("a", "ship\0 with NUL", ("x", "é"), "train", {"n": 2**70, "deep": {"l": [1, None, 2.5]}}),
        Document("ß/\n\t日本 \U0001f600", "", (), None, {}),
        Document(" ", " \r\n ", ("",), "val", {"": "", "a.b": True, "x\0": "\0"}),
    ]
    with Collection.create(workspace / "c", toy_model()) as collection:
        collection.add(given)
        assert list(collection.documents()) == given
        assert [collection.get(one.id) for one in given] == given


def test_membership_is_by_exact_id(collection: Collection) -> None:
    assert "d1" in collection and "D1" not in collection and "" not in collection
    assert 1 not in collection and None not in collection
    assert "\ud800" not in collection


def test_documents_can_be_filtered(collection: Collection) -> None:
    collection.add([Document("new", "ship", ("x",), "test", {"year": 2020})])
    assert [one.id for one in collection.documents(where="year > 2000")] == ["new"]
    assert [one.id for one in collection.documents(where='labels contains "x"')] == ["new"]
    assert len(list(collection.documents(where="year <= 2000"))) == 12


def test_documents_may_be_changed_while_they_are_listed(collection: Collection) -> None:
    for one in collection.documents():
        collection.add([Document(one.id, one.text, metadata={"seen": True})])
    assert len(list(collection.documents(where="seen = true"))) == 12


def test_ids_to_delete_may_come_from_a_search_of_the_same_collection(collection: Collection) -> None:
    gone = collection.delete(hit.document.id for text in WORDS for hit in collection.search(text, k=1))
    assert 0 < gone < 12 and len(collection) == 12 - gone
    assert_answers_like(collection, stored(collection.folder))


def test_mappings_are_taken_like_documents(collection: Collection) -> None:
    collection.add([{"id": "m", "text": "ship", "labels": ["x"], "split": "test", "year": 3}])
    assert collection.get("m") == Document("m", "ship", ("x",), "test", {"year": 3})


def test_of_several_documents_with_one_id_the_last_counts(collection: Collection) -> None:
    added = collection.add([document(50, "ship"), document(51, "ice"), document(50, UNKNOWN)])
    assert added == Added(2, 0, 1)
    assert collection.get("d50").text == UNKNOWN
    assert [one.id for one in collection.documents()][-2:] == ["d50", "d51"]


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be an integer of at least 1, got 0"),
        ({"k": 2.5}, "k must be an integer of at least 1, got 2.5"),
        ({"radius": -1}, "radius must be an integer of at least 0, got -1"),
        ({"rerank": "cosin"}, 'did you mean "cosine"'),
        ({"shortlist": 5}, "needs rerank"),
        ({"where": "yaer = 1"}, 'no document has a field "yaer" (did you mean "year"?)'),
        ({"where": "year ="}, "filter, character"),
        ({"limit": 3}, "limit"),
    ],
)
def test_invalid_options_are_refused(collection: Collection, options: dict[str, Any], message: str) -> None:
    for search in (lambda: collection.search("ship", **options), lambda: collection.similar("d1", **options)):
        with pytest.raises(InputError) as caught:
            search()
        assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", [UNKNOWN, "", "  \n"])
def test_a_document_without_a_known_word_has_no_similar_ones(collection: Collection, text: str) -> None:
    collection.add([Document("silent", text)])
    hits = collection.similar("silent")
    assert not hits and "knows no word" in str(hits.note)


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_query_is_refused(collection: Collection, text: str) -> None:
    with pytest.raises(InputError, match="the query is empty: expected at least one word"):
        collection.search(text)


def test_an_unknown_id_is_refused_with_the_nearest_one(collection: Collection) -> None:
    collection.add([Document("invoice-17", "ship")])
    for call in (collection.get, collection.similar, lambda name: collection.delete(["d1", name])):
        with pytest.raises(InputError, match=r"no document 'invoice-71' \(did you mean \"invoice-17\"\?\)"):
            call("invoice-71")
    assert "d1" in collection  # nothing was deleted
    for name in ("\ud800", "x\ny"):
        with pytest.raises(InputError, match="has no document") as caught:
            collection.get(name)
        assert "\n" not in str(caught.value)


def test_an_id_that_is_not_a_string_is_refused(collection: Collection) -> None:
    collection.add([Document("1", "ship")])
    for doc_id in (1, None, b"1"):
        with pytest.raises(InputError, match="an id must be a string"):
            collection.delete([doc_id])  # type: ignore[list-item]
    assert "1" in collection


def test_a_single_id_instead_of_a_list_is_refused(collection: Collection) -> None:
    with pytest.raises(InputError, match="put it into a list"):
        collection.delete("d1")


@pytest.mark.parametrize(
    "bad",
    [
        Document("bad", "lone \ud800 surrogate"),
        Document("bad \udfff", "ship"),
        Document("bad", "ship", ("\ud800",)),
        Document("bad", "ship", (), "\ud800"),
        Document("bad", "ship", metadata={"x": float("nan")}),
        Document("bad", "ship", metadata={"x": [float("inf")]}),
        Document("bad", "ship", metadata={"x": object()}),  # type: ignore[dict-item]
        Document("bad", "ship", metadata={"x": b"bytes"}),  # type: ignore[dict-item]
        Document("bad", "ship", metadata={"\ud800": 1}),
        Document("bad", "ship", metadata={"x": np.float32(1)}),  # type: ignore[dict-item]
        Document("bad", "ship", metadata={None: 2}),  # type: ignore[dict-item]
        Document("bad", "ship", metadata={1: "a", "1": "b"}),  # type: ignore[dict-item]
        Document("bad", "ship", metadata={"x": {1: "a", "1": "b"}}),  # type: ignore[dict-item]
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_of_its_batch_is_kept(
    collection: Collection, bad: Document
) -> None:
    before = stored(collection.folder)
    with pytest.raises(InputError) as caught:
        collection.add([document(80), bad, document(1, "fog")])
    assert "\n" not in str(caught.value) and "'bad" in str(caught.value)
    assert_answers_like(collection, before)
    str(caught.value).encode()  # can be printed


def test_metadata_nested_too_deeply_is_refused(collection: Collection) -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InputError, match="'deep': the field \"x\" is nested more than 32"):
        collection.add([Document("deep", "ship", metadata={"x": deep})])
    assert len(collection) == 12


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": "ship"}, 'has no "id"'),
        ({"id": "x"}, "text"),
        ({"id": "x", "text": 5}, '"text" must be a string'),
        ("just a text", "must be a Document or a mapping"),
        (7, "must be a Document or a mapping"),
    ],
)
def test_values_that_are_not_documents_are_refused(collection: Collection, given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        collection.add([given])
    assert len(collection) == 12


def test_a_document_that_is_too_long_is_refused(collection: Collection) -> None:
    with pytest.raises(InputError, match=r'"d90" has 11 characters, the limit is 10: split it'):
        collection.add([document(90, "ship", "market"[:6])], max_characters=10)
    assert collection.add([document(90, "ship market")], max_characters=11).inserted == 1


def test_a_collection_needs_a_model_of_texts(workspace: Path, collection: Collection) -> None:
    from snuh.model import Model

    rows_only = Model(toy_model().encoder)
    with pytest.raises(InputError, match="needs a model of texts"):
        Collection.create(workspace / "other", rows_only)
    with pytest.raises(InputError, match="needs a model of texts"):
        collection.rehash(rows_only)
    assert not (workspace / "other").exists()


def test_a_missing_folder_is_reported(workspace: Path) -> None:
    with pytest.raises(InputError, match="there is no collection"):
        Collection(workspace / "nothing")
    (workspace / "file").write_text("x")
    with pytest.raises(InputError, match="is not a collection"):
        Collection(workspace / "file")


# What a server asks of it


def test_the_version_changes_with_every_write_of_any_process(collection: Collection, folder: Path) -> None:
    seen = [collection.version(), collection.version()]
    assert seen[0] == seen[1]
    with Collection(folder) as other:
        other.add([document(50)])
        seen.append(collection.version())
        other.delete(["d50"])
        seen.append(collection.version())
        assert other.version() == seen[-1]
    assert len(set(seen)) == 3


def test_a_sample_comes_from_all_over_the_collection(collection: Collection) -> None:
    collection.add([Document("hidden", UNKNOWN)])
    sample = collection.sample(5)
    assert [one.id for one in sample.documents] == ["d0", "d2", "d5", "d8", "d11"]
    texts = [one.text for one in sample.documents]
    assert np.array_equal(sample.codes, collection.model.encode(texts))
    assert len(collection.sample(100).documents) == 12
    collection.delete_where("id != ''")
    assert collection.sample(5).documents == []


def test_search_many_agrees_with_search_for_all_options(collection: Collection) -> None:
    collection.build_index(k=3)
    texts = [*WORDS, UNKNOWN]
    for options in (
        {},
        {"approximate": True},
        {"rerank": "cosine"},
        {"where": "year = 2000", "approximate": True},
    ):
        together = collection.search_many(texts, mode="codes", k=4, **options)  # type: ignore[arg-type]
        assert together[-1] == []
        assert together[:-1] == [collection.search(text, mode="codes", k=4, **options) for text in WORDS]  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(4))
def test_filters_stay_true_while_documents_are_written(folder: Path, seed: int) -> None:
    """Masks of filters are updated by each write instead of computed again."""
    rng = random.Random(seed)
    filters = ["year = 2000", "year > 2000", "not year = 2001", 'id in ("d1", "d40")', "labels is null"]
    with tiny_thresholds(changes=6), Collection(folder) as collection, Collection(folder) as other:
        mirror = stored(folder)
        for step in range(60):
            writer = rng.choice([collection, other])
            action = rng.random()
            if action < 0.6:
                numbers = rng.sample(range(50), rng.randint(1, 5))
                new = [document(n, *rng.sample(WORDS, 2), year=2000 + rng.randrange(3)) for n in numbers]
                if rng.random() < 0.2:
                    new = [replace(one, text=UNKNOWN) for one in new]
                writer.add(new)
                mirror.add(new)
            elif action < 0.8 and len(mirror.documents) > 5:
                gone = rng.sample(sorted(mirror.documents), 3)
                writer.delete(gone)
                mirror.delete(gone)
            elif action < 0.85:
                writer.build_index()
            for where in rng.sample(filters, 3):
                expected = mirror.search("ship", k=60, where=where)
                assert collection.search("ship", mode="codes", k=60, where=where) == expected, (step, where)
