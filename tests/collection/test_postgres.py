"""Collections in PostgreSQL: what goes wrong, who may do what, and a server that dies."""

from __future__ import annotations

import json
import logging
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

import psycopg
import pytest

from snuh import encoding
from snuh.collection import Added, Collection, ensure_absent, is_collection
from snuh.collection.backend import Backend, LostConnectionError, NewDocument
from snuh.collection.copy import copy_collection
from snuh.collection.postgres import connection, words
from snuh.collection.postgres.connection import translate_error
from snuh.corpus import Document
from snuh.errors import CollectionError, InputError, ModelError, SnuhError
from snuh.io import redact
from tests.cli.running import environment, run
from tests.collection.engines import Postgres, postgres
from tests.collection.postgres_server import PASSWORD, SECONDS, free_port
from tests.collection.worlds import (
    UNKNOWN,
    WORDS,
    Mirror,
    assert_answers_like,
    document,
    documents,
    toy_model,
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Postgres]:
    with postgres() as one:
        yield one


@pytest.fixture
def address(engine: Postgres) -> str:
    """A collection of a few documents, closed."""
    fresh = engine.fresh()
    with Collection.create(fresh, toy_model()) as made:
        made.add(documents(12, year=2000))
    return fresh


def schema_of(address: str) -> str:
    return address.partition("collection=")[2]


def refused(work: Callable[[], object], kind: type[SnuhError] = CollectionError) -> str:
    """Return the message of an error, which does not contain the password."""
    with pytest.raises(kind) as caught:
        work()
    assert "\n" not in str(caught.value)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


# Addresses and secrets


@pytest.mark.parametrize(
    ("address", "safe"),
    [
        ("postgresql://u:p@ss:w/rd@h:1/db", "postgresql://u:***@h:1/db"),
        ("postgres://:pw@h/db?collection=c", "postgres://:***@h/db?collection=c"),
        (
            "postgresql://u@h/db?password=pw&x=1&sslpassword=pw",
            "postgresql://u@h/db?password=***&x=***&sslpassword=***",
        ),
        ("postgresql:///db", "postgresql:///db"),
        ("POSTGRESQL://u:pw@h/db", "POSTGRESQL://u:***@h/db"),
        ("milvus://u:pw@h:1/c?token=pw", "milvus://u:***@h:1/c?token=***"),
        ("postgresql://host:5432/db?user=a&password=x@yz", "postgresql://host:***"),
        ("postgresql://u:a?token=b@host/db", "postgresql://u:***"),
        (
            "postgresql://u@h/db?password=x&sslpassword=y&a=b",
            "postgresql://u@h/db?password=***&sslpassword=***&a=***",
        ),
        ("postgresql://u@h/db?password=ab#cd", "postgresql://u@h/db?password=***"),
        ("postgresql://u@h/db?password=a=b?c&tls=true", "postgresql://u@h/db?password=***&tls=true"),
        (
            "postgresql://u@h/db?oauth_client_secret=pw&oauth_client_id=i&port=1",
            "postgresql://u@h/db?oauth_client_secret=***&oauth_client_id=***&port=1",
        ),
        (
            "postgresql://u@h/db?scram_client_key=pw&scram_server_key=pw",
            "postgresql://u@h/db?scram_client_key=***&scram_server_key=***",
        ),
        ("postgresql://u@h/db?pass%77ord=pw&user=u", "postgresql://u@h/db?pass%77ord=***&user=u"),
        ("postgresql://u@h/db?password=a&b", "postgresql://u@h/db?password=***&***"),
        ("postgresql://u@h/db?collection=c?password=pw", "postgresql://u@h/db?collection=c?password=***"),
        ("postgresql://u@h/db&password=pw", "postgresql://u@h/db&password=***"),
        ("milvus://h/c?tls=true&key=pw", "milvus://h/c?tls=true&key=***"),
        (
            "postgresql:///db?host=h&port=1&user=u&dbname=d&sslmode=require&connect_timeout=3",
            "postgresql:///db?host=h&port=1&user=u&dbname=d&sslmode=require&connect_timeout=3",
        ),
        ("folder/a:b@c", "folder/a:b@c"),
    ],
)
def test_a_url_is_shown_without_its_password(address: str, safe: str) -> None:
    assert redact(address) == safe


