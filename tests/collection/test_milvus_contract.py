"""The contract, in Milvus, and what is special about a collection there; in one file, for one server."""

from __future__ import annotations

import itertools
import os
import random
import re
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from pymilvus import MilvusClient

from snuh import encoding
from snuh.collection import Collection, ensure_absent
from snuh.collection.backend import LostConnectionError, NewDocument, State
from snuh.collection.milvus import schema, search, table
from snuh.collection.milvus.connection import Connection, parse_url
from snuh.collection.milvus.table import Table, open_table
from snuh.corpus import Document
from snuh.errors import CollectionError, InputError, ModelError
from snuh.filters import matches
from tests.collection.contract import *  # noqa: F403
from tests.collection.contract import QUIET
from tests.collection.like_dictionary import CollectionLikeDictionary
from tests.collection.milvus_server import FIRST_PASSWORD, SECONDS, USER, MilvusServer, free_ports
from tests.collection.promises import MILVUS, Promise, needs
from tests.collection.ways_in import *  # noqa: F403
from tests.collection.worlds import WORDS, Mirror, assert_answers_like, document, documents, record, toy_model
from tests.filters.worlds import filters, records

PROMISES = MILVUS


class Milvus:
    """An engine of the contract."""

    def __init__(self, server: MilvusServer) -> None:
        self.server = server
        self.used: str | None = None  # a collection for tests that leave it as good as new
        self.model = ""

    def fresh(self) -> str:
        return self.server.address(f"c{secrets.token_hex(4)}")

    def restart(self) -> None:
        self.server.kill()
        self.server.start()


@pytest.fixture(scope="module")
def engine() -> Iterator[Milvus]:
    server = MilvusServer()
    try:
        yield Milvus(server)
    finally:
        server.stop()


@pytest.fixture
def collection(engine: Milvus) -> Iterator[Collection]:
    """Twelve documents; to make a collection takes seconds, so one that is as good as new is taken again."""
    if engine.used is not None:
        with Collection(engine.used) as used:
            is_new = used.info().model == engine.model and used.info().index is None
            if is_new:
                used.delete_where('id != ""')
    if engine.used is None or not is_new:
        engine.used = engine.fresh()
        with Collection.create(engine.used, toy_model()) as made:
            engine.model = made.info().model
    with Collection(engine.used) as again:
        again.add(documents(12, year=2000))
        yield again


# The contract's longest tests, in fewer steps: each of them asks the server


@needs(Promise.READ_AFTER_WRITE)
def test_it_answers_like_a_dictionary(engine: Milvus) -> None:
    class Here(CollectionLikeDictionary):
        def fresh(self) -> str:
            return engine.fresh()

    few = settings(QUIET, max_examples=1, stateful_step_count=8)
    run_state_machine_as_test(Here, settings=few)  # type: ignore[no-untyped-call]


@needs(Promise.FILTERS)
def test_a_filter_means_the_same_everywhere(engine: Milvus) -> None:
    @settings(QUIET, max_examples=1, database=None, derandomize=True)
    @given(data=st.data())
    def holds(data: st.DataObject) -> None:
        found = data.draw(st.lists(records(), min_size=40, max_size=60, unique_by=lambda one: one["id"]))
        own = ("id", "split", "labels")
        given_ = [
            Document(
                one["id"] or "empty",
                "ship",
                tuple(one["labels"]),
                one["split"],
                {name: value for name, value in one.items() if name not in own},
            )
            for one in found
        ]
        with Collection.create(engine.fresh(), toy_model()) as collection:
            collection.add(given_)
            with collection._backend.reading():  # the collection refuses fields that no document ever had
                listed = collection._backend.documents(limit=100)
                assert [one for _, one in listed] == given_
                for where in data.draw(st.lists(filters, min_size=100, max_size=150)):
                    met = [seq for seq, one in listed if matches(where, record(one))]
                    assert collection._backend.seqs_where(where).tolist() == met, where

    holds()


# What Milvus limits


