"""Several processes at once: readers see whole writes only, and writers take turns."""

from __future__ import annotations

import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from snuh.collection import Collection
from snuh.corpus import Document
from snuh.errors import CollectionError
from tests.cli.running import run_process
from tests.collection.processes import Child, say, started
from tests.collection.worlds import (
    Mirror,
    assert_answers_like,
    code_of,
    distance,
    document,
    documents,
    stored,
    tiny_thresholds,
    toy_model,
)

MODELS = [toy_model(0), toy_model(1), toy_model(2, bits=24)]
SIZE = 6  # documents of a batch


def batch(number: int) -> list[Document]:
    return [document(SIZE * number + other, "ship", batch=number) for other in range(SIZE)]


def read_until_told(folder: Path, pipe: Connection, *, reopen: bool) -> int:
    """Search again and again; every answer must be one of whole batches, with the distances of one model."""
    query = {model.method: code_of(model, "ship fog") for model in MODELS}
    stored_code = {model.method: code_of(model, "ship") for model in MODELS}
    distances = {distance(query[name] or b"", stored_code[name] or b"") for name in query}
    searches = 0
    collection = Collection(folder)
    while not pipe.poll():
        hits = collection.search("ship fog", mode="codes", k=10_000)
        whole = Counter(hit.document.metadata["batch"] for hit in hits)
        assert set(whole.values()) <= {SIZE}, whole
        assert len({hit.distance for hit in hits}) <= 1
        assert {hit.distance for hit in hits} <= distances
        keys = [(hit.document.metadata["batch"], hit.document.id) for hit in hits]
        assert len(set(keys)) == len(keys)
        if hits:
            last = max(whole)
            filtered = collection.search("ship", mode="codes", k=10_000, where=f"batch = {last}")
            assert len(filtered) in (0, SIZE)  # it may be gone by now
        searches += 1
        if searches == 1:
            say(pipe, "reading")
        if reopen:
            collection.close()
            collection = Collection(folder)
    collection.close()
    return searches