def test_the_password_appears_in_no_output(
    engine: Postgres, address: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    toy_model().save(tmp_path / "model")
    (tmp_path / "new.jsonl").write_text('{"id": "n1", "text": "ship and fog", "year": 2001}\n')
    fresh, other = engine.fresh(), engine.fresh()
    mistakes = (("create", fresh, "--model", tmp_path / "model"), ("search", engine.fresh(), "ship"))
    for command in (
        ("create", fresh, "--model", tmp_path / "model", "--from", tmp_path / "new.jsonl"),
        ("add", fresh, tmp_path / "new.jsonl"),
        ("search", fresh, "ship", "--where", "year > 2000"),
        ("similar", fresh, "n1"),
        ("index", fresh),
        ("info", fresh),
        ("rehash", fresh, "--model", tmp_path / "model"),
        ("export", fresh, "--out", tmp_path / "out.jsonl"),
        ("dedup", fresh),
        ("copy", fresh, other),
        ("delete", fresh, "n1", "--json"),
        *mistakes,
    ):
        ran = run(*command)
        assert ran.code == (2 if command in mistakes else 0)
        assert PASSWORD not in ran.stdout + ran.stderr
    with Collection(other) as copied:
        assert [one.id for one in copied.documents()] == ["n1"]
        assert PASSWORD not in repr(copied) + repr(copied.info()) + copied.name
        engine.restart()
        assert len(copied) == 1
    assert PASSWORD not in caplog.text


def test_the_password_may_come_from_the_environment(
    engine: Postgres, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = address.replace(f":{PASSWORD}@", "@")
    assert "give a password in the URL, in PGPASSWORD" in refused(lambda: Collection(bare))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with Collection(bare) as opened:
        assert len(opened) == 12


def test_a_secret_in_an_invalid_name_is_redacted() -> None:
    message = refused(lambda: Collection("postgresql://u@h/db?collection=c?password=hidden"), InputError)
    assert "the name of a collection must be" in message and "hidden" not in message


# What is wrong before anything is read


def test_an_old_server_is_refused() -> None:
    for version in (130_000, 180_004):
        connection.check_version(version, name="x")
    with pytest.raises(
        CollectionError, match=r"x: expected PostgreSQL 13 or newer, got 12: update the server"
    ):
        connection.check_version(120_022, name="x")


def test_connecting_to_a_silent_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"postgresql://owner:{PASSWORD}@127.0.0.1:{silent.getsockname()[1]}/db?connect_timeout=2"
        assert "cannot connect to postgresql://owner:***@127.0.0.1:" in refused(lambda: Collection(where))


def test_an_unreachable_server_is_reported(engine: Postgres) -> None:
    nowhere = f"postgresql://owner:{PASSWORD}@127.0.0.1:{free_port()}/db"
    message = refused(lambda: Collection(nowhere))
    assert (
        message.startswith("cannot connect to postgresql://owner:***@127.0.0.1:")
        and "is the server running" in message
    )


def test_a_wrong_password_and_an_unknown_database_are_reported(engine: Postgres, address: str) -> None:
    message = refused(lambda: Collection(address.replace(PASSWORD, "wrong-word")))
    assert "give the right user and password" in message and "wrong-word" not in message
    message = refused(lambda: Collection(address.replace(engine.database, "no_such_db")))
    assert 'database "no_such_db" does not exist' in message and "correct the URL" in message


@pytest.mark.parametrize(
    "name", ["Upper", "a-b", "x; DROP TABLE y", "pg_toast", "information_schema", "9", "a" * 64]
)
def test_an_invalid_collection_name_is_refused(engine: Postgres, name: str) -> None:
    bad = engine.server.address(name, database=engine.database)
    assert "the name of a collection must be" in refused(
        lambda: Collection.create(bad, toy_model()), InputError
    )


@pytest.mark.parametrize("end", ["?bogus=1", "?collection=c&nonsense"])
def test_a_url_that_libpq_rejects_is_refused(end: str) -> None:
    bad = f"postgresql://owner:{PASSWORD}@127.0.0.1{end}"
    assert "expected a URL such as" in refused(lambda: Collection(bad), InputError)


@pytest.mark.parametrize("address", ["postgresql://u:hid@den@127.0.0.1:1/db", "postgresql://u:hid/den@h/db"])
def test_a_password_that_needs_encoding_is_redacted(address: str) -> None:
    message = refused(lambda: Collection(address), InputError)
    assert "write %40 for @" in message and "hid" not in message and "den" not in message


def test_a_missing_collection_is_reported(engine: Postgres) -> None:
    assert "there is no collection" in refused(lambda: Collection(engine.fresh()), InputError)


def test_tables_of_others_are_left_alone(engine: Postgres) -> None:
    fresh = engine.fresh()
    schema = schema_of(fresh)
    engine.server.run(f"CREATE SCHEMA {schema}", database=engine.database)
    engine.server.run(f"CREATE TABLE {schema}.documents (x int)", database=engine.database)
    assert "holds other tables, such as documents" in refused(
        lambda: Collection.create(fresh, toy_model()), InputError
    )
    assert "is not a collection" in refused(lambda: Collection(fresh), InputError)
    assert engine.server.run(f"SELECT * FROM {schema}.documents", database=engine.database) == []


def test_a_database_without_pgvector_is_refused(engine: Postgres) -> None:
    server, database = engine.server, engine.server.new_database(with_pgvector=False)
    server.run(f"ALTER DATABASE {database} SET extension_control_path = '/nowhere'")
    fresh = server.address("c", database=database)
    message = refused(lambda: Collection.create(fresh, toy_model()))
    assert 'this database has no pgvector: ask its owner to run "CREATE EXTENSION vector"' in message
    assert server.run("SELECT 1 FROM pg_namespace WHERE nspname = 'c'", database=database) == []
    server.run(f"ALTER DATABASE {database} RESET extension_control_path")
    Collection.create(fresh, toy_model()).close()  # whoever may, gets it installed
    server.run("UPDATE pg_extension SET extversion = '0.6.2' WHERE extname = 'vector'", database=database)
    assert "expected pgvector 0.7 or newer, got 0.6.2" in refused(lambda: Collection(fresh))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "DELETE FROM {0}.state",
            "was not completed: drop the schema {0}, and create it again",
        ),
        ("UPDATE {0}.state SET format = 3", "has format 3, this snuh reads 2: update snuh"),
        ("DROP TABLE {0}.postings_0", "there is no table postings_0"),
        ("ALTER TABLE {0}.documents DROP COLUMN text", "there is no column text in the table documents"),
        ("ALTER TABLE {0}.documents RENAME fields TO f", "there is no column fields in the table documents"),
        ("DROP TABLE {0}.models", "there is no table models"),
        ("DROP TABLE {0}.codes_0", "its code table is missing"),
        ("UPDATE {0}.state SET bits = 64", "the column code of the table codes_0 is bit(16), not bit(64)"),
        (
            "ALTER TABLE {0}.codes_0 ALTER code TYPE varbit(16)",
            "the column code of the table codes_0 is bit varying(16), not bit(16)",
        ),
        (
            "ALTER TABLE {0}.documents ALTER fields TYPE json",
            "the column fields of the table documents is json, not jsonb",
        ),
        ("ALTER TABLE {0}.state ALTER format TYPE text", "the column format of the table state is text"),
        ("TRUNCATE {0}.codes_0", 'codes are missing, such as that of the document "d0"'),
        ("DELETE FROM {0}.codes_0 WHERE seq > 9", 'codes are missing, such as that of the document "d9"'),
        ("DELETE FROM {0}.models WHERE name = 'model.json'", "has lost its model"),
        ("UPDATE {0}.models SET content = content || 'x'", "has lost its model"),
        ("UPDATE {0}.state SET model = 'another'", "has lost its model"),
    ],
)
def test_tables_that_are_not_as_they_were_made_are_refused(
    engine: Postgres, address: str, change: str, message: str
) -> None:
    schema = schema_of(address)
    engine.server.run(change.format(schema), database=engine.database)
    assert message.format(schema) in refused(lambda: Collection(address), SnuhError)
    assert "is a collection already" in refused(lambda: Collection.create(address, toy_model()), InputError)


