"""The contract, in Milvus, and what is special about a collection there; in one file, for one server."""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from unittest.mock import patch

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from pymilvus import MilvusClient

from snuh import encoding
from snuh.collection import Collection, ensure_absent
from snuh.collection.backend import NewDocument
from snuh.collection.milvus import entities, finding, rows, turn, writing
from snuh.collection.milvus.connection import Connection
from snuh.collection.milvus.facts import read_facts
from snuh.collection.milvus.site import site_of
from snuh.corpus import Document
from snuh.errors import CollectionError, InputError, ModelError
from snuh.filters import matches
from tests.collection.contract import *  # noqa: F403
from tests.collection.contract import QUIET
from tests.collection.like_dictionary import CollectionLikeDictionary
from tests.collection.milvus_server import FIRST_PASSWORD, SECONDS, USER, MilvusServer, free_ports
from tests.collection.ways_in import *  # noqa: F403
from tests.collection.worlds import WORDS, Mirror, assert_answers_like, document, documents, record, toy_model
from tests.filters.worlds import filters, records


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


def test_it_answers_like_a_dictionary(engine: Milvus) -> None:
    class Here(CollectionLikeDictionary):
        def fresh(self) -> str:
            return engine.fresh()

    few = settings(QUIET, max_examples=1, stateful_step_count=8)
    run_state_machine_as_test(Here, settings=few)  # type: ignore[no-untyped-call]


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
            held = list(collection.documents())
            assert held == given_
            with collection._backend.reading():  # the collection refuses fields that no document ever had
                for where in data.draw(st.lists(filters, min_size=100, max_size=150)):
                    met = [number for number, one in enumerate(held, start=1) if matches(where, record(one))]
                    assert collection._backend.seqs_where(where).tolist() == met, where

    holds()


# What Milvus limits


def test_ties_are_in_order_beyond_what_one_search_of_milvus_gives(engine: Milvus) -> None:
    rng = random.Random(1)
    some = [document(number, rng.choice(WORDS[:2]), odd=number % 2 == 1) for number in range(120)]
    mirror = Mirror(toy_model())
    mirror.add(some)
    with Collection.create(engine.fresh(), toy_model()) as collection:
        collection.add(some)
        with (
            patch.object(finding, "MAX_HITS", 8),
            patch.object(finding, "SPARE_HITS", 1),
            patch.object(rows, "WINDOW", 7),
            patch.object(rows, "MAX_ABOUTS", 3),
            patch.object(finding, "MAX_ABOUTS", 3),
        ):
            assert_answers_like(collection, mirror, texts=WORDS[:2])
            for options in ({"k": 20}, {"k": 15, "where": "not odd = true"}, {"k": 90, "radius": 3}):
                for text in WORDS[:3]:
                    assert collection.search(text, **options) == mirror.search(text, **options)  # type: ignore[arg-type]


def test_a_large_document_leaves_no_pieces_when_it_is_replaced_or_deleted(collection: Collection) -> None:
    def pieces() -> int:
        with collection._backend._reading() as here:  # type: ignore[attr-defined]
            return int(here.rows.count(f'kind == {entities.PIECE} and not (key like "model%")'))

    long = "fog " * 60_000
    collection.add([document(1, long), document(2, long + "ice"), document(3, long)])
    assert pieces() > 9 and collection.get("d2").text == long + "ice"
    collection.add([document(1, "fog"), document(2, long)])
    collection.delete(["d3"])
    assert collection.get("d2").text == long and pieces() == len(long) // entities.PIECE_CHARACTERS + 1
    collection.delete(["d2"])
    assert pieces() == 0


def test_the_index_of_milvus_finds_exactly_what_a_scan_does_and_less_by_choice(engine: Milvus) -> None:
    some = [
        document(number, *(WORDS[number >> bit & 1 : 12 : bit + 2][0] for bit in range(6)))
        for number in range(3_000)
    ]
    mirror = Mirror(toy_model(3, bits=64))
    mirror.add(some)
    with Collection.create(engine.fresh(), toy_model(3, bits=64)) as collection:
        collection.add(some)
        made = collection.build_index(k=10, recall=0.95)
        assert made.recall >= 0.95 and made.documents == 3_000 and made.settings["read"] >= 1
        for text in ("ship fog", "ice dawn coin"):
            assert collection.search(text, k=25) == mirror.search(text, k=25)
            found = collection.search(text, k=25, approximate=True)
            assert sum(hit.distance <= mirror.search(text, k=25)[-1].distance for hit in found) >= 20


# Whose turn it is


def test_a_turn_that_a_dead_writer_left_is_taken(collection: Collection) -> None:
    backend = collection._backend
    turn._take(backend._connection, backend._turn_alias, timeout=1)  # type: ignore[attr-defined]
    hasty = Collection(collection.address, timeout=0.3)
    with hasty, pytest.raises(CollectionError, match="another process is writing to it: try again"):
        hasty.add([document(90)])
    with patch.object(turn, "LEASE_SECONDS", 0.5):
        collection.add([document(90)])
    assert len(collection) == 13