@pytest.mark.slow
def test_readers_see_only_whole_writes_while_one_writes_deletes_and_rehashes(folder: Path) -> None:
    def stay(pipe: Connection) -> int:
        return read_until_told(folder, pipe, reopen=False)

    def come_and_go(pipe: Connection) -> int:
        return read_until_told(folder, pipe, reopen=True)

    with Collection(folder) as collection:
        collection.delete_where("year = 2000")
        collection.add(batch(0))
    with tiny_thresholds(changes=10, batch=1_000), started(stay, come_and_go, stay) as readers:
        for reader in readers:
            reader.wait_for("reading")
        with Collection(folder) as collection:
            for number in range(1, 60):
                collection.add(batch(number))
                if number % 3 == 0:
                    collection.delete([one.id for one in batch(number - 2)])
                if number % 4 == 0:
                    collection.rehash(MODELS[number // 4 % 3])
                if number % 10 == 0:
                    collection.delete_where(f"batch < {number - 5}")
        for reader in readers:
            reader.tell("stop")
        assert all(reader.result() > 1 for reader in readers)
    with Collection(folder) as collection:
        assert_answers_like(collection, stored(folder))


@pytest.mark.slow
def test_several_writers_take_turns_and_lose_nothing(folder: Path) -> None:
    def write(first: int) -> object:
        def run(pipe: Connection) -> None:
            with Collection(folder) as collection:
                for number in range(first, first + 15):
                    collection.add(batch(number))
                    collection.delete([batch(number)[0].id])

        return run

    before = stored(folder)
    with started(*(write(100 * writer) for writer in (1, 2, 3))) as writers:  # type: ignore[arg-type]
        for writer in writers:
            writer.result()
    after = stored(folder)
    gained = {doc_id for doc_id in after.documents if doc_id not in before.documents}
    expected = {one.id for w in (100, 200, 300) for number in range(w, w + 15) for one in batch(number)[1:]}
    assert gained == expected
    with Collection(folder) as collection:
        assert_answers_like(collection, after)


def test_writers_of_different_models_never_mix_their_codes(folder: Path) -> None:
    def rehash(pipe: Connection) -> None:
        with Collection(folder) as collection:
            for number in range(12):
                collection.rehash(MODELS[number % 3])

    def add(pipe: Connection) -> None:
        with tiny_thresholds(batch=3), Collection(folder) as collection:
            for number in range(12):
                collection.add(documents(12, turn=number))

    with started(rehash, add) as writers:
        for writer in writers:
            writer.result()
    with Collection(folder) as collection:
        assert_answers_like(collection, stored(folder))  # stored compares every code with its model


def test_a_model_changed_between_two_batches_of_one_call_is_used_from_then_on(folder: Path) -> None:
    with tiny_thresholds(batch=4), Collection(folder) as collection, Collection(folder) as other:

        def given() -> object:
            for number in range(20):
                if number == 2:
                    other.rehash(toy_model(2, bits=24))
                if number == 14:
                    other.rehash(toy_model(1))
                yield document(number, year=2001)

        collection.add(given())  # type: ignore[arg-type]
        expected = stored(folder)
        assert expected.model.method == "toy1"
        assert_answers_like(collection, expected)
        assert_answers_like(other, expected)


def test_two_rehashes_at_once_leave_a_collection_that_works(folder: Path) -> None:
    def rehash(number: int) -> object:
        def run(pipe: Connection) -> int:
            stopped = 0
            with Collection(folder) as collection:
                for turn in range(10):
                    try:
                        collection.rehash(MODELS[(number + turn) % 3])
                    except CollectionError as error:
                        assert "\n" not in str(error)
                        stopped += 1
            return stopped

        return run

    expected = list(stored(folder).documents.items())
    with started(rehash(0), rehash(1)) as both:  # type: ignore[arg-type]
        for one in both:
            one.result()
    assert list(stored(folder).documents.items()) == expected
    with Collection(folder) as collection:
        assert_answers_like(collection, stored(folder))


def test_a_second_writer_waits_for_the_first(folder: Path) -> None:
    def write(pipe: Connection) -> int:
        with Collection(folder) as collection:
            say(pipe, "ready")
            pipe.recv()
            return collection.add([document(70)]).inserted

    writer = Child(write)
    writer.wait_for("ready")
    holding = sqlite3.connect(folder / "store.sqlite", isolation_level=None)
    try:
        holding.execute("BEGIN IMMEDIATE")
        writer.tell("add")
        assert not writer.pipe.poll(0.3)  # it waits
        holding.execute("COMMIT")
    finally:
        holding.close()
    assert writer.result() == 1
    with Collection(folder) as collection:
        assert "d70" in collection


def test_a_writer_times_out_and_readers_never_wait(folder: Path) -> None:
    holding = sqlite3.connect(folder / "store.sqlite", isolation_level=None)
    try:
        holding.execute("BEGIN IMMEDIATE")
        with Collection(folder, timeout=0.2) as collection:
            with pytest.raises(CollectionError) as caught:
                collection.add([document(70)])
            message = str(caught.value)
            assert "another process is writing to it: try again when it has finished" in message
            assert "\n" not in message
            assert_answers_like(collection, Mirror(toy_model(), {d.id: d for d in documents(12, year=2000)}))
            holding.execute("COMMIT")
            assert collection.add([document(70)]).inserted == 1
    finally:
        holding.close()


def test_threads_may_share_a_collection(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", toy_model()) as collection:
        collection.add(documents(60))
        expected = [hit.document.id for hit in collection.search("ship fog", mode="codes", k=5)]

        def work(number: int) -> list[str]:
            collection.add([Document(f"extra-{number}", "zzz qqq")])
            return [hit.document.id for hit in collection.search("ship fog", mode="codes", k=5)]

        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(work, range(20)))
        assert answers == [expected] * 20
        assert len(collection) == 80


def test_two_collections_of_one_process_keep_the_store_in_use(folder: Path) -> None:
    with Collection(folder) as first, Collection(folder) as second:
        # Another process that opens and closes the store must not take it for one that nobody uses.
        ran = run_process("add", folder, "-", stdin='{"id": "other", "text": "rope"}\n')
        assert ran.code == 0, ran.stderr
        assert "other" in first and "other" in second
        first.add([document(70)])
        assert run_process("delete", folder, "other").code == 0
        assert "other" not in first and "other" not in second and "d70" in second
    assert set(stored(folder).documents) == {f"d{number}" for number in (*range(12), 70)}


def test_using_a_closed_collection_is_an_error(tmp_path: Path) -> None:
    collection = Collection.create(tmp_path / "c", toy_model())
    collection.close()
    with pytest.raises(CollectionError, match="open it again"):
        collection.search("ship fog")