def test_documents_without_a_known_word_need_no_codes(address: str) -> None:
    with Collection(address) as opened:
        opened.delete_where("year = 2000")
        opened.add([document(number, UNKNOWN) for number in range(3)])
    with Collection(address) as opened:
        assert opened.search("ship") == [] and len(opened) == 3


def test_a_lost_model_is_a_model_error(engine: Postgres, address: str) -> None:
    engine.server.run(f"DELETE FROM {schema_of(address)}.models", database=engine.database)
    refused(lambda: Collection(address), ModelError)


def test_codes_of_another_model_are_refused(address: str) -> None:
    with Collection(address) as opened, opened._backend.writing() as write:
        assert "holds 16-bit codes" in refused(lambda: write.put([NewDocument(document(1), b"12345678")]))
    with Collection(address) as opened:
        assert len(opened) == 12


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Document("bad", "a \0 b"), "U+0000"),
        (Document("bad\0", "ship"), "U+0000"),
        (Document("bad", "ship", metadata={"x": ["\0"]}), "U+0000"),
        (Document("bad", "ship", metadata={"\\\0": 1}), "U+0000"),
        (Document("bad", "ship", ("\0",)), "U+0000"),
        (Document("bad" + "é" * 1_000, "ship"), "its id has 2,003 bytes"),
    ],
)
def test_what_postgresql_cannot_hold_is_refused_with_its_batch(
    address: str, bad: Document, message: str
) -> None:
    with Collection(address) as opened:
        assert message in refused(lambda: opened.add([document(50), bad]), InputError)
        assert len(opened) == 12 and "d50" not in opened


