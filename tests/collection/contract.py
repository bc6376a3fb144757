"""The contract of collections: a file of tests that has an `engine` and PROMISES imports all of these.

A test runs where the promise that it needs is made, see `promises`.
"""

from __future__ import annotations

import json
import random
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from snuh.collection import Added, Collection, ensure_absent, is_collection
from snuh.collection.backend import NewDocument
from snuh.collection.copy import copy_collection
from snuh.corpus import Document
from snuh.dedup import deduplicate
from snuh.errors import CollectionError, InputError, UnknownDocumentError
from snuh.filters import Filter, matches
from snuh.hasher import TextHasher
from tests.collection.engines import Engine
from tests.collection.like_dictionary import CollectionLikeDictionary
from tests.collection.promises import Promise, needs
from tests.collection.worlds import (
    UNKNOWN,
    WORDS,
    Mirror,
    assert_answers_like,
    document,
    documents,
    record,
    temporary_folder,
    toy_model,
)
from tests.filters.worlds import filters, records

__all__ = ["collection"]  # and every test below, see the end
QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def collection(engine: Engine) -> Iterator[Collection]:
    """Twelve documents."""
    with Collection.create(engine.fresh(), toy_model()) as made:
        made.add(documents(12, year=2000))
        yield made


def ids(hits: list[Any]) -> list[str]:
    return [hit.document.id for hit in hits]


# Adding, replacing, deleting, searching


