"""The client handles unusual documents, invalid queries and a change of model."""

from __future__ import annotations

from pathlib import Path

import pytest

from snuh.collection import Collection
from snuh.errors import InputError
from tests.collection.worlds import toy_model
from tests.server.serving import NDJSON, Server, serving

UNUSUAL = [
    {"id": "lines", "text": "ship\u2028fog\x85\u2029", "gone": None, "inside": {"gone": None}},
    {"id": "big", "text": "ship", "n": 10**400},
]


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def test_unusual_documents_survive_a_round_trip(folder: Path) -> None:
    deep = {"id": "deep", "text": "ship", "n": nested(30)}
    with Collection(folder) as collection, serving(folder) as server, server.client() as client:
        client.add(UNUSUAL)
        server.post("/v1/collections/c/documents", {"documents": [UNUSUAL[0] | {"id": "posted"}]})
        collection.add([deep])
        downloaded = {document.id: document for document in client.documents()}
        assert list(downloaded.values()) == list(collection.documents())
        assert (
            downloaded["lines"].metadata
            == downloaded["posted"].metadata
            == {"gone": None, "inside": {"gone": None}}
        )
        assert client.search("ship", k=50) == collection.search("ship", k=50)
        assert client.get("deep") == collection.get("deep")


def test_an_upload_may_arrive_in_chunks_of_any_size(folder: Path) -> None:
    text = b'{"id": "a", "text": "ship"}\n\n  \n{"id": "b", "text": "fog"}\n{"id": "c", "text": "ice"}'
    with serving(folder) as server:
        for size in (1, 7, 1_000):
            chunks = (text[start : start + size] for start in range(0, len(text), size))
            response = server.post(
                "/v1/collections/c/documents/lines", content=chunks, headers=NDJSON, json=None
            )
            result = response.json()
            assert result["inserted"] + result["replaced"] == 3, result


@pytest.mark.parametrize("k", [0, -1, 1_001, 10_001])
def test_an_invalid_k_is_rejected_in_batch_searches_too(shared: Server, k: int) -> None:
    with shared.client() as client, pytest.raises(InputError, match='"k": input should be'):
        client.search_many(["ship"], k=k)


def test_an_unpaired_surrogate_is_rejected_before_it_is_sent(shared: Server) -> None:
    with shared.client() as client:
        for method in (client.search, client.get, client.similar, client.delete_where):
            with pytest.raises(InputError, match="surrogate"):
                method("\ud83d")


def test_the_message_names_the_unknown_field(shared: Server) -> None:
    for name in ("query", "body", "path"):
        response = shared.post("/v1/collections/c/search", {name: "ship"})
        assert f'unknown field "{name}"' in response.json()["error"]
    assert '"words": ' in shared.get("/v1/collections/c/bits?words=0").json()["error"]


def test_a_new_model_is_used_by_every_route(folder: Path) -> None:
    other = toy_model(1, bits=24)
    with serving(folder) as server:

        def bits() -> list[int]:
            collections = server.get("/v1/collections").json()["collections"]
            encoded = server.post("/v1/collections/c/encode", {"texts": ["ship"]}).json()
            meanings = server.get("/v1/collections/c/bits").json()
            explained = server.post("/v1/collections/c/explain", {"text": "ship", "id": "d1"}).json()
            return [collections[0]["bits"], encoded["bits"], meanings["bits"], len(explained["bits"])]

        assert bits() == [16] * 4
        with Collection(folder) as collection:
            collection.rehash(other)
        assert bits() == [24] * 4