@pytest.mark.parametrize("huge", [2**31, 2**63, 2**70])
def test_any_k_and_radius_may_be_asked_for_as_in_a_folder(address: str, huge: int) -> None:
    with Collection(address) as opened:
        every = opened.search("ship", mode="codes", k=12)
        assert (
            opened.search("ship", mode="codes", k=huge) == opened.search("ship", k=12, radius=huge) == every
        )
        assert len(opened.search("ship", k=huge)) == 12
        assert opened.similar("d1", k=huge) == opened.similar("d1", k=11)
        opened.build_index(k=3)
        assert sorted(hit.document.id for hit in opened.search("ship", k=huge, approximate=True)) == sorted(
            hit.document.id for hit in every
        )
        if huge > 2**31:
            assert "k must be at most 2,147,483,647" in refused(
                lambda: opened.build_index(k=huge), InputError
            )


def test_only_a_write_says_that_a_document_cannot_be_stored(address: str) -> None:
    with Collection(address) as opened:
        backend: Any = opened._backend
        assert "PostgreSQL reported an error (division by zero)" in refused(
            lambda: backend._value("SELECT 1 / 0")
        )

        def write() -> None:
            with backend.writing() as write:
                write._connection.execute("SELECT 1 / 0")

        assert "a document cannot be stored (division by zero)" in refused(write, InputError)


# Who may do what


@pytest.fixture(scope="module")
def reader(engine: Postgres) -> str:
    engine.server.run("CREATE ROLE reader LOGIN PASSWORD 'of-the-reader'")
    return "reader"


def as_reader(address: str) -> str:
    return address.replace(f"owner:{PASSWORD}@", "reader:of-the-reader@")


def test_a_reader_may_search_and_not_write(engine: Postgres, address: str, reader: str) -> None:
    assert "permission denied" in refused(lambda: Collection(as_reader(address)))
    schema = schema_of(address)
    engine.server.run(f"GRANT USAGE ON SCHEMA {schema} TO reader", database=engine.database)
    engine.server.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader", database=engine.database)
    with Collection(address) as opened:
        expected, before = opened.search("ship"), opened.version()
    with Collection(as_reader(address)) as opened:
        assert opened.search("ship") == expected
        assert opened.similar("d1") and opened.info().documents == 12
        for work in (
            lambda: opened.add([document(50)]),
            lambda: opened.delete(["d1"]),
            lambda: opened.delete_where("year = 2000"),
            lambda: opened.rehash(toy_model(1)),
            lambda: opened.build_index(),
        ):
            message = refused(work)
            assert (
                message.startswith("permission denied at postgresql://reader:***@")
                and "ask its owner" in message
            )
        assert opened.version() == before


def test_a_user_without_create_can_use_a_prepared_schema(engine: Postgres, reader: str) -> None:
    fresh = engine.fresh()
    for work in (
        lambda: Collection.create(as_reader(fresh), toy_model()),
        lambda: ensure_absent(as_reader(fresh)),
    ):
        assert "permission denied" in refused(work)
    engine.server.run(f"CREATE SCHEMA {schema_of(fresh)} AUTHORIZATION reader", database=engine.database)
    with Collection.create(as_reader(fresh), toy_model()) as made:
        assert made.add(documents(3)).inserted == 3


