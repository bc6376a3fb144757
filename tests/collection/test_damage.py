"""Damaged, foreign and newer files: repaired where they can be made again, refused in one line where not."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from zlib import crc32

import pytest

from snuh.collection import Collection
from snuh.collection.local.backend import creating
from snuh.errors import CollectionError, InputError, ModelError, SnuhError
from tests.collection.processes import say, started
from tests.collection.worlds import Mirror, assert_answers_like, document, documents, stored, toy_model

CODES, STORE = "codes.bin", "store.sqlite"


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def error_message(folder: Path, kind: type[SnuhError]) -> str:
    """Return the sentence with which opening is refused; the files must stay as they are."""
    before = contents(folder)
    with pytest.raises(kind) as caught:
        Collection(folder)
    assert contents(folder) == before
    message = str(caught.value)
    assert "\n" not in message and str(folder) in message
    return message


# The code file


def flip(content: bytes, position: int, bit: int = 0) -> bytes:
    return content[:position] + bytes([content[position] ^ 1 << bit]) + content[position + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"not codes",
        lambda content: b"\0" * len(content),
        lambda content: content[:4096],
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: content[:100],
        lambda content: flip(content, 4096),
        lambda content: flip(content, len(content) - 1),
        lambda content: b"[" * 4095 + b"\n" + content[4096:],
    ],
)
def test_a_damaged_code_file_is_rebuilt_silently(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    whole = (folder / CODES).read_bytes()
    (folder / CODES).write_bytes(damage(whole))
    with Collection(folder) as collection:
        assert_answers_like(collection, stored(folder))
    assert (folder / CODES).read_bytes() == whole


def test_no_flipped_bit_of_the_code_file_leads_to_a_wrong_answer_now_or_later(folder: Path) -> None:
    whole = (folder / CODES).read_bytes()
    with Collection(folder) as collection:
        collection.add([document(20), document(3, "fog")])
        collection.delete(["d5"])
    expected = stored(folder)
    written = len(whole[:4096].rstrip())
    for position in [*range(written), *range(4096, len(whole), 7)]:
        for bit in (position % 8, (position + 4) % 8):
            (folder / CODES).write_bytes(flip(whole, position, bit))
            with Collection(folder) as collection:
                found = collection.search("ship", mode="codes", k=50)
                assert found == expected.search("ship", k=50), (
                    position,
                    bit,
                    flip(whole, position, bit)[:300],
                )


def test_the_code_file_of_another_collection_is_ignored(folder: Path) -> None:
    with Collection.create(folder.with_name("other"), toy_model()) as other:
        other.add(document(number + 100) for number in range(12))
    shutil.copyfile(folder.with_name("other") / CODES, folder / CODES)
    with Collection(folder) as collection:
        assert_answers_like(collection, stored(folder))
        collection.add([document(50)])
    with Collection(folder) as collection:
        assert_answers_like(collection, stored(folder))


def test_a_code_file_of_another_collection_is_rewritten(folder: Path) -> None:
    with Collection.create(folder.with_name("other"), toy_model()) as other:
        other.add(document(number + 100) for number in range(12))
    whole = (folder / CODES).read_bytes()
    shutil.copyfile(folder.with_name("other") / CODES, folder / CODES)
    with Collection(folder) as collection:
        collection.search("ship")
    assert (folder / CODES).read_bytes() == whole


def test_after_a_rehash_the_code_file_holds_the_codes_of_the_new_model(folder: Path) -> None:
    with Collection(folder) as collection:
        collection.rehash(toy_model(1))
        codes = [code for code in (collection.model.encode([d.text]) for d in collection.documents())]
    assert (folder / CODES).read_bytes().endswith(b"".join(code.tobytes() for code in codes))


def test_an_older_store_under_newer_codes_gives_no_wrong_answer(folder: Path) -> None:
    backup = (folder / STORE).read_bytes()
    with Collection(folder) as collection:
        collection.add([document(3, "fog"), document(30), document(31)])
        collection.delete(["d7"])
    (folder / CODES).unlink()
    with Collection(folder) as collection:
        collection.search("ship")  # writes the newer codes
    (folder / STORE).write_bytes(backup)
    with Collection(folder) as collection:
        assert_answers_like(collection, stored(folder))
        # As many writes as before, so that only the token tells the two histories apart.
        collection.add([document(4, "rope"), document(40), document(41)])
        collection.delete(["d1"])
        assert_answers_like(collection, stored(folder))
    with Collection(folder) as collection:
        assert_answers_like(collection, stored(folder))


def test_an_open_collection_notices_a_store_that_was_put_back(folder: Path) -> None:
    backup = (folder / STORE).read_bytes()
    with Collection(folder) as collection:
        collection.add([document(30), document(31)])
    shutil.copyfile(folder / CODES, folder.with_name("newer codes"))
    (folder / STORE).write_bytes(backup)
    shutil.copyfile(folder.with_name("newer codes"), folder / CODES)
    with Collection(folder) as collection:
        collection.add([document(32, "ice"), document(33, "ice")])
        assert_answers_like(collection, stored(folder))


# The store


@pytest.mark.parametrize("length", [0, 1, 50, 99, 100, 4095, 4096, 4097, 3 * 4096, -4096, -1])
def test_a_truncated_store_is_refused(folder: Path, length: int) -> None:
    (folder / STORE).write_bytes((folder / STORE).read_bytes()[:length])
    assert "store is damaged: restore the folder from a copy" in error_message(folder, CollectionError)


@pytest.mark.parametrize(
    "content",
    [
        b"garbage " * 4096,
        b"SQLite format 3\0" + b"\0" * 8192,
        b"SQLite format 3\0" + b"\xff" * 8192,
        b"\0" * 8192,
    ],
)
def test_a_store_of_garbage_is_refused(folder: Path, content: bytes) -> None:
    (folder / STORE).write_bytes(content)
    assert "store is damaged: restore the folder from a copy" in error_message(folder, CollectionError)


def test_a_store_with_pages_of_garbage_is_refused_or_reported_in_one_line(folder: Path) -> None:
    whole = (folder / STORE).read_bytes()
    expected = stored(folder)
    for page in range(1, len(whole) // 4096):
        start = page * 4096
        (folder / STORE).write_bytes(whole[:start] + b"\xa5" * 4096 + whole[start + 4096 :])
        try:
            with Collection(folder) as collection:
                (folder / CODES).unlink(missing_ok=True)
                assert_answers_like(collection, expected)
        except SnuhError as error:
            assert "\n" not in str(error) and "restore the folder" in str(error)


def test_a_missing_store_is_refused(folder: Path) -> None:
    (folder / STORE).unlink()
    error_message(folder, CollectionError)
    assert not (folder / STORE).exists()


def test_some_other_sqlite_file_is_refused(folder: Path) -> None:
    (folder / STORE).unlink()
    connection = sqlite3.connect(folder / STORE)
    connection.executescript("CREATE TABLE state (x); PRAGMA user_version = 2; PRAGMA journal_mode = WAL;")
    connection.close()
    assert "restore the folder" in error_message(folder, CollectionError)


def test_a_store_that_lost_a_table_is_refused_in_one_line(folder: Path) -> None:
    connection = sqlite3.connect(folder / STORE)
    connection.execute("DROP TABLE codes")
    connection.close()
    (folder / CODES).unlink()
    with pytest.raises(CollectionError, match="restore the folder"), Collection(folder) as collection:
        collection.search("ship")


def test_a_store_of_a_newer_version_is_refused(folder: Path) -> None:
    connection = sqlite3.connect(folder / STORE)
    connection.execute("PRAGMA user_version = 3")
    connection.close()
    assert "format 3, this snuh reads 2: update snuh" in error_message(folder, CollectionError)


def test_a_changed_row_is_reported_and_never_returned(folder: Path) -> None:
    whole = (folder / STORE).read_bytes()
    for change in (
        "UPDATE documents SET text = 'ship' WHERE id = 'd3'",
        "UPDATE documents SET metadata = '{\"year\":2001}' WHERE id = 'd3'",
        "UPDATE documents SET id = 'd99' WHERE id = 'd3'",
        "UPDATE documents SET text = x'ff00' WHERE id = 'd3'",
        "UPDATE documents SET labels = 7 WHERE id = 'd3'",
        "UPDATE codes SET code = x'0001' WHERE seq = 4",
        "UPDATE codes SET code = 12 WHERE seq = 4",
        "UPDATE state SET next_seq = 2",
        "UPDATE state SET bits = 32",
        "DELETE FROM state",
    ):
        (folder / STORE).write_bytes(whole)
        (folder / CODES).unlink(missing_ok=True)
        with closing(sqlite3.connect(folder / STORE)) as connection, connection:
            connection.execute(change)
        with (
            pytest.raises(CollectionError, match="store is damaged: restore the folder") as caught,
            Collection(folder) as collection,
        ):
            collection.search("ship")
            list(collection.documents())
        assert "\n" not in str(caught.value), change


@pytest.mark.parametrize("seed", range(3))
def test_damage_at_random_places_of_the_store_is_reported_or_changes_nothing(folder: Path, seed: int) -> None:
    """The sweep of "make long" in short: every answer is as before, or one sentence."""
    rng = random.Random(seed)
    for _ in range(20):
        check_random_damage(folder, rng)


@pytest.mark.long
def test_damage_sweep(folder: Path) -> None:
    rng = random.Random(0)
    for _ in range(2_000):
        check_random_damage(folder, rng)


def check_random_damage(folder: Path, rng: random.Random) -> None:
    """Change a few bytes of the store; put it back afterwards."""
    expected = stored(folder)
    whole = (folder / STORE).read_bytes()
    damaged = bytearray(whole)
    for _ in range(rng.choice([1, 1, 2, 8])):
        start = rng.randrange(len(whole))
        length = rng.choice([1, 1, 2, 4, 16, 64])
        for position in range(start, min(start + length, len(whole))):
            damaged[position] = rng.choice(
                [0, 255, rng.randrange(256), damaged[position] ^ 1 << rng.randrange(8)]
            )
    try:
        (folder / STORE).write_bytes(damaged)
        (folder / CODES).unlink(missing_ok=True)
        try:
            with Collection(folder) as collection:
                every = list(expected.documents.values())
                assert list(collection.documents()) == every
                assert [collection.get(one.id) for one in every] == every
                assert collection.search("ship", mode="codes", k=50) == expected.search("ship", k=50)
        except SnuhError as error:
            assert "\n" not in str(error) and str(folder) in str(error)
    finally:
        (folder / STORE).write_bytes(whole)
        for suffix in ("-wal", "-shm"):
            (folder / f"{STORE}{suffix}").unlink(missing_ok=True)


def test_a_check_names_what_is_wrong(folder: Path) -> None:
    with Collection(folder) as collection:
        assert collection.check() == []
    whole = (folder / STORE).read_bytes()
    for change, problem in (
        ("UPDATE documents SET text = 'fog' WHERE id = 'd3'", "the document 'd3' has changed on disk"),
        ("UPDATE codes SET code = x'0001' WHERE seq = 4", "the code of row 4 has changed on disk"),
        ("DELETE FROM documents WHERE id = 'd3'", "12 documents were written, there are 11"),
        ("DELETE FROM codes WHERE seq = 4", "12 codes were written, there are 11"),
    ):
        (folder / STORE).write_bytes(whole)
        with closing(sqlite3.connect(folder / STORE)) as connection, connection:
            connection.execute(change)
        with Collection(folder) as collection:
            assert collection.check() == [problem]
    (folder / STORE).write_bytes(whole)
    with closing(sqlite3.connect(folder / STORE)) as connection, connection:
        code = b"\x12\x34"
        connection.execute("UPDATE codes SET code = ?, checksum = ? WHERE seq = 4", (code, crc32(code, 4)))
    (folder / CODES).unlink()
    with Collection(folder) as collection:
        assert collection.check() == ["the codes of 1 documents are not those of the model"]


# The rest of the folder


def test_a_collection_of_a_newer_version_is_refused(folder: Path) -> None:
    (folder / "collection.json").write_text(json.dumps({"format": "snuh-collection", "format_version": 2}))
    assert "format 2, this snuh reads 1: update snuh" in error_message(folder, CollectionError)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"format": "snuh-model"}'])
def test_a_folder_that_does_not_say_that_it_is_a_collection_is_refused(folder: Path, content: str) -> None:
    (folder / "collection.json").write_text(content)
    assert "is not a collection" in error_message(folder, InputError)


def test_a_missing_model_is_reported(folder: Path) -> None:
    shutil.rmtree(folder / "models")
    message = error_message(folder, ModelError)
    assert "has lost its model" in message and "restore" in message


@pytest.mark.parametrize("name", ["encoder.safetensors", "vocabulary.json", "model.json"])
def test_a_changed_model_is_refused(folder: Path, name: str) -> None:
    (path,) = folder.glob(f"models/*/{name}")
    content = path.read_bytes()
    path.write_bytes(flip(content, len(content) // 2))
    assert "has lost its model" in error_message(folder, ModelError)


@pytest.mark.parametrize("fingerprint", ["../../etc", "", "0" * 16, "0" * 15 + "G"])
def test_a_store_that_names_a_model_elsewhere_is_refused(folder: Path, fingerprint: str) -> None:
    connection = sqlite3.connect(folder / STORE)
    connection.execute("UPDATE state SET model = ?", (fingerprint,))
    connection.commit()
    connection.close()
    error_message(folder, SnuhError)


def test_models_that_differ_only_in_their_activation_have_different_fingerprints(folder: Path) -> None:
    from snuh.encoder import Encoder, Layer
    from snuh.model import Model

    model = toy_model()
    (layer,) = model.encoder.layers
    other = Encoder((Layer(layer.weight, layer.bias, "identity"),), model.encoder.threshold)
    again = Model(other, model.features, "toy identity")
    with Collection(folder) as collection:
        collection.rehash(again)
        assert_answers_like(collection, Mirror(again, stored(folder).documents))


def test_leftovers_of_stopped_processes_do_no_harm(folder: Path) -> None:
    expected = stored(folder)
    (folder / ".0a1b2c3d.codes.bin").write_bytes(b"half")
    (folder / "models" / ".0a1b2c3d").mkdir()
    (folder / "models" / ".0a1b2c3d" / "encoder.safetensors").write_bytes(b"half")
    folder.with_name(".c.0a1b2c3d").mkdir()
    with Collection(folder) as collection:
        assert_answers_like(collection, expected)
        collection.rehash(toy_model(1))
        assert_answers_like(collection, Mirror(toy_model(1), expected.documents))


def test_a_half_removed_model_is_replaced_when_it_comes_back(folder: Path) -> None:
    first = stored(folder)
    (kept,) = (folder / "models").iterdir()
    with Collection(folder) as collection:
        collection.rehash(toy_model(1))
        (kept / "vocabulary.json").unlink()  # as if a removal had been stopped
        collection.rehash(toy_model())
        assert_answers_like(collection, first)
    with Collection(folder) as collection:
        assert_answers_like(collection, first)


def test_an_interrupted_rehash_leaves_the_old_codes_and_can_be_done_again(folder: Path) -> None:
    def stop(fraction: float) -> None:
        raise KeyboardInterrupt

    expected = stored(folder)
    with Collection(folder) as collection:
        with pytest.raises(KeyboardInterrupt):
            collection.rehash(toy_model(1), progress=stop)
        assert_answers_like(collection, expected)
        collection.add([document(60)])
        collection.rehash(toy_model(1))
        expected.add([document(60)])
        assert_answers_like(collection, Mirror(toy_model(1), expected.documents))


def test_a_folder_is_usable_after_its_creation_was_killed(workspace: Path) -> None:
    empty = workspace / "empty"
    empty.mkdir()
    with started(lambda pipe: _create_and_wait(empty, pipe)) as (child,):
        child.wait_for("half")
        with pytest.raises(InputError, match="another process is creating"):
            Collection.create(empty, toy_model())
    assert (empty / STORE).exists() and not (empty / "collection.json").exists()
    with pytest.raises(InputError, match="is not a collection"):
        Collection(empty)
    with Collection.create(empty, toy_model()) as collection:
        collection.add(documents(3))
    assert sorted(path.name for path in empty.iterdir()) == [
        CODES,
        "collection.json",
        "models",
        STORE,
        "words.bin",
    ]


def _create_and_wait(folder: Path, pipe: Connection) -> None:
    with creating(str(folder), toy_model()) as put:
        put([])
        say(pipe, "half")
        time.sleep(600)


def test_making_a_collection_over_something_is_refused_and_changes_nothing(folder: Path) -> None:
    before = contents(folder)
    with pytest.raises(InputError, match="is a collection already"):
        Collection.create(folder, toy_model())
    assert contents(folder) == before
    other = folder.with_name("other")
    other.mkdir()
    (other / "precious").write_text("x")
    with pytest.raises(InputError, match="exists and is not empty"):
        Collection.create(other, toy_model())
    assert contents(other) == {"precious": b"x"}


def test_a_new_collection_is_on_the_disk_with_all_its_names(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = set()
    fsync = os.fsync

    def noting_fsync(descriptor: int) -> None:
        flushed.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting_fsync)
    Collection.create(workspace / "c", toy_model()).close()
    for path in [workspace, workspace / "c", *(workspace / "c").rglob("*")]:
        if not path.name.startswith(STORE):  # SQLite flushes its own
            assert path.stat().st_ino in flushed, path


def test_a_collection_can_be_made_in_an_empty_folder(workspace: Path) -> None:
    (workspace / "empty").mkdir()
    with Collection.create(workspace / "empty", toy_model()) as collection:
        collection.add(documents(3))
        assert len(collection) == 3
    assert [entry.name for entry in workspace.iterdir()] == ["empty"]
