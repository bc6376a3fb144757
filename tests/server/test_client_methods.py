"""The client has the methods of a collection, and answers as its functions do."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from snuh import Client
from snuh.collection import Collection
from snuh.dedup import deduplicate
from snuh.errors import CollectionError, InputError
from snuh.explain import bit_meanings
from tests.collection.worlds import documents, fast_place, toy_model
from tests.server.serving import ROOT, Server, serving, serving_with

NOT_SERVED = {"create", "folder", "rehash"}  # the docs say why


@pytest.fixture
def collection(shared: Server) -> Collection:
    return Collection(shared.place / "c")  # type: ignore[attr-defined]


def public(kind: type) -> dict[str, object]:
    return {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}


def parameters(method: object) -> list[str]:
    return list(inspect.signature(method).parameters) if callable(method) else []  # a property has none


def test_the_client_has_the_methods_of_a_collection_with_the_same_arguments(shared: Server) -> None:
    with shared.client() as client:
        names = {name for name in dir(client) if not name.startswith("_")}
    theirs, ours = public(Collection), public(Client)
    assert set(theirs) - names == NOT_SERVED
    for name in theirs.keys() & ours.keys():
        mine = [one for one in parameters(ours[name]) if one != "patience"]  # what is made is waited for
        assert mine == parameters(theirs[name]), name
    page = (ROOT / "docs/http.md").read_text(encoding="utf-8").partition("## In Python")[2]
    assert all(f"`{name}`" in page for name in {*theirs, *ours})


def test_facts_are_those_of_the_collection(shared: Server, collection: Collection) -> None:
    with shared.client() as client, collection:
        assert client.info() == replace(collection.info(), name=f"{shared.url}/c")
        assert client.version() == collection.version()
        assert client.bits(words=3) == bit_meanings(collection.model, words=3)
        mine, theirs = client.sample(7), collection.sample(7)
        assert mine.documents == theirs.documents and np.array_equal(mine.codes, theirs.codes)
        year = next(field for field in client.fields() if field.name == "year")
        assert (year.kind, year.min, year.max, dict(year.values)) == (
            "number",
            2000,
            2002,
            {2000: 14, 2001: 13, 2002: 13},
        )
        with pytest.raises(InputError, match='"most": input should be'):
            client.sample(1_001)


def test_the_model_is_sent_once_and_encodes_alike(shared: Server, collection: Collection) -> None:
    texts = ["ship fog", "dawn", "market price"]
    with shared.client() as client, collection:
        model = client.model
        assert np.array_equal(model.encode(texts), collection.model.encode(texts))
        assert model.method == collection.model.method
        assert client.model is model


def test_duplicates_and_the_map_are_waited_for(shared: Server, collection: Collection) -> None:
    with shared.client() as client, collection:
        with pytest.raises(CollectionError, match="still being made after 0 seconds"):
            client.duplicates(threshold=0.9, radius=4, patience=0)
        found = client.duplicates(threshold=0.9, radius=4)
        report = deduplicate(collection.model, collection.documents(), threshold=0.9, radius=4)
        assert found.is_current and (found.documents, found.clusters) == (report.documents, report.clusters)
        assert found.duplicates == report.dropped > 0
        for mine, theirs in zip(found.biggest, report.biggest(100), strict=True):
            assert list(mine) == [replace(one, similarity=round(one.similarity, 6)) for one in theirs]
        plane = client.map()
        assert plane.documents == 41 and len(plane.ids) == len(plane.x) == len(plane.labels) == 40


def test_lists_are_made_and_taken_up_without_a_restart(folder: Path) -> None:
    with Collection(folder) as collection:
        collection.add(documents(300))
    with serving(folder) as server, server.client() as client, Collection(folder) as collection:
        assert client.info().index is None
        client.add([{"id": "late", "text": "ship"}])
        made = client.build_index(k=5, recall=0.9)
        assert (made.k, made.documents) == (5, len(client) - 1) and made.recall >= 0.9
        assert client.build_index(k=5, recall=0.9) == made  # it was just told
        wait_until_told(client, made.k)
        assert client.info().index == collection.info().index == made
        exact, approximate = (
            client.search("ship fog", k=5, approximate=approximate) for approximate in (False, True)
        )
        assert approximate == collection.search("ship fog", k=5, approximate=True)
        assert len({hit.document.id for hit in exact} & {hit.document.id for hit in approximate}) >= 3
        collection.build_index(k=7)  # as the command line does: no write, and seen all the same
        wait_until_told(client, 7)
        with pytest.raises(InputError, match='"recall": input should be'):
            client.build_index(recall=2.0)


def wait_until_told(client: Client, k: int) -> None:
    """Wait until the facts, which are remembered for a second, tell of lists for this k."""
    for _ in range(10_000):
        if (approximate := client.info().index) is not None and approximate.k == k:
            return
    raise AssertionError("the lists are not told")


def test_another_model_is_fetched_anew(folder: Path) -> None:
    with serving(folder) as server, server.client() as client:
        before, version = client.model, client.version()
        with Collection(folder) as collection:
            collection.rehash(toy_model(1, bits=24))
        assert client.version() != version
        assert client.model is not before and client.model.bits == 24


def test_an_answer_too_long_is_refused() -> None:
    place = fast_place()
    with Collection.create(place / "c", toy_model()) as collection:
        collection.add([{"id": f"{number}", "text": "ship " + "x" * 30_000} for number in range(5)])
    with serving_with({"answer_bytes": 100_000}, place / "c") as server, server.client() as client:
        assert len(client.search("ship", k=3)) == 3
        for ask in (
            lambda: client.search("ship", k=4),
            lambda: client.similar("0", k=4),
            lambda: client.search_many(["ship", "ship"], k=2),
            lambda: client.sample(4),
        ):
            with pytest.raises(InputError, match="more than 100,000 bytes: ask for less at once"):
                ask()
        many = "&".join(f"id={number}" for number in range(5))
        answer = server.get(f"/v1/collections/c/documents?{many}")
        assert (answer.status_code, answer.json()["kind"]) == (413, "too-large")
        asked = {"text": "ship", "k": 5}  # the beginnings of the texts are short
        assert len(server.post("/v1/collections/c/search", asked).json()["hits"]) == 5
        assert len(list(client.documents())) == 5  # a download has no limit