# Exact searches, and the index


def test_exact_searches_ignore_the_index(engine: Postgres) -> None:
    fresh = engine.fresh()
    with Collection.create(fresh, toy_model(bits=32)) as made:
        mirror = Mirror(toy_model(bits=32))
        mirror.add(
            documents(1_000, kind="a") + [document(number, kind="b") for number in range(1_000, 1_030)]
        )
        made.add(mirror.documents.values())
        index = made.build_index(k=10, recall=0.95)
        assert index.recall >= 0.95 and index.settings["ef_search"] >= 40
    # Whatever the planner would rather do.
    user = engine.server.run("SELECT current_user")[0][0]
    engine.server.run(f"ALTER ROLE {user} IN DATABASE {engine.database} SET enable_seqscan = off")
    try:
        with Collection(fresh) as opened:
            for text in WORDS[:6]:
                for options in ({"k": 200}, {"k": 30, "where": 'kind = "b"'}):
                    assert opened.search(text, mode="codes", **options) == mirror.search(text, **options)  # type: ignore[arg-type]
            found = opened.search("ship fog", k=30, where='kind = "b"', approximate=True)
            assert len(found) == 30  # k come where k exist
    finally:
        engine.server.run(f"ALTER ROLE {user} IN DATABASE {engine.database} RESET enable_seqscan")


def test_only_approximate_searches_use_the_index(engine: Postgres, address: str) -> None:
    with Collection(address) as opened:
        opened.build_index(k=3)
    before = _scans(engine, address)
    with Collection(address) as opened:
        opened.search("ship", k=3)
    assert _scans(engine, address) == before
    with Collection(address) as opened:
        opened.search("ship", k=3, approximate=True)
    assert _scans(engine, address) > before


def test_others_search_while_an_index_waits_for_a_reader(engine: Postgres, address: str) -> None:
    with Collection(address) as opened, Collection(address) as reader:
        opened.build_index(k=3)
        making = threading.Thread(target=opened.build_index)
        with reader._backend.reading(), patch.object(connection, "READING_SECONDS", 10):
            assert len(reader.search("ship", k=3)) == 3  # holds on to the index
            making.start()
            _wait_until(engine, "query LIKE 'DROP INDEX%' AND wait_event_type = 'Lock'")
            with Collection(address) as other:
                assert len(other.search("ship", k=3)) == 3
        making.join()
        info = opened.info().index
        assert info is not None and info.k == 10


def _wait_until(engine: Postgres, condition: str) -> None:
    """Wait until one of snuh's connections is in a certain state."""
    end = time.monotonic() + SECONDS
    asked = f"SELECT 1 FROM pg_stat_activity WHERE application_name = 'snuh' AND {condition}"
    while not engine.server.run(asked):
        assert time.monotonic() < end
        time.sleep(0.02)


def _scans(engine: Postgres, address: str) -> int:
    """Return how often the index was read by those who are gone."""
    here = {"database": engine.database}
    end = time.monotonic() + SECONDS
    while engine.server.run("SELECT 1 FROM pg_stat_activity WHERE application_name = 'snuh'", **here):
        assert time.monotonic() < end
        time.sleep(0.02)
    counted = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'codes_0_hnsw'"
    ((scans,),) = engine.server.run(f"{counted} AND schemaname = '{schema_of(address)}'", **here)
    assert isinstance(scans, int)
    return scans


# The index of words


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM {0}.postings_0 WHERE documents = 1",
        "UPDATE {0}.postings_0 SET data = overlay(data PLACING '\\x07' FROM 3)",  # other counts
        "DELETE FROM {0}.rows_0",
        "UPDATE {0}.codes_0 SET code = ~code WHERE seq = 3",
    ],
)
def test_a_check_compares_the_words_with_the_documents(engine: Postgres, address: str, change: str) -> None:
    with Collection(address) as opened:
        assert opened.check() == []
    engine.server.run(change.format(schema_of(address)), database=engine.database)
    with Collection(address) as opened:
        problem = opened.check()[-1]
        assert problem.startswith("the index of words disagrees with the documents")
        opened.rehash(opened.model)
        assert opened.check() == []