@needs(Promise.READ_AFTER_WRITE)
def test_it_answers_like_a_dictionary(engine: Engine) -> None:
    class Here(CollectionLikeDictionary):
        def fresh(self) -> Path | str:
            return engine.fresh()

    few = settings(
        max_examples=4, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(Here, settings=few)  # type: ignore[no-untyped-call]


@needs(Promise.STABLE_TIES)
def test_a_search_equals_brute_force_with_ties_ordered_by_words(engine: Engine) -> None:
    rng = random.Random(0)
    mirror = Mirror(toy_model())
    with Collection.create(engine.fresh(), toy_model()) as collection:
        mirror.has_words = collection.info().has_words
        for batch in range(4):
            some = [document(rng.randrange(300), kind=batch, even=batch % 2 == 0) for _ in range(100)]
            collection.add(some)
            mirror.add(some)
            gone = rng.sample(sorted(mirror.documents), 10)
            collection.delete(gone)
            mirror.delete(gone)
        assert_answers_like(collection, mirror)
        for text in WORDS[:4]:
            for options in (
                {"k": 7},
                {"k": 1_000, "radius": 5},
                {"k": 5, "where": "even = true and kind > 0"},
                {"k": 30, "where": 'id < "d2"', "radius": 6},
            ):
                assert collection.search(text, mode="codes", **options) == mirror.search(text, **options)  # type: ignore[arg-type]
        some_id = next(iter(mirror.documents))
        expected = mirror.search(mirror.documents[some_id].text, k=9, but=some_id)
        assert [hit.distance for hit in collection.similar(some_id, k=9)] == [
            hit.distance for hit in expected
        ]


@needs(Promise.LOSSLESS_DOCUMENTS)
def test_documents_come_back_as_they_were_given(engine: Engine) -> None:
    given = [
        Document("a", "ship é", ("x", "é"), "train", {"z": 2**70, "deep": {"l": [1, None, 2.5]}, "b": 1e300}),
        Document("ß/\n\t日本 \U0001f600", "", (), None, {}),
        Document(
            " ",
            " \r\n\\x \\u0000 \x01",
            ("",),
            "val",
            {"": "", "a.b": True, "x'\"\\": "\\", "f": 0.1, "n": -0.0},
        ),
        Document("long", "fog " * 50_000, metadata={"many": ["é" * 3] * 2_000}),
    ]
    with Collection.create(engine.fresh(), toy_model()) as collection:
        collection.add(given)
        back = list(collection.documents())
        assert back == given
        # Equal is not enough: 1e300 is no integer, and names keep their order.
        assert [json.dumps(one.metadata) for one in back] == [json.dumps(one.metadata) for one in given]
        assert [collection.get(one.id) for one in given] == given
        assert collection.search("ship", k=1)[0].document == given[0]


@needs(Promise.EXACT_SEARCH)
def test_an_empty_collection_answers_with_nothing(engine: Engine) -> None:
    with Collection.create(engine.fresh(), toy_model()) as collection:
        assert len(collection) == 0 and "x" not in collection
        assert collection.search("ship") == [] and list(collection.documents()) == []
        assert collection.info().health is None and collection.sample(3).documents == []
        assert collection.delete([]) == 0 and collection.add([]) == Added(0, 0, 0)
        assert collection.build_index().documents == 0


@needs(Promise.UPSERTS)
def test_counts_tell_what_was_inserted_and_replaced(collection: Collection) -> None:
    added = collection.add([document(50), document(3, UNKNOWN), document(50, "ice")])
    assert added == Added(1, 1, 1)
    assert len(collection) == 13 and collection.info().searchable == 12
    assert collection.delete(["d50", "d3", "d3"]) == 2
    assert collection.delete_where("year = 2000") == 11
    assert len(collection) == 0


# Words

TEXTS = [
    "The ship left the harbour at dawn",
    "Ships and harbours, harbours and ships",
    "dawn over the market",
    "An unheard-of zeppelin over the harbour",
    "zeppelins",
    "the and of",
]
QUERIES = [
    "zeppelin",
    "ship dawn",
    '"over the harbour"',
    "+harbour -ship dawn",
    "the",
    "sail rope",
    "harbours",
]


@needs(Promise.WORDS)
def test_words_are_searched_as_in_a_folder_that_never_had_others(engine: Engine, tmp_path: Path) -> None:
    hasher = TextHasher("itq", 8, features={"min_df": 1, "max_df": 1.0, "language": "en"})
    stemming = hasher.fit(TEXTS * 4).model_
    assert stemming is not None
    with Collection.create(engine.fresh(), toy_model()) as collection:
        collection.add(Document(f"n{number}", text) for number, text in enumerate(TEXTS * 2))
        collection.search("ship")  # reads the index before it changes
        collection.add([Document("n1", "fog over the market", metadata={"year": 1}), Document("x", "ships")])
        collection.delete(["n2", "n11"])
        for model in (toy_model(), stemming):
            if model is stemming:
                collection.rehash(model)
            with Collection.create(tmp_path / model.method, model) as fresh:
                fresh.add(collection.documents())
                for query in QUERIES:
                    for options in ({}, {"mode": "words"}, {"where": "year is null", "k": 3}):
                        found, expected = (one.search(query, **options) for one in (collection, fresh))  # type: ignore[arg-type]
                        assert found.note == expected.note
                        assert [(hit.document, hit.distance, hit.matched) for hit in found] == [
                            (hit.document, hit.distance, hit.matched) for hit in expected
                        ]
                        assert [hit.score for hit in found] == pytest.approx(
                            [hit.score for hit in expected], abs=1e-4
                        )
            assert collection.check() == []


@needs(Promise.WORDS)
def test_the_index_of_words_can_be_left_out(engine: Engine) -> None:
    with Collection.create(engine.fresh(), toy_model(), words=False) as collection:
        collection.add(documents(12))
        collection.delete(["d3"])
        collection.rehash(toy_model(1))
        assert not collection.info().has_words and collection.check() == []
        assert "without an index of words" in str(collection.search("ship").note)
        with pytest.raises(InputError, match="this collection has no index of words"):
            collection.search("ship", mode="words")
        target = engine.fresh()
        copy_collection(collection.location, target)
    with Collection(target) as copied:
        assert not copied.info().has_words and len(copied) == 11


# Filters


@needs(Promise.FILTERS)
@settings(QUIET, max_examples=25)
@given(data=st.data())
def test_a_filter_means_the_same_everywhere(data: st.DataObject, shared: Collection) -> None:
    found = data.draw(st.lists(records(), min_size=3, max_size=8, unique_by=lambda one: one["id"]))
    given = []
    for number, one in enumerate(found):
        own = {"split": one["split"], "labels": tuple(one["labels"])}
        rest = {name: value for name, value in one.items() if name not in ("id", "split", "labels")}
        given.append(Document(one["id"] or f"number {number}", "ship", metadata=rest, **own))
    shared.delete_where('id != "none"')
    shared.add(given)
    held = [one for one in given if one.id in shared]
    for where in data.draw(st.lists(filters, min_size=4, max_size=8)):
        assert _met(shared, where) == [one.id for one in held if matches(where, record(one))]


def _met(collection: Collection, where: Filter) -> list[str]:
    """Ask the backend itself: the collection refuses fields that no document ever had."""
    with collection._backend.reading():
        found = collection._backend.documents(limit=100, where=where)
        seqs = [seq for seq, _ in found]
        assert collection._backend.seqs_where(where).tolist() == seqs
    return [one.id for _, one in found]


@pytest.fixture(scope="module")
def shared(engine: Engine) -> Iterator[Collection]:
    """For many examples of one test."""
    with Collection.create(engine.fresh(), toy_model()) as made:
        yield made


@needs(Promise.CLEAR_ERRORS)
def test_an_unknown_field_is_refused_with_the_nearest(collection: Collection) -> None:
    for ask in (
        lambda: collection.search("ship", where="yaer = 1"),
        lambda: collection.delete_where("yaer = 1"),
    ):
        with pytest.raises(InputError, match=r'no document has a field "yaer" \(did you mean "year"\?\)'):
            ask()


# Other ways to search


@needs(Promise.EXACT_SEARCH)
@pytest.mark.parametrize("rerank", ["asymmetric", "cosine"])
def test_reranking_orders_the_same_documents_by_score(collection: Collection, rerank: Any) -> None:
    plain = collection.search("ship fog", mode="codes", k=12)
    ranked = collection.search("ship fog", k=12, rerank=rerank)
    scores = [hit.score for hit in ranked]
    assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]
    assert sorted(ids(ranked)) == sorted(ids(plain))