def test_a_search_is_exact_beyond_what_one_search_of_milvus_gives(engine: Milvus) -> None:
    rng = random.Random(1)
    some = [document(number, rng.choice(WORDS[:2]), odd=number % 2 == 1) for number in range(30)]
    mirror = Mirror(toy_model(), has_words=False)
    mirror.add(some)
    with Collection.create(engine.fresh(), toy_model()) as collection:
        collection.add(some)
        with (
            patch.object(search, "MAX_ROWS", 8),
            patch.object(search, "SPARE_HITS", 1),
            patch.object(table, "READ_DOCUMENTS", 3),
        ):
            assert list(collection.documents()) == some
            for options in ({"k": 20}, {"k": 9, "where": "not odd = true"}, {"k": 50, "radius": 3}):
                assert collection.search("ship", mode="codes", **options) == mirror.search("ship", **options)  # type: ignore[arg-type]
        hits = collection.search(WORDS[0], mode="codes", k=3)
        assert [hit.distance for hit in hits] == [0, 0, 0]  # any of those
        assert "the 200 nearest by codes" in str(collection.search(WORDS[0]).note)


def test_a_large_document_leaves_no_pieces_when_it_is_replaced_or_deleted(collection: Collection) -> None:
    def pieces() -> int:
        opened = collection._backend._table  # type: ignore[attr-defined]
        return int(opened.count(f'kind == {schema.PIECE} and not (key like "model%")'))

    long = "fog " * 60_000
    collection.add([document(1, long), document(2, long + "ice"), document(3, long)])
    assert pieces() > 9 and collection.get("d2").text == long + "ice"
    collection.add([document(1, "fog"), document(2, long)])
    collection.delete(["d3"])
    assert collection.get("d2").text == long and pieces() == len(long) // schema.PIECE_CHARACTERS + 1
    collection.delete(["d2"])
    assert pieces() == 0


def test_the_index_of_milvus_finds_exactly_what_a_scan_does_and_less_by_choice(engine: Milvus) -> None:
    some = [
        document(number, *(WORDS[number >> bit & 1 : 12 : bit + 2][0] for bit in range(6)))
        for number in range(3_000)
    ]
    mirror = Mirror(toy_model(3, bits=64), has_words=False)
    mirror.add(some)
    with Collection.create(engine.fresh(), toy_model(3, bits=64)) as collection:
        collection.add(some)
        made = collection.build_index(k=10, recall=0.95)
        assert made.recall >= 0.95 and made.documents == 3_000 and made.settings["read"] >= 1
        for text in ("ship fog", "ice dawn coin"):
            exact = [hit.distance for hit in mirror.search(text, k=25)]  # which of the last, Milvus chooses
            assert [hit.distance for hit in collection.search(text, mode="codes", k=25)] == exact
            found = collection.search(text, k=25, approximate=True)
            assert sum(hit.distance <= exact[-1] for hit in found) >= 20


# Writers without locks


def test_writers_at_the_same_time_lose_nothing_and_the_last_wins(collection: Collection) -> None:
    some = [
        [document(100, "ship"), *(document(10 * writer + n) for n in range(100, 106))] for writer in range(3)
    ]

    def write(mine: list[Document]) -> None:
        with Collection(collection.location) as own:
            own.add(mine)

    writers = [threading.Thread(target=write, args=(mine,)) for mine in some]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    listed = collection._backend.documents(limit=1_000)
    assert len({seq for seq, _ in listed}) == len(listed) == len({one.id for _, one in listed})
    assert {one.id for _, one in listed} == {f"d{n}" for n in range(12)} | {
        one.id for mine in some for one in mine
    }
    collection.add([document(100, "fog")])
    with Collection(collection.location) as other:
        other.add([document(100, "ice")])
    assert collection.get("d100").text == "ice"


