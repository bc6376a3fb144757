"""Documents are changed field by field, counted and listed in pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from snuh.collection import Collection
from snuh.errors import InputError, UnknownDocumentError
from tests.collection.worlds import documents, toy_model


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    made = Collection.create(tmp_path / "c", toy_model())
    made.add(
        [{"id": "a", "text": "ship", "labels": ["x"], "year": 2024, "desk": {"city": "Bern"}, "gone": None}]
    )
    made.add(documents(5))
    return made


def test_an_update_changes_only_the_fields_given(collection: Collection) -> None:
    with collection:
        changed = collection.update("a", {"year": 2025, "desk": None, "split": "val", "new": [1]})
        assert changed == collection.get("a")
        assert (changed.text, changed.labels, changed.split) == ("ship", ("x",), "val")
        assert changed.metadata == {"gone": None, "year": 2025, "new": [1]}
        assert collection.update("a", {"labels": None, "metadata": {"year": None}}).metadata == {
            "gone": None,
            "new": [1],
        }
        assert collection.update("a", {}) == collection.get("a") and collection.get("a").labels == ()
        assert collection.check() == []


def test_a_new_text_is_encoded_and_keeps_its_position(collection: Collection) -> None:
    with collection:
        collection.update("a", {"text": "fog"})
        hits = collection.search("fog", mode="codes", k=10)
        assert {hit.document.id: hit.distance for hit in hits}["a"] == 0
        assert next(collection.documents()).id == "a" and collection.check() == []


def test_invalid_updates_change_nothing(collection: Collection) -> None:
    with collection:
        before, version = collection.get("a"), collection.version()
        for changes in ({"text": None}, {"text": 1}, {"id": "b"}, {"split": "x"}, {"year": float("inf")}):
            with pytest.raises(InputError):
                collection.update("a", changes)
        with pytest.raises(UnknownDocumentError):
            collection.update("nobody", {"year": 1})
        assert collection.get("a") == before and collection.version() == version


def test_pages_have_every_document_once(collection: Collection) -> None:
    with collection:
        ids, page = [], collection.page(limit=4)
        ids += [document.id for document in page.documents]
        while page.next is not None:
            page = collection.page(after=page.next, limit=4)
            ids += [document.id for document in page.documents]
        assert ids == [document.id for document in collection.documents()]
        assert collection.count() == len(ids) == 6 and collection.count(where="year = 2024") == 1
        assert collection.page(where="year > 3000").documents == []
        for wrong in ({"limit": 0}, {"after": "x"}):
            with pytest.raises(InputError, match="expected a limit of at least 1"):
                collection.page(**wrong)  # type: ignore[arg-type]