def test_a_writer_that_lost_its_turn_writes_nothing(collection: Collection) -> None:
    backend = collection._backend
    lost = pytest.raises(CollectionError, match="another process began to write: run it again")
    with Collection(collection.address) as other, lost, backend.writing() as write:
        with patch.object(turn, "LEASE_SECONDS", -1):
            other.add([document(91)])
        write.put([NewDocument(document(92), None)])
    assert "d91" in collection and "d92" not in collection
    collection.add([document(92)])
    assert [one.id for one in collection.documents()][-2:] == ["d91", "d92"]


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
    name = str(collection.address).rpartition("/")[2]
    free = free_ports(1)[0]
    said = []
    for address, problem in (
        (
            f"milvus://root:s3cret@127.0.0.1:{free}/{name}",
            "no Milvus can be reached there: check the address",
        ),
        (engine.server.address(name, password="s3cret"), "the user or the password is wrong"),
        (engine.server.address(name, password=FIRST_PASSWORD), "the user or the password is wrong"),
        (engine.server.address(f"none/{name}"), "there is no database 'none'"),
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
    name = str(collection.address).rpartition("/")[2]
    reader = f"reader{secrets.token_hex(3)}"
    client.create_user(reader, "s3cret-of-reader")
    client.create_role(reader)
    client.grant_role(reader, reader)
    address = engine.server.address(name, user=reader, password="s3cret-of-reader")
    with pytest.raises(
        CollectionError, match=r"permission denied: ask for the rights named in docs/milvus\.md"
    ):
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


def test_what_is_not_whole_or_was_changed_is_refused_and_left_alone(engine: Milvus) -> None:
    address = engine.fresh()
    Collection.create(address, toy_model()).close()
    site = site_of(address)
    connection = Connection(site)
    whole = read_facts(connection)
    before = sorted(connection.names())

    def refused(problem: str) -> None:
        with pytest.raises((CollectionError, InputError), match=problem) as caught:
            Collection(address)
        assert "\n" not in str(caught.value)

    connection.drop_alias(site.name)
    refused("is not whole: the making of it goes on, or was stopped")
    for name, description, problem in (
        ("other", "mine", "is not a collection of snuh"),
        ("newer", '{"format": "snuh-collection", "format_version": 9}', "has format 9, this snuh reads 1"),
        (
            "odd",
            '{"format": "snuh-collection", "format_version": 1}',
            "its description in Milvus was changed",
        ),
        (
            "drifted",
            whole.description(),
            "its fields in Milvus were changed: expected key as VARCHAR, got INT64",
        ),
    ):
        connection.create(f"{site.name}_{name}", turn.FIELDS, description=description)
        connection.create_alias(f"{site.name}_{name}", site.name)
        refused(problem)
        with pytest.raises(InputError, match=r"is a collection already|not made by snuh"):
            ensure_absent(address)
        connection.drop_alias(site.name)
        connection.drop(f"{site.name}_{name}")
    assert sorted(connection.names()) == before
    connection.create_alias(whole.documents, site.name)
    rows.Rows(connection, whole).delete([entities.MODEL_KEY])
    with (
        patch.object(rows, "MAX_SECONDS", 0.3),
        pytest.raises(ModelError, match="has lost its model: restore it from a copy"),
    ):
        Collection(address)
    connection.close()


# Rehashed


def test_a_rehash_is_done_even_if_the_old_documents_cannot_be_dropped(
    engine: Milvus, caplog: pytest.LogCaptureFixture
) -> None:
    address, model = engine.fresh(), toy_model(7)
    name = address.rpartition("/")[2]

    with Collection.create(address, toy_model()) as collection:

        def parts() -> int:
            names: list[str] = collection._backend._connection.names()  # type: ignore[attr-defined]
            return sum(one.startswith(f"{name}__documents") for one in names)

        collection.add(documents(3))
        with patch.object(Connection, "drop", side_effect=CollectionError("no rights")):
            collection.rehash(model)
        assert "the documents with the old codes" in caplog.text and "no rights" in caplog.text
        mirror = Mirror(model)
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
            collection.add(handed())

    with (
        patch.object(encoding, "BATCH_DOCUMENTS", batch),
        patch.object(writing, "BATCH_DOCUMENTS", batch // 4),
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
        with collection._backend._reading() as here:  # type: ignore[attr-defined]
            windows = here.rows.windows(rows.IS_DOCUMENT, [], after=0, before=here.state.next_seq)
            keys = [row["key"] for some in windows for row in some]
        assert len(keys) == count and set(keys) == {entities.key_of(one.id) for one in everything}
        hits = collection.search("ship", k=10)
        assert len(hits) == 10 and hits[0].distance <= hits[-1].distance