def test_a_write_that_is_stopped_is_completed_by_running_it_again(collection: Collection) -> None:
    some = [document(number) for number in range(200, 210)]
    upsert = Table._upsert
    requests: list[list[schema.Row]] = []

    def stop_at_second(self: Table, rows: list[schema.Row]) -> None:
        if requests:
            raise KeyboardInterrupt
        requests.append(rows)
        upsert(self, rows)

    with patch.object(table, "WRITE_ROWS", 4):
        with patch.object(Table, "_upsert", stop_at_second), pytest.raises(KeyboardInterrupt):
            collection.add(some)
        assert [one.id for one in collection.documents()][12:] == [one.id for one in some[:4]]
        collection.add(some)
    assert [one.id for one in collection.documents()][12:] == [one.id for one in some]


def test_a_write_into_codes_that_a_rehash_replaced_is_done_again(engine: Milvus) -> None:
    address, model = engine.fresh(), toy_model(7)
    mirror = Mirror(model, has_words=False)
    mirror.add([*documents(3), document(50, "fog")])
    with Collection.create(address, toy_model()) as collection, Collection(address) as other:
        collection.add(documents(3))
        with pytest.raises(LostConnectionError), other._backend.writing() as write:
            with patch("snuh.collection.milvus.backend.drop_table"):
                collection.rehash(model)
            write.put([NewDocument(document(50, "fog"), None)])
        assert len(collection) == 3
        other.add([document(50, "fog")])
        assert_answers_like(collection, mirror, texts=WORDS[:2])


def test_a_rehash_stops_where_others_write(collection: Collection) -> None:
    mirror = Mirror(toy_model(), {one.id: one for one in documents(12, year=2000)})
    mirror.add([document(50, "fog")])
    with Collection(collection.location) as other:

        def add(_: float) -> None:
            other.add([document(50, "fog")])

        def delete(_: float) -> None:
            other.delete(["d60"])

        for write in (add, delete):
            collection.add([document(60)])
            with pytest.raises(CollectionError, match="others have written meanwhile: run it when nobody"):
                collection.rehash(toy_model(1), progress=write)
        assert_answers_like(collection, mirror, texts=WORDS[:2])
        names = collection._backend._connection.call("list_collections")  # type: ignore[attr-defined]
    assert sum(name.startswith(f"{parse_url(str(collection.location)).name}__") for name in names) == 1


# The order of insertion


@given(
    st.lists(
        st.tuples(st.integers(1_577_836_800_000, 3_600_000_000_000), st.integers(0, 16_383)), unique=True
    )
)
def test_seqs_are_ordered_as_timestamps_and_never_overlap(timestamps: list[tuple[int, int]]) -> None:
    firsts = [schema.first_seq(ms << 18 | counter) for ms, counter in sorted(timestamps)]
    assert all(0 <= seq < 2**63 - schema.SEQS_PER_TIMESTAMP for seq in firsts)
    assert all(b - a >= schema.SEQS_PER_TIMESTAMP for a, b in itertools.pairwise(firsts))


@settings(QUIET)
@given(st.sets(st.integers(1, 2**40)), st.integers(1, 2**20), st.integers(1, 8), st.sampled_from([10, 1_000]))
def test_ranges_hold_each_row_once_and_in_order(seqs: set[int], gap: int, size: int, sample: int) -> None:
    rows = sorted({*seqs, *range(gap, gap + 50)})  # far apart, and a burst

    class Rows(Table):
        def __init__(self) -> None:
            self.state = State("", 8, "", 2**41)

        def query(self, expression: str, fields: Sequence[str], **_: object) -> list[schema.Row]:
            some = rows_in(expression)
            return [{"count(*)": len(some)}] if fields == ["count(*)"] else [{"seq": seq} for seq in some]

    def rows_in(expression: str) -> list[int]:
        after, end = map(int, re.findall(r"seq \S+ (\d+)", expression))
        below = re.findall(r'key < "(\w+)"', expression) or ["g"]
        return [seq for seq in rows if after < seq <= end and schema.document_key(str(seq)) < below[0]]

    with patch.object(table, "SAMPLE_ROWS", sample):
        parts = [rows_in(part) for part in Rows().ranges("true", size=size)]
    assert all(0 < len(part) <= size for part in parts)
    assert [seq for part in parts for seq in part] == rows


