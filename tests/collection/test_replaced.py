"""Open collections whose folder is replaced or removed, and a changed working directory."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from snuh.collection import Collection
from snuh.errors import CollectionError
from tests.collection.worlds import Mirror, assert_answers_like, document, documents, stored, toy_model


def test_a_relative_path_is_resolved_once(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    with Collection.create("c", toy_model()) as collection:
        monkeypatch.chdir(tmp_path)
        collection.add(documents(12))
        collection.rehash(toy_model(1))
        collection.build_index()
        assert_answers_like(collection, Mirror(toy_model(1), {one.id: one for one in documents(12)}))
        assert collection.name == "c"
    assert list(tmp_path.iterdir()) == []
    with Collection(workspace / "c") as collection:
        assert_answers_like(collection, stored(workspace / "c"))


def replace(folder: Path) -> Mirror:
    """Remove a collection and make another one in its place."""
    shutil.rmtree(folder)
    with Collection.create(folder, toy_model(1)) as other:
        other.add([document(100), document(101, "fog")])
    return stored(folder)


def test_a_replaced_folder_is_read_again(folder: Path) -> None:
    with Collection(folder) as collection:
        version = collection.version()
        expected = replace(folder)
        assert collection.version() != version
        assert_answers_like(collection, expected)
        assert collection.info().documents == 2


def test_writes_after_a_replacement_reach_the_new_collection(folder: Path) -> None:
    with Collection(folder) as collection:
        expected = replace(folder)
        with Collection(folder) as other:
            other.add([document(102)])  # in the WAL file, which closing the old store must leave alone
            collection.add([document(103)])
            collection.delete(["d100"])
        expected.add([document(102), document(103)])
        expected.delete(["d100"])
        assert_answers_like(collection, expected)
    assert stored(folder).documents == expected.documents
    with Collection(folder) as collection:
        assert_answers_like(collection, expected)


def test_a_rehash_of_a_replaced_collection_changes_the_new_one_only(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("moved"))
    with Collection(folder) as collection:
        expected = replace(folder)
        collection.rehash(toy_model(2))
        assert_answers_like(collection, Mirror(toy_model(2), expected.documents))
    assert stored(folder.with_name("moved")).model.method == "toy0"


def test_a_rehash_stops_when_its_collection_is_replaced(folder: Path) -> None:
    with Collection(folder) as collection:
        expected: list[Mirror] = []

        def swap(_: float) -> None:
            if not expected:
                expected.append(replace(folder))

        with pytest.raises(CollectionError, match="replaced"):
            collection.rehash(toy_model(2), progress=swap)
        assert_answers_like(collection, expected[0])
    assert stored(folder).model.method == "toy1"


def test_a_write_is_refused_when_its_collection_is_replaced_meanwhile(folder: Path) -> None:
    with Collection(folder) as collection:
        backend = collection._backend
        with pytest.raises(CollectionError, match="replaced during this write"), backend.writing() as write:
            write.delete([1])
            expected = replace(folder)
        assert_answers_like(collection, expected)


def test_a_restored_backup_is_noticed(folder: Path) -> None:
    backup = folder.with_name("backup")
    shutil.copytree(folder, backup)
    with Collection(folder) as collection:
        before = stored(folder)
        collection.add([document(50)])
        folder.rename(folder.with_name("old"))
        shutil.copytree(backup, folder)
        assert_answers_like(collection, before)
        collection.add([document(51)])
    assert "d51" in stored(folder).documents and "d51" not in stored(folder.with_name("old")).documents


def test_a_link_to_another_version_is_followed(folder: Path) -> None:
    with Collection.create(folder.with_name("v2"), toy_model(1)) as other:
        other.add(documents(3))
    link = folder.with_name("current")
    link.symlink_to(folder)
    with Collection(link) as collection:
        assert len(collection) == 12
        link.unlink()
        link.symlink_to(folder.with_name("v2"))
        assert_answers_like(collection, stored(folder.with_name("v2")))


def test_a_removed_collection_says_so(folder: Path) -> None:
    with Collection(folder) as collection:
        shutil.rmtree(folder)
        for use in (collection.version, lambda: collection.add([document(1)]), lambda: len(collection)):
            with pytest.raises(CollectionError, match="was removed while it was open"):
                use()
    assert not folder.exists()
