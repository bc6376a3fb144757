"""Full disks and folders without permission to write: a clear error, and nothing acknowledged is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from snuh.collection import Collection
from snuh.corpus import Document
from snuh.errors import CollectionError, InputError, SnuhError
from tests.collection.processes import become_nobody, in_child, say, started
from tests.collection.worlds import WORDS, Mirror, assert_answers_like, document, documents, stored, toy_model
from tests.worlds import files_limited_to

LARGE = " ".join(WORDS) + " ." * 20_000  # 40 kB, of which few words take time


@pytest.fixture
def small_disk(workspace: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    if shutil.which("mount") is None or os.getuid() != 0:
        pytest.skip("mounting a small disk needs root")
    disk = workspace / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"this machine allows no mounting: {mounted.stderr.decode().strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def large(number: int) -> Document:
    return document(number, LARGE, size=len(LARGE))


def add_until_it_fails(folder: Path) -> tuple[Mirror, str]:
    """Add documents one by one; return what was acknowledged, and the message of the first failure."""
    mirror = Mirror(toy_model())
    with Collection(folder) as collection:
        for number in range(1_000):
            try:
                collection.add([large(number)])
            except CollectionError as error:
                assert_answers_like(collection, mirror)
                return mirror, str(error)
            mirror.add([large(number)])
    raise AssertionError("the disk never filled up")


def test_a_full_disk_is_reported_and_loses_nothing(small_disk: Path) -> None:
    folder = small_disk / "c"
    Collection.create(folder, toy_model()).close()
    mirror, message = add_until_it_fails(folder)
    assert len(mirror.documents) > 10
    assert "the disk is full" in message and "\n" not in message
    assert list(stored(folder).documents.items()) == list(mirror.documents.items())
    with Collection(folder) as collection:
        assert_answers_like(collection, mirror)


def test_writing_continues_once_a_full_disk_has_space_again(small_disk: Path) -> None:
    folder = small_disk / "c"
    ballast = small_disk / "ballast"
    Collection.create(folder, toy_model()).close()
    ballast.write_bytes(b"\0" * 500_000)
    with Collection(folder) as collection:
        kept = 0
        with pytest.raises(CollectionError, match="the disk is full"):
            for kept in range(1_000):
                collection.add([large(kept)])
        ballast.unlink()
        collection.add([large(kept), large(kept + 1)])
        assert len(collection) == kept + 2
        assert list(stored(folder).documents) == [f"d{number}" for number in range(kept + 2)]


def test_on_a_full_disk_searches_and_deletions_fail_clearly_or_work(small_disk: Path) -> None:
    folder = small_disk / "c"
    with Collection.create(folder, toy_model()) as collection:
        collection.add(documents(20))
    expected = stored(folder)
    (folder / "codes.bin").unlink()
    with (small_disk / "ballast").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while file.write(b"\0" * 4096):
            pass
    try:
        with Collection(folder) as collection:
            assert_answers_like(collection, expected)  # the codes cannot be written, and are not needed
            collection.delete(["d3"])
            expected.delete(["d3"])
    except CollectionError as error:
        assert "disk" in str(error) and "\n" not in str(error)
    (small_disk / "ballast").unlink()
    with Collection(folder) as collection:
        assert_answers_like(collection, expected)


def test_a_rehash_on_a_full_disk_leaves_the_old_codes(small_disk: Path) -> None:
    folder = small_disk / "c"
    Collection.create(folder, toy_model()).close()
    mirror, _ = add_until_it_fails(folder)
    with (small_disk / "ballast").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while file.write(b"\0" * 512):
            pass
    try:
        with Collection(folder) as collection, pytest.raises(SnuhError) as caught:
            collection.rehash(toy_model(1))
        assert "\n" not in str(caught.value)
    except CollectionError as error:
        assert "disk" in str(error)
    (small_disk / "ballast").unlink()
    with Collection(folder) as collection:
        assert_answers_like(collection, mirror)


def test_a_collection_that_does_not_fit_is_not_there(small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(b"\0" * (2 * 1024 * 1024 - 16_384))
    with pytest.raises(SnuhError) as caught:
        Collection.create(small_disk / "c", toy_model())
    assert "\n" not in str(caught.value)
    assert [entry.name for entry in small_disk.iterdir()] == ["ballast"]


def test_a_limit_on_the_size_of_files_loses_nothing_that_was_acknowledged(folder: Path) -> None:
    def fill() -> tuple[list[str], str]:
        acknowledged = []
        with Collection(folder) as collection, files_limited_to(300_000):
            for number in range(100, 1_000):
                try:
                    collection.add([large(number)])
                except CollectionError as error:
                    return acknowledged, str(error)
                acknowledged.append(f"d{number}")
        raise AssertionError("the limit was never reached")

    before = list(stored(folder).documents)
    acknowledged, message = in_child(fill)
    assert "disk" in message and "\n" not in message
    assert acknowledged and list(stored(folder).documents) == before + acknowledged
    with Collection(folder) as collection:
        assert_answers_like(collection, stored(folder))


def test_the_error_of_a_later_batch_gives_the_number_of_added_documents(folder: Path) -> None:
    from tests.collection.worlds import tiny_thresholds

    given = [*documents(8), Document("bad", "ship", metadata={"x": float("nan")})]
    with (
        tiny_thresholds(batch=4),
        Collection(folder) as collection,
        pytest.raises(InputError, match="the first 8 documents were added"),
    ):
        collection.add(given)


# Folders that cannot be written to


def without_permission(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode & 0o555)


def as_nobody(function: Callable[[], object]) -> object:
    def run() -> object:
        become_nobody()
        return function()

    return in_child(run)


def test_a_read_only_folder_can_be_searched_and_not_written_to(folder: Path) -> None:
    expected = stored(folder)
    without_permission(folder)

    def use() -> list[str]:
        messages = []
        with Collection(folder) as collection:
            assert_answers_like(collection, expected)
            for write in (
                lambda: collection.add([document(1)]),
                lambda: collection.delete(["d1"]),
                lambda: collection.delete_where("year = 2000"),
                lambda: collection.rehash(toy_model(1)),
            ):
                with pytest.raises(CollectionError) as caught:
                    write()
                messages.append(str(caught.value))
            assert_answers_like(collection, expected)
        return messages

    messages = as_nobody(use)
    assert isinstance(messages, list)
    for message in messages:
        assert "\n" not in message
        assert "cannot be written to: check the permissions of its folder" in message


def test_a_read_only_folder_without_a_code_file_can_be_searched(folder: Path) -> None:
    expected = stored(folder)
    (folder / "codes.bin").unlink()
    without_permission(folder)

    def use() -> None:
        with Collection(folder) as collection:
            assert_answers_like(collection, expected)

    as_nobody(use)


def test_a_read_only_folder_left_by_a_killed_writer_can_be_searched(folder: Path) -> None:
    def write_and_stop() -> None:
        collection = Collection(folder)
        collection.add(documents(30, year=2001))
        shutil.copytree(folder, folder.with_name("left"))  # with the log of what was written

    in_child(write_and_stop)
    left = folder.with_name("left")
    assert (left / "store.sqlite-wal").stat().st_size
    expected = stored(folder)
    without_permission(left)

    def use() -> None:
        with Collection(left) as collection:
            assert_answers_like(collection, expected)

    as_nobody(use)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to write where the reader cannot")
def test_a_reader_without_permission_sees_what_others_write(folder: Path) -> None:
    without_permission(folder)

    def read(pipe: Connection) -> list[int]:
        become_nobody()
        counts = []
        with Collection(folder) as collection:
            for _ in range(3):
                found = collection.search("ship", mode="codes", k=1_000)
                counts.append(len(found))
                assert len(collection) == len(list(collection.documents()))
                say(pipe, "searched")
                pipe.recv()
        return counts

    sizes = []
    with started(read) as (reader,):
        for number in range(3):
            reader.wait_for("searched")
            with Collection(folder) as collection:
                sizes.append(len(collection))
                collection.add(document(1_000 * number + other, "ship") for other in range(500))
                collection.delete_where("year is null and id < 'd1'")
            reader.tell("go on")
        assert reader.result() == sizes