# Network


def test_the_server_is_reached_by_loopback_alone(engine: Milvus) -> None:
    pid = engine.server.pid
    assert psutil.Process(pid).name() == "milvus"
    assert os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")
    listening = [one.laddr for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN]
    assert {one.ip for one in listening if one.port == engine.server.port} == {"127.0.0.1"}


# Bad input


def test_who_cannot_be_reached_or_let_in_is_told_so_without_the_secret(
    engine: Milvus,
    collection: Collection,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    name = str(collection.location).rpartition("/")[2]
    free = free_ports(1)[0]
    said = []
    for address, problem in (
        (
            f"milvus://root:s3cret@127.0.0.1:{free}/{name}",
            "cannot connect: is Milvus running, and is the url right",
        ),
        (engine.server.address(name, password="s3cret"), "wrong user or password"),
        (engine.server.address(name, password=FIRST_PASSWORD), "wrong user or password"),
        (engine.server.address(f"none/{name}"), "there is no such database"),
    ):
        with pytest.raises(CollectionError, match=problem) as caught:
            Collection(address)
        said.append(str(caught.value))
    password = engine.server.password
    assert not any("\n" in one or "s3cret" in one or password in one for one in said)
    assert "s3cret" not in caplog.text + "".join(capfd.readouterr()) and password not in repr(collection)


def test_a_user_without_rights_reads_or_is_told_so(engine: Milvus, collection: Collection) -> None:
    client = MilvusClient(
        uri=f"http://127.0.0.1:{engine.server.port}", token=f"{USER}:{engine.server.password}"
    )
    name = str(collection.location).rpartition("/")[2]
    reader = f"reader{secrets.token_hex(3)}"
    client.create_user(reader, "s3cret-of-reader")
    client.create_role(reader)
    client.grant_role(reader, reader)
    address = engine.server.address(name, user=reader, password="s3cret-of-reader")
    with pytest.raises(CollectionError, match=r"permission denied: see docs/milvus\.md#rights"):
        Collection(address)
    expected = collection.search("ship")
    for right in ("Query", "Search", "Load"):
        client.grant_privilege(reader, "Collection", right, "*")
    client.grant_privilege(reader, "Global", "DescribeCollection", "*")
    for left in reversed(range(20)):
        try:
            with Collection(address) as allowed:
                assert allowed.search("ship") == expected
            break
        except CollectionError:
            if not left:
                raise
            # Rights take a while to reach all parts of the server, and now and then one never does, however
            # often it is granted; when it starts it reads them all.
            if left == 10:
                engine.restart()
            time.sleep(1.0)
    client.close()
    with Collection(address) as allowed, pytest.raises(CollectionError, match="permission denied"):
        allowed.add([document(70)])
    assert len(collection) == 12


def test_what_is_not_a_collection_or_was_changed_is_refused_and_left_alone(engine: Milvus) -> None:
    address = engine.fresh()
    Collection.create(address, toy_model()).close()
    connection = Connection(parse_url(address))
    whole, name = open_table(connection), connection.url.name
    before = sorted(connection.call("list_collections"))

    def refused(problem: str) -> None:
        with pytest.raises((CollectionError, InputError), match=problem) as caught:
            Collection(address)
        assert "\n" not in str(caught.value)

    connection.call("drop_alias", name)
    refused("there is no collection")
    for suffix, description, problem in (
        ("other", "mine", "is not a collection of snuh"),
        ("older", '{"format": "snuh-collection", "format_version": 1}', "has format 1, this snuh reads 2"),
        ("odd", '{"format": "snuh-collection", "format_version": 2}', "description in Milvus was changed"),
    ):
        fields = schema.collection_schema(8, description=description)
        connection.call("create_collection", f"{name}_{suffix}", schema=fields)
        connection.call("create_alias", f"{name}_{suffix}", name)
        refused(problem)
        with pytest.raises(InputError, match=r"is a collection already|not made by snuh"):
            ensure_absent(address)
        connection.call("drop_alias", name)
        connection.call("drop_collection", f"{name}_{suffix}")
    assert sorted(connection.call("list_collections")) == before
    connection.call("create_alias", whole.name, name)
    whole._delete([table.MODEL_KEY])
    with pytest.raises(ModelError, match="has lost its model: restore it from a copy"):
        Collection(address)
    whole._delete([table.VERSION_KEY])
    with patch.object(table, "RECOVERY_SECONDS", 0.3):
        refused("has lost rows: restore it from a copy")
    connection.close()


# Rehashed


def test_a_rehash_is_done_even_if_the_old_documents_cannot_be_dropped(
    engine: Milvus, caplog: pytest.LogCaptureFixture
) -> None:
    address, model = engine.fresh(), toy_model(7)
    name = address.rpartition("/")[2]

    with Collection.create(address, toy_model()) as collection:

        def parts() -> int:
            names = collection._backend._connection.call("list_collections")  # type: ignore[attr-defined]
            return sum(one.startswith(f"{name}__") for one in names)

        collection.add(documents(3))
        call = Connection.call

        def refuse_to_drop(self: Connection, method: str, *arguments: Any, **options: Any) -> Any:
            if method == "drop_collection":
                raise CollectionError("no rights")
            return call(self, method, *arguments, **options)

        with patch.object(Connection, "call", refuse_to_drop):
            collection.rehash(model)
        assert "is not in use, but could not be dropped from Milvus: no rights" in caplog.text
        mirror = Mirror(model, has_words=False)
        mirror.add(documents(3))
        assert_answers_like(collection, mirror, texts=WORDS[:2])
        assert parts() == 2
        collection.rehash(toy_model())
        assert parts() == 1


# Killed


@pytest.mark.parametrize(
    ("count", "batch"), [(3_000, 300), pytest.param(100_000, 20_000, marks=pytest.mark.long)]
)
def test_each_document_is_there_once_after_the_server_was_killed_in_the_middle(
    engine: Milvus, count: int, batch: int
) -> None:
    address, end = engine.fresh(), time.monotonic() + SECONDS
    words = [" ".join(WORDS[number % 12 :][:2]) for number in range(24)]
    everything = [Document(f"n{number}", words[number % 24]) for number in range(count)]
    killed = threading.Event()

    def handed() -> Iterator[Document]:
        for one in everything:
            if one is everything[-1]:  # so that the server is always killed before that
                killed.wait(SECONDS)
            if killed.is_set():  # what is under way then goes on as it can
                return
            yield one

    def ingest() -> None:
        with suppress(CollectionError):  # told that the server has gone, unless it was back in time
            collection.add(handed())  # type: ignore[attr-defined]

    with (
        patch.object(encoding, "BATCH_DOCUMENTS", batch),
        patch.object(table, "WRITE_ROWS", batch // 4),
        Collection.create(address, toy_model()) as collection,
        Collection(address) as watching,
    ):
        writer = threading.Thread(target=ingest, daemon=True)
        writer.start()
        while len(watching) < 1.1 * batch:  # in the middle of the second batch
            assert writer.is_alive() and time.monotonic() < end
            time.sleep(0.05)
        killed.set()
        engine.restart()
        writer.join(SECONDS)
        assert not writer.is_alive()
        collection.add(everything)
        assert len(collection) == count
        scanned = collection._backend._table.scan(schema.IS_DOCUMENT, ["key"])  # type: ignore[attr-defined]
        keys = [row["key"] for some in scanned for row in some]
        assert len(keys) == count and set(keys) == {schema.document_key(one.id) for one in everything}
        hits = collection.search("ship", mode="codes", k=10)
        assert len(hits) == 10 and hits[0].distance <= hits[-1].distance
