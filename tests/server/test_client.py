"""The client answers as the collection itself does."""

from __future__ import annotations

from pathlib import Path

import pytest

from snuh.collection import Collection
from snuh.errors import InputError
from tests.collection.worlds import toy_model
from tests.server.serving import LINES, Server, serving

ODD = [
    {"id": "lines", "text": "ship\u2028fog\x85\u2029", "gone": None, "inside": {"gone": None}},
    {"id": "big", "text": "ship", "n": 10**400},
]


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def test_odd_documents_come_back_as_they_were(folder: Path) -> None:
    deep = {"id": "deep", "text": "ship", "n": nested(400)}
    with Collection(folder) as collection, serving(folder) as server, server.client() as client:
        client.add(ODD)
        server.post("/v1/collections/c/documents", {"documents": [ODD[0] | {"id": "posted"}]})
        collection.add([deep])  # deeper than a request may be
        found = {document.id: document for document in client.documents()}
        assert list(found.values()) == list(collection.documents())
        assert found["lines"].metadata == found["posted"].metadata == {"gone": None, "inside": {"gone": None}}
        assert client.search("ship", k=50) == collection.search("ship", k=50)
        assert client.get("deep") == collection.get("deep")


def test_lines_come_in_parts_of_any_size(folder: Path) -> None:
    text = b'{"id": "a", "text": "ship"}\n\n  \n{"id": "b", "text": "fog"}\n{"id": "c", "text": "ice"}'
    with serving(folder) as server:
        for size in (1, 7, 1_000):
            parts = (text[start : start + size] for start in range(0, len(text), size))
            answer = server.post("/v1/collections/c/documents/lines", content=parts, headers=LINES, json=None)
            told = answer.json()
            assert told["inserted"] + told["replaced"] == 3, told


@pytest.mark.parametrize("k", [0, -1, 1_001, 10_001])
def test_a_k_that_cannot_be_is_refused_for_many_texts_too(shared: Server, k: int) -> None:
    with shared.client() as client, pytest.raises(InputError, match='"k": input should be'):
        client.search_many(["ship"], k=k)


def test_half_a_character_is_refused_before_it_is_sent(shared: Server) -> None:
    with shared.client() as client:
        for ask in (client.search, client.get, client.similar, client.delete_where):
            with pytest.raises(InputError, match="surrogate"):
                ask("\ud83d")


def test_the_sentence_names_the_field_that_is_not_known(shared: Server) -> None:
    for name in ("query", "body", "path"):
        answer = shared.post("/v1/collections/c/search", {name: "ship"})
        assert f'there is no field "{name}" here' in answer.json()["error"]
    assert '"words": ' in shared.get("/v1/collections/c/bits?words=0").json()["error"]


def test_another_model_is_seen_by_every_request(folder: Path) -> None:
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
