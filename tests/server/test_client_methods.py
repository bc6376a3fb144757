"""The client has the methods of a collection, and returns the same results."""

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
from tests.collection.worlds import documents, temporary_folder, toy_model
from tests.server.serving import ROOT, Server, serving, serving_with

NOT_SERVED = {"check", "codes", "create", "folder", "get_many", "rehash"}  # the docs say why


@pytest.fixture
def collection(shared: Server) -> Collection:
    return Collection(shared.root / "c")


def public(kind: type) -> dict[str, object]:
    return {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}


def parameters(method: object) -> list[str]:
    return list(inspect.signature(method).parameters) if callable(method) else []  # a property has none


def test_the_client_has_the_methods_of_a_collection_with_the_same_arguments(shared: Server) -> None:
    with shared.client() as client:
        attributes = {name for name in dir(client) if not name.startswith("_")}
    theirs, ours = public(Collection), public(Client)
    assert set(theirs) - attributes == NOT_SERVED
    for name in theirs.keys() & ours.keys():
        mine = [parameter for parameter in parameters(ours[name]) if parameter != "wait_seconds"]
        assert mine == parameters(theirs[name]), name
    page = (ROOT / "docs/http.md").read_text(encoding="utf-8").partition("## In Python")[2]
    assert all(f"`{name}`" in page for name in {*theirs, *ours})


def test_info_bits_samples_and_facets_are_those_of_the_collection(
    shared: Server, collection: Collection
) -> None:
    with shared.client() as client, collection:
        assert client.info() == replace(collection.info(), name=f"{shared.url}/c")
        assert client.version() == collection.version()
        assert client.bits(words=3) == bit_meanings(collection.model, words=3)
        mine, theirs = client.sample(7), collection.sample(7)
        assert mine.documents == theirs.documents and np.array_equal(mine.codes, theirs.codes)
        year = next(facet for facet in client.facets() if facet.name == "year")
        assert (year.kind, year.min, year.max, dict(year.values)) == (
            "number",
            2000,
            2002,
            {2000: 14, 2001: 13, 2002: 13},
        )
        with pytest.raises(InputError, match='"limit": input should be'):
            client.sample(1_001)


def test_the_model_is_downloaded_once_and_encodes_alike(shared: Server, collection: Collection) -> None:
    texts = ["ship fog", "dawn", "market price"]
    with shared.client() as client, collection:
        model = client.model
        assert np.array_equal(model.encode(texts), collection.model.encode(texts))
        assert model.method == collection.model.method
        assert client.model is model


def test_the_client_waits_for_duplicates_and_the_map(shared: Server, collection: Collection) -> None:
    with shared.client() as client, collection:
        with pytest.raises(CollectionError, match="still running after 0 seconds"):
            client.duplicates(threshold=0.9, radius=4, wait_seconds=0)
        groups = client.duplicates(threshold=0.9, radius=4)
        report = deduplicate(collection.model, collection.documents(), threshold=0.9, radius=4)
        assert groups.is_current and (groups.documents, groups.clusters) == (
            report.documents,
            report.clusters,
        )
        assert groups.duplicates == report.dropped > 0
        for mine, theirs in zip(groups.largest, report.largest(100), strict=True):
            assert list(mine) == [replace(one, similarity=round(one.similarity, 6)) for one in theirs]
        projection = client.map()
        assert projection.documents == 41
        assert len(projection.ids) == len(projection.x) == len(projection.labels) == 40


def test_an_index_is_built_and_used_without_a_restart(folder: Path) -> None:
    with Collection(folder) as collection:
        collection.add(documents(300))
    with serving(folder) as server, server.client() as client, Collection(folder) as collection:
        assert client.info().index is None
        client.add([{"id": "late", "text": "ship"}])
        index = client.build_index(k=5, recall=0.9)
        assert (index.k, index.documents) == (5, len(client) - 1) and index.recall >= 0.9
        assert client.build_index(k=5, recall=0.9) == index  # the result is returned again for some seconds
        wait_for_index(client, index.k)
        assert client.info().index == collection.info().index == index
        exact, approximate = (
            client.search("ship fog", k=5, mode="codes", approximate=approximate)
            for approximate in (False, True)
        )
        assert approximate == collection.search("ship fog", k=5, approximate=True)
        assert len({hit.document.id for hit in exact} & {hit.document.id for hit in approximate}) >= 3
        collection.build_index(k=7)  # as the command line does: visible although it is not a write
        wait_for_index(client, 7)
        with pytest.raises(InputError, match='"recall": input should be'):
            client.build_index(recall=2.0)


def wait_for_index(client: Client, k: int) -> None:
    """Wait until the info, which is cached for a second, describes an index for this k."""
    for _ in range(10_000):
        if (index := client.info().index) is not None and index.k == k:
            return
    raise AssertionError("the info does not describe the index")


def test_a_new_model_is_downloaded(folder: Path) -> None:
    with serving(folder) as server, server.client() as client:
        before, version = client.model, client.version()
        with Collection(folder) as collection:
            collection.rehash(toy_model(1, bits=24))
        assert client.version() != version
        assert client.model is not before and client.model.bits == 24


def test_a_response_that_is_too_large_is_rejected() -> None:
    root = temporary_folder()
    with Collection.create(root / "c", toy_model()) as collection:
        collection.add([{"id": f"{number}", "text": "ship " + "x" * 30_000} for number in range(5)])
    with serving_with({"response_bytes": 100_000}, root / "c") as server, server.client() as client:
        assert len(client.search("ship", k=3)) == 3
        for request in (
            lambda: client.search("ship", k=4),
            lambda: client.similar("0", k=4),
            lambda: client.search_many(["ship", "ship"], k=2),
            lambda: client.sample(4),
        ):
            with pytest.raises(InputError, match="exceed 100,000 bytes: request less"):
                request()
        many = "&".join(f"id={number}" for number in range(5))
        response = server.get(f"/v1/collections/c/documents?{many}")
        assert (response.status_code, response.json()["kind"]) == (413, "too-large")
        query = {"text": "ship", "k": 5}  # by default texts are truncated
        assert len(server.post("/v1/collections/c/search", query).json()["hits"]) == 5
        assert len(list(client.documents())) == 5  # a download has no limit