@needs(Promise.EXACT_SEARCH)
def test_many_queries_and_codes_find_what_one_finds(collection: Collection) -> None:
    found = collection.search_many(["ship", UNKNOWN, "fog ice"], k=4, mode="codes")
    ship, fog = (collection.search(text, k=4, mode="codes") for text in ("ship", "fog ice"))
    assert found == [ship, [], fog]
    (by_code,) = collection.search_codes(toy_model().encode(["ship"]), k=12)  # ties in order of insertion
    assert sorted(by_code, key=lambda hit: (hit.distance, hit.document.id)) == sorted(
        collection.search("ship", k=12, mode="codes"), key=lambda hit: (hit.distance, hit.document.id)
    )
    with pytest.raises(InputError, match="the codes must have 16 bits, got 32: encode with the same"):
        collection.search_codes(toy_model(bits=32).encode(["ship"]))
    unknown = collection.search(UNKNOWN, mode="codes")
    assert not unknown and "knows no word" in str(unknown.note)
    nearest = collection.search("ship", k=1)[0]
    assert collection.explain("ship", nearest.document.id).distance == nearest.distance


@needs(Promise.LOSSLESS_DOCUMENTS)
def test_duplicates_are_found(collection: Collection) -> None:
    collection.add(
        [Document("copy", collection.get("d2").text), Document("again", collection.get("d2").text)]
    )
    report = deduplicate(collection.model, collection.documents(), threshold=0.99)
    cluster = {one.id for one in report.duplicates if one.representative == "d2"}
    assert {"copy", "again"} <= cluster


@needs(Promise.APPROXIMATE_SEARCH)
def test_fast_searches_follow_every_change(collection: Collection) -> None:
    made = collection.build_index(k=3, recall=0.9)
    assert made.documents == 12 and made.recall >= 0.9
    assert collection.info().index == made
    collection.add(document(number) for number in range(20, 40))
    collection.delete(["d1"])
    held = {one.id for one in collection.documents()}
    assert set(ids(collection.search("ship fog", k=100, approximate=True))) == held
    assert set(ids(collection.search("fog", k=100, approximate=True, where="year = 2000"))) < held
    best = collection.search("ship", k=3, mode="codes")
    assert [hit.distance for hit in collection.search("ship", k=3, approximate=True)] == [
        hit.distance for hit in best
    ]


@needs(Promise.APPROXIMATE_SEARCH)
def test_without_an_index_fast_searches_are_exact(collection: Collection) -> None:
    assert collection.info().index is None
    assert collection.search("ship", approximate=True) == collection.search("ship", mode="codes")


@needs(Promise.ROW_CONSISTENCY)
def test_a_sample_comes_from_all_over(collection: Collection) -> None:
    collection.add([Document("hidden", UNKNOWN)])
    sample = collection.sample(5)
    assert ids_of(sample.documents) == ["d0", "d2", "d5", "d8", "d11"]
    assert np.array_equal(sample.codes, collection.model.encode([one.text for one in sample.documents]))


def ids_of(found: list[Document]) -> list[str]:
    return [one.id for one in found]


# Bad input


@needs(Promise.CLEAR_ERRORS)
def test_an_unknown_id_is_refused_with_the_nearest_one(collection: Collection) -> None:
    collection.add([Document("invoice-17", "ship")])
    for call in (collection.get, collection.similar, lambda name: collection.delete(["d1", name])):
        with pytest.raises(UnknownDocumentError, match=r"'invoice-71' \(did you mean \"invoice-17\"\?\)"):
            call("invoice-71")
    assert "d1" in collection
    for odd in ("\ud800", "\0", "x" * 10_000):
        assert odd not in collection


