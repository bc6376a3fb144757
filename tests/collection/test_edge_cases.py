"""Rarer circumstances: collections fed to themselves, models that come back, much that changes, odd input."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from snuh.collection import Collection
from snuh.collection.backend import NewDocument
from snuh.collection.local import store
from snuh.corpus import Document
from snuh.errors import CollectionError, InputError
from snuh.model import Model
from tests.collection.worlds import (
    assert_answers_like,
    document,
    documents,
    stored,
    tiny_thresholds,
    toy_model,
)


def test_a_collection_can_be_fed_its_own_documents(workspace: Path) -> None:
    with tiny_thresholds(batch=4), Collection.create(workspace / "c", toy_model()) as collection:
        collection.add(documents(30))
        collection.add(replace(one, id=f"{one.id}-copy") for one in collection.documents())
        assert len(collection) == 60


def test_a_prepared_empty_folder_stays_the_same_folder(workspace: Path) -> None:
    folder = workspace / "prepared"
    folder.mkdir()
    before = folder.stat().st_ino
    with Collection.create(folder, toy_model()) as collection:
        collection.add(documents(3))
    assert folder.stat().st_ino == before


def test_a_model_with_a_decoder_can_come_back_after_another(workspace: Path) -> None:
    model = toy_model()
    embedding = np.zeros((model.encoder.inputs, model.bits), dtype=np.float32)
    with Collection.create(
        workspace / "c", Model(model.encoder, model.features, decoder=embedding)
    ) as collection:
        collection.add(documents(10))
        first = collection.model
        collection.rehash(toy_model(1))
        collection.rehash(first)
        assert collection.model.word_embedding() is not None
        assert_answers_like(collection, stored(workspace / "c"))


def test_codes_of_another_length_are_refused(workspace: Path) -> None:
    with (
        Collection.create(workspace / "c", toy_model()) as collection,
        pytest.raises(CollectionError, match="16-bit codes"),
        collection._backend.writing() as write,
    ):
        write.put([NewDocument(document(1), b"123")])
    with Collection(workspace / "c") as collection:
        assert len(collection) == 0


def test_after_too_many_changes_the_log_is_cleared_and_readers_reload_all_codes(workspace: Path) -> None:
    with (
        patch.object(store, "MAX_REMEMBERED_CHANGES", 5),
        Collection.create(workspace / "c", toy_model()) as writer,
        Collection(workspace / "c") as reader,
    ):
        writer.add(documents(40))
        reader.search("ship")
        writer.delete([f"d{number}" for number in range(20)])
        assert_answers_like(reader, stored(workspace / "c"))
        with sqlite3.connect(workspace / "c" / "store.sqlite") as plain:
            assert plain.execute("SELECT COUNT(*) FROM changes").fetchone() == (0,)


def test_an_index_updated_by_another_process_is_adopted(workspace: Path) -> None:
    with tiny_thresholds(changes=20, batch=1_000), Collection.create(workspace / "c", toy_model()) as first:
        first.add(documents(200))
        first.build_index(recall=1.0)
        with Collection(workspace / "c") as second:
            second.search("ship")
            first.add(document(number) for number in range(200, 230))
            first.add([document(500)])
            second.search("ship")
        with Collection(workspace / "c") as third:
            assert third.info().index is not None
            assert len(third.search("ship", k=1_000, approximate=True)) == len(third.search("ship", k=1_000))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Document(5, "ship"), "an id that is a non-empty string"),  # type: ignore[arg-type]
        (Document("", "ship"), "an id that is a non-empty string"),
        (Document("a", None), "a text that is a string, got NoneType"),  # type: ignore[arg-type]
        (Document("a", "ship", "abc"), "labels that are a tuple"),  # type: ignore[arg-type]
        (Document("a", "ship", (), "half"), "a split of train, val, test or None"),
        (Document("a", "ship", (), None, None), "metadata that is a mapping"),  # type: ignore[arg-type]
        ({"id": "a"}, "document 1: there is no field"),
    ],
)
def test_a_document_with_a_wrong_field_is_refused(workspace: Path, wrong: Any, message: str) -> None:
    with Collection.create(workspace / "c", toy_model()) as collection:
        with pytest.raises(InputError, match=message):
            collection.add([wrong])
        assert len(collection) == 0


def test_a_name_too_long_for_the_file_system_is_a_one_line_error() -> None:
    with pytest.raises(InputError, match="cannot read"):
        Collection("a" * 300)


def test_a_huge_k_finds_everything(workspace: Path) -> None:
    with Collection.create(workspace / "c", toy_model()) as collection:
        collection.add(documents(300))
        collection.build_index()
        for approximate in (False, True):
            assert len(collection.search("ship", k=10**20, approximate=approximate)) == len(collection)