def test_documents_of_several_blocks_are_replaced_and_deleted(
    engine: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(words, "BLOCK_BITS", 3)
    monkeypatch.setattr(words, "OFFSETS", 7)
    address, mirror = engine.fresh(), Mirror(toy_model())
    gone = [f"d{number}" for number in range(3, 35)]
    with Collection.create(address, toy_model()) as opened, Collection(address) as other:
        for write in (documents(40), documents(9), [document(number) for number in range(30, 50)]):
            opened.add(write)
            mirror.add(write)
            assert_answers_like(other, mirror, texts=WORDS[:2])
        opened.delete(gone)
        mirror.delete(gone)
        assert_answers_like(other, mirror, texts=WORDS[:2])
        assert other.check() == []


def test_a_collection_of_the_format_before_has_no_index_of_words(engine: Postgres, address: str) -> None:
    schema = schema_of(address)
    for change in ("UPDATE {0}.state SET format = 1", "DROP TABLE {0}.postings_0, {0}.rows_0"):
        engine.server.run(change.format(schema), database=engine.database)
    with Collection(address) as opened:
        assert opened.add([document(50)]).inserted == 1 and opened.delete(["d1"]) == 1
        opened.rehash(toy_model(1))
        assert not opened.info().has_words and opened.check() == [] and opened.search("ship")


# Several at once, and a server that dies


def test_a_batch_is_seen_whole_or_not_at_all(address: str) -> None:
    counts: set[int] = set()
    ended = threading.Event()

    def read() -> None:
        with Collection(address) as own:
            while not ended.is_set():
                counts.add(len(own.search("ship fog", mode="codes", k=1_000)))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with Collection(address) as own:
            for start in range(100, 200, 20):
                own.add([document(number, "ship") for number in range(start, start + 20)])
    finally:
        ended.set()
        reader.join()
    assert counts and all((count - 12) % 20 == 0 for count in counts)


def test_a_writer_that_waits_too_long_reports_it(engine: Postgres, address: str) -> None:
    with engine.server.connect(engine.database) as other, other.transaction():
        other.execute(f"SELECT * FROM {schema_of(address)}.state FOR UPDATE".encode())
        with Collection(address, timeout=0.2) as opened:
            assert "another process is writing to it" in refused(lambda: opened.add([document(50)]))
            assert len(opened.search("ship", mode="codes")) == 10


def test_writers_take_turns_whatever_isolation_the_database_prefers(engine: Postgres, address: str) -> None:
    engine.server.run(
        f"ALTER DATABASE {engine.database} SET default_transaction_isolation = 'repeatable read'"
    )
    problems: list[BaseException] = []

    def write(backend: Backend) -> None:
        try:
            with backend.writing() as write:
                write.put([NewDocument(document(51), None)])
        except SnuhError as error:
            problems.append(error)

    try:
        with Collection(address) as first, Collection(address) as second:
            waiting = threading.Thread(target=write, args=(second._backend,))
            with first._backend.writing() as write_first:
                write_first.put([NewDocument(document(50), None)])
                waiting.start()
                _wait_until(engine, "wait_event_type = 'Lock'")
            waiting.join()
            assert not problems
            assert [one.id for one in first.documents()][12:] == ["d50", "d51"]
    finally:
        engine.server.run(f"ALTER DATABASE {engine.database} RESET default_transaction_isolation")


@pytest.mark.parametrize("kind", [psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected])
def test_conflicts_between_writers_have_their_own_message(kind: type[psycopg.Error]) -> None:
    error = translate_error("x", kind("message"))
    assert isinstance(error, LostConnectionError)  # nothing was written: it is tried again
    assert str(error) == "x: another process wrote to it at the same time: try again (message)"


def test_a_statement_that_takes_too_long_is_cancelled(address: str) -> None:
    with patch.object(connection, "READING_SECONDS", 0.1), Collection(address) as opened:
        backend: Any = opened._backend
        message = refused(lambda: backend._value("SELECT pg_sleep(60)"))
        assert "it took too long and was cancelled" in message
        assert len(opened) == 12


def test_a_thread_that_gets_no_connection_reports_it(address: str) -> None:
    messages: list[str] = []
    with (
        patch.object(connection, "MAX_CONNECTIONS", 1),
        patch.object(connection, "RECONNECTING_SECONDS", 1.0),
        Collection(address) as opened,
    ):
        other = threading.Thread(target=lambda: messages.append(refused(opened.version)))
        with opened._backend.reading():
            other.start()
            other.join()
        assert "all connections are in use: try again later" in messages[0]
        assert len(opened) == 12


def test_a_rehash_that_another_one_overtook_stops(address: str) -> None:
    with Collection(address) as opened, Collection(address) as other:

        def overtake(_: float) -> None:
            other.rehash(toy_model(2, bits=24))

        message = refused(lambda: opened.rehash(toy_model(1), progress=overtake))
        assert message == f"{opened.name}: another rehash has started: this one stops"
        assert opened.info().bits == 24


def test_a_collection_opens_while_its_codes_are_replaced(address: str) -> None:
    ended = threading.Event()

    def rehash() -> None:
        with Collection(address) as own:
            while not ended.is_set():
                own.rehash(toy_model(1))

    rehashing = threading.Thread(target=rehash)
    rehashing.start()
    try:
        for _ in range(30):
            Collection(address).close()
    finally:
        ended.set()
        rehashing.join()


def test_a_rehash_that_is_stopped_leaves_the_old_codes(engine: Postgres, address: str) -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with Collection(address) as opened:
        before = opened.search("ship", k=12)
        for model in (toy_model(1), toy_model(2, bits=24)):
            with pytest.raises(KeyboardInterrupt):
                opened.rehash(model, progress=stop)
        assert opened.search("ship", k=12) == before
        opened.rehash(toy_model(2, bits=24))
        mirror = Mirror(toy_model(2, bits=24), {one.id: one for one in documents(12, year=2000)})
        assert_answers_like(opened, mirror)
    left = engine.server.run(
        f"SELECT count(*) FROM pg_tables WHERE schemaname = '{schema_of(address)}' AND tablename ~ 'codes_'",
        database=engine.database,
    )
    assert left == [(1,)]


class Cutting:
    """Leads to a server; once armed, the next write's COMMIT goes to `at_commit`, and it is cut."""

    def __init__(self, address: str) -> None:
        self._port = address.rpartition(":")[2].partition("/")[0]
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = address.replace(f":{self._port}/", f":{self._listening.getsockname()[1]}/")
        self.at_commit: Callable[[Callable[[], object]], object] | None = None

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._lead, args=(client,), daemon=True).start()

    def _lead(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", int(self._port))) as server:
            is_writing = False
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(65_536)
                    is_writing |= b"pg_current_xact_id" in data  # what a write asks for last
                    at_commit = self.at_commit if is_writing and b"COMMIT\0" in data else None
                    if at_commit is not None and source is client:
                        self.at_commit = None
                        at_commit(lambda sent=data: (server.sendall(sent), server.recv(65_536)))
                    if not data or at_commit is not None:
                        return
                    (server if source is client else client).sendall(data)


def crash(engine: Postgres) -> None:
    """Kill all processes of a server at once: what was in their memory only is lost; and start it again."""
    others = [int(str(pid)) for (pid,) in engine.server.run("SELECT pid FROM pg_stat_activity")]
    engine.server.kill()
    for pid in others:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    engine.server.start()


@pytest.mark.parametrize("when", ["before", "after", "in a crash", "in a crash, and others go on"])
def test_a_write_cut_off_during_commit_is_made_once(engine: Postgres, address: str, when: str) -> None:
    cuts = 0

    def at_commit(pass_on: Callable[[], object]) -> None:
        nonlocal cuts
        cuts += 1
        if when == "after":
            pass_on()
        if "crash" in when:
            crash(engine)
        if "others" in when:  # and one of them gets the number of the transaction that was lost
            for _ in range(20):
                engine.server.run("SELECT pg_current_xact_id()")

    with Cutting(address) as cutting, Collection(cutting.address) as opened:
        cutting.at_commit = at_commit
        assert opened.add([document(50, "fog")]) == Added(1, 0, 0)
        cutting.at_commit = at_commit
        assert opened.delete(["d1"]) == 1
        assert cuts == 2
        kept = [f"d{number}" for number in range(12) if number != 1]
        assert [one.id for one in opened.documents()] == [*kept, "d50"]


def test_a_connection_lost_in_a_copy_is_reported_once(engine: Postgres, address: str) -> None:
    code = (
        "import sys, psycopg\n"
        "from snuh.collection.copy import copy_collection\n"
        "from snuh.errors import CollectionError\n"
        "def cut(_):\n"
        "    with psycopg.connect(sys.argv[3]) as connection:\n"
        "        connection.execute('SELECT pg_terminate_backend(pid) FROM pg_stat_activity '\n"
        "                           \"WHERE application_name = 'snuh'\")\n"
        "try:\n"
        "    copy_collection(sys.argv[1], sys.argv[2], progress=cut)\n"
        "except CollectionError as error:\n"
        "    sys.exit(str(error))"
    )
    command = [sys.executable, "-c", code, address, engine.fresh(), address.partition("?")[0]]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "the connection was lost: try again" in done.stderr


def test_a_write_whose_connection_is_cut_is_made_once(engine: Postgres, address: str) -> None:
    with Collection(address) as opened:
        cut = 0

        def documents_with_a_cut() -> Iterator[Document]:
            nonlocal cut
            for number in range(50, 80):
                if number % 10 == 5:
                    cut += len(
                        engine.server.run(
                            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                            "WHERE application_name = 'snuh' AND pid <> pg_backend_pid()"
                        )
                    )
                yield document(number, "fog")

        with patch.object(encoding, "BATCH_DOCUMENTS", 4):
            assert opened.add(documents_with_a_cut()).inserted == 30
        assert cut
        assert [one.id for one in opened.documents()][12:] == [f"d{number}" for number in range(50, 80)]


@pytest.mark.slow
def test_a_server_killed_in_the_middle_of_an_ingest_holds_each_document_once_after_a_rerun(
    engine: Postgres,
) -> None:
    fresh = engine.fresh()
    count, rng = 100_000, random.Random(0)
    texts = [" ".join(rng.choices(WORDS, k=2)) for _ in range(97)]
    every = [Document(f"d{number}", texts[number % 97], metadata={"n": number}) for number in range(count)]
    kill_at = {30_000: "stays down", 60_000: "is started at once"}

    def given() -> Iterator[Document]:
        for number, one in enumerate(every):
            if kill_at.get(number) == "stays down":
                threading.Timer(0.05, engine.server.kill).start()  # somewhere in the batch that follows
            if kill_at.get(number) == "is started at once":
                engine.restart()
            yield one

    with Collection.create(fresh, toy_model()) as opened, patch.object(encoding, "BATCH_DOCUMENTS", 5_000):
        with patch.object(connection, "RECONNECTING_SECONDS", 1.0), Collection(fresh) as impatient:
            message = refused(lambda: impatient.add(given()))
        assert "cannot connect" in message and "documents were added" in message
        engine.server.start()
        kept = len(opened)
        assert 30_000 <= kept < count and kept % 5_000 == 0
        del kill_at[30_000]
        added = opened.add(given())
        assert added.inserted == count - kept and added.replaced == kept
        assert len(opened) == count and opened.info().searchable == count
        assert [one.id for one in opened.documents()] == [one.id for one in every]
        # Of the codes, each is that of its document.
        rows = opened.sample(500)
        assert (rows.codes == opened.model.encode([one.text for one in rows.documents])).all()


def test_a_copy_whose_process_is_killed_leaves_nothing_behind(
    engine: Postgres, address: str, tmp_path: Path
) -> None:
    target = engine.fresh()
    code = (
        "import os, signal, sys; from snuh.collection.copy import copy_collection\n"
        "copy_collection(*sys.argv[1:], progress=lambda _: os.kill(os.getpid(), signal.SIGKILL))"
    )
    for there in (target, str(tmp_path / "copy")):
        done = subprocess.run([sys.executable, "-c", code, address, there], env=environment(), timeout=120)
        assert done.returncode == -signal.SIGKILL
        assert not is_collection(there)
        assert copy_collection(address, there) == 12
    with Collection(target) as copied, Collection(address) as original:
        assert list(copied.documents()) == list(original.documents())


# The other ways in


def test_without_its_client_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from snuh.cli import main\nsys.argv = ['snuh', 'info', 'postgresql://u:hidden@h/db']\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=120
    )
    assert done.returncode == 2
    assert done.stderr.strip() == 'snuh: postgresql:// needs psycopg: pip install "snuhash[postgres]"'


def test_json_is_what_the_command_line_promises(address: str) -> None:
    info = json.loads(run("info", address, "--json").stdout)
    assert info["collection"] == redact(address) and info["documents"] == 12 and info["index"] is None
    assert json.loads(run("index", address, "-k", "3", "--json").stdout)["ef_search"] == 40