@needs(Promise.CHECKED_BATCHES)
@pytest.mark.parametrize(
    "bad",
    [
        Document("bad", "lone \ud800 surrogate"),
        Document("bad", "ship", metadata={"x": float("nan")}),
        Document("bad", "ship", metadata={"\ud800": 1}),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_of_its_batch_is_kept(
    collection: Collection, bad: Document
) -> None:
    before = list(collection.documents())
    with pytest.raises(InputError, match="bad") as caught:
        collection.add([document(80), bad, document(1, "fog")])
    assert "\n" not in str(caught.value)
    assert list(collection.documents()) == before


@needs(Promise.ATOMIC_CREATE)
def test_a_collection_is_made_once(engine: Engine, collection: Collection) -> None:
    address = collection.location
    assert is_collection(address)
    for make in (lambda: Collection.create(address, toy_model()), lambda: ensure_absent(address)):
        with pytest.raises(InputError, match="is a collection already"):
            make()
    assert len(collection) == 12
    fresh = engine.fresh()
    assert not is_collection(fresh)
    ensure_absent(fresh)
    with pytest.raises(InputError, match="there is no collection"):
        Collection(fresh)


# Other models


@needs(Promise.ATOMIC_REHASH)
def test_a_rehash_changes_all_codes_at_once(collection: Collection) -> None:
    collection.build_index(k=3)
    mirror = Mirror(toy_model(2, bits=24), {one.id: one for one in documents(12, year=2000)})
    fractions: list[float] = []
    with Collection(collection.location) as other:
        collection.rehash(mirror.model, progress=fractions.append)
        assert fractions[-1] == 1.0
        assert_answers_like(collection, mirror)
        assert_answers_like(other, mirror)
        other.add([document(50, "fog")])
        mirror.add([document(50, "fog")])
        assert_answers_like(collection, mirror)
    assert collection.info().index is None and collection.info().bits == 24
    assert collection.model.method == "toy2"


@needs(Promise.WRITES_DURING_REHASH)
def test_what_is_written_during_a_rehash_gets_the_new_codes(collection: Collection) -> None:
    mirror = Mirror(toy_model(1), {one.id: one for one in documents(12, year=2000)})
    with Collection(collection.location) as other:

        def meanwhile(_: float) -> None:
            new = [document(3, "fog"), document(70, "ice")]
            other.add(new)
            mirror.add(new)
            if "d5" in mirror.documents:
                other.delete(["d5"])
                mirror.delete(["d5"])

        collection.rehash(mirror.model, progress=meanwhile)
    assert_answers_like(collection, mirror)


# Several at once


@needs(Promise.CONCURRENCY)
def test_readers_go_on_while_others_write(engine: Engine) -> None:
    address = engine.fresh()
    Collection.create(address, toy_model()).close()
    everything = [[document(100 * writer + number, "ship") for number in range(30)] for writer in range(2)]
    problems: list[BaseException] = []
    ended = threading.Event()

    def write(mine: list[Document]) -> None:
        with Collection(address) as own:
            for start in range(0, len(mine), 5):
                own.add(mine[start : start + 5])

    def read() -> None:
        with Collection(address) as own:
            seen: list[str] = []
            while not ended.is_set():
                found = ids(own.search("ship", mode="codes", k=1_000))
                assert len(set(found)) == len(found)
                assert [name for name in found if name in set(seen)] == seen  # only more, and in their order
                seen = found

    def guarded(work: Any, *arguments: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*arguments)
            except BaseException as error:
                problems.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    readers = [guarded(read) for _ in range(2)]
    for writer in [guarded(write, mine) for mine in everything]:
        writer.join()
    ended.set()
    for reader in readers:
        reader.join()
    assert not problems
    with Collection(address) as after:
        held = [one.id for one in after.documents()]
        assert sorted(held) == sorted(one.id for mine in everything for one in mine)
        for mine in everything:  # each in the order in which it was given
            assert [name for name in held if name in {one.id for one in mine}] == [one.id for one in mine]


@needs(Promise.CONCURRENCY)
def test_threads_may_share_one_collection(collection: Collection) -> None:
    expected = collection.search("ship", mode="codes", k=5)
    answers: list[Any] = []
    threads = [
        threading.Thread(
            target=lambda: answers.extend(collection.search("ship", mode="codes", k=5) for _ in range(5))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 20


@needs(Promise.VERSIONS)
def test_the_version_changes_with_every_write_whoever_writes(collection: Collection) -> None:
    seen = [collection.version(), collection.version()]
    with Collection(collection.location) as other:
        other.add([document(50)])
        seen.append(collection.version())
        other.delete(["d50"])
        seen.append(collection.version())
        assert other.version() == seen[-1]
    assert seen[0] == seen[1] and len(set(seen)) == 3


@needs(Promise.RECOVERY)
def test_an_open_collection_goes_on_after_its_server_was_killed_and_started_again(
    engine: Engine, collection: Collection
) -> None:
    before = collection.search("ship")
    engine.restart()
    assert collection.search("ship") == before
    engine.restart()
    assert collection.add([document(50, "ship")]).inserted == 1
    engine.restart()
    assert collection.delete(["d50"]) == 1
    assert [one.id for one in collection.documents()] == [f"d{number}" for number in range(12)]


@needs(Promise.ATOMIC_BATCHES)
def test_a_write_that_fails_leaves_nothing(collection: Collection) -> None:
    before = list(collection.documents())
    with pytest.raises(KeyboardInterrupt), collection._backend.writing() as write:
        write.put([NewDocument(document(80), None), NewDocument(document(1, "fog"), None)])
        raise KeyboardInterrupt
    assert list(collection.documents()) == before


@needs(Promise.SERIALIZED_WRITERS)
def test_a_second_writer_waits_for_the_first(collection: Collection) -> None:
    with (
        collection._backend.writing(),
        Collection(collection.location, timeout=0.2) as other,
        pytest.raises(CollectionError, match="is writing to it: try again"),
    ):
        other.add([document(80)])
    assert len(collection) == 12


@needs(Promise.SNAPSHOT_READS)
def test_a_block_of_reads_sees_one_state(collection: Collection) -> None:
    backend = collection._backend
    with backend.reading():
        before = backend.documents(limit=100)
        with Collection(collection.location) as other:
            other.add([document(80), document(1, "fog")])
            other.delete(["d3"])
        assert backend.documents(limit=100) == before and backend.count() == 12


# Copies


@needs(Promise.EVERY_WAY_IN)
def test_a_copy_there_and_back_is_the_same(engine: Engine, collection: Collection) -> None:
    collection.add([Document("hidden", UNKNOWN, ("x",), "val", {"a": {"b": [1, 0.1]}}), document(3, "fog")])
    collection.delete(["d5"])
    folder = temporary_folder()
    try:
        there, fractions = engine.fresh(), []
        assert copy_collection(collection.location, folder / "first") == 12
        assert copy_collection(folder / "first", there, progress=fractions.append) == 12
        assert copy_collection(there, folder / "second") == 12
        assert fractions[-1] == 1.0
        expected = collection.search("ship", mode="codes", k=20)
        for address in (there, folder / "second"):
            with Collection(address) as copied:
                assert list(copied.documents()) == list(collection.documents())
                assert copied.search("ship", mode="codes", k=20) == expected
                told, wanted = copied.info(), collection.info()
                assert (told.model, told.searchable, told.fields) == (wanted.model, 11, wanted.fields)
                assert copied.add([document(90)]).inserted == 1
    finally:
        shutil.rmtree(folder)


@needs(Promise.ROW_CONSISTENCY)
def test_documents_stay_with_their_codes_while_others_write(collection: Collection) -> None:
    backend, model = collection._backend, toy_model()
    with backend.reading():
        before = backend.documents(limit=6)
        with Collection(collection.location) as other:
            other.add([document(1, "fog"), document(2, "ice dawn")])
            other.delete(["d3"])
        rows = backend.codes_of([seq for seq, _ in before])
    expected = model.encode([one.text for _, one in before])
    assert rows.seqs.tolist() == [seq for seq, _ in before]
    assert np.array_equal(rows.codes, expected)


@needs(Promise.ATOMIC_CREATE)
def test_a_copy_that_fails_leaves_no_collection(engine: Engine, collection: Collection) -> None:
    collection.add([replace(document(60 + number), text="fog") for number in range(5)])
    target = engine.fresh()

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_collection(collection.location, target, progress=stop)
    assert not is_collection(target)
    copy_collection(collection.location, target)
    with pytest.raises(InputError, match="is a collection already"):
        copy_collection(collection.location, target)
    with Collection(target) as copied:
        assert len(copied) == 17


__all__ += ["shared", *(name for name in dir() if name.startswith("test_"))]
