"""Searches over HTTP return what the collection itself returns."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from snuh import Client
from snuh.collection import Collection
from snuh.errors import CollectionError, InputError, UnknownDocumentError
from tests.cli.running import run
from tests.collection.worlds import toy_model
from tests.server.serving import Server, serving


@pytest.fixture
def collection(shared: Server) -> Collection:
    return Collection(shared.root / "c")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 3},
        {"where": "year = 2001 and desk.city = 'Bern'"},
        {"radius": 4},
        {"rerank": "cosine", "k": 5},
        {"rerank": "asymmetric", "shortlist": 20},
        {"approximate": True},
    ],
    ids=str,
)
def test_the_client_returns_the_hits_of_the_collection(
    shared: Server, collection: Collection, options: dict[str, object]
) -> None:
    with shared.client() as client, collection:
        assert client.search("ship fog", **options) == collection.search("ship fog", **options)  # type: ignore[arg-type]
        assert client.similar("d3", **options) == collection.similar("d3", **options)  # type: ignore[arg-type]
        texts = ["ship fog", "zzz", "market"]
        assert client.search_many(texts, **options) == collection.search_many(texts, **options)  # type: ignore[arg-type]


def test_the_client_reads_encodes_and_explains_as_the_collection_does(
    shared: Server, collection: Collection
) -> None:
    with shared.client() as client, collection:
        assert len(client) == len(collection) == 41
        assert "d3" in client and "d99" not in client and 3 not in client
        assert client.get("unknown") == collection.get("unknown")
        assert list(client.documents()) == list(collection.documents())
        assert list(client.documents(where="year = 2001")) == list(collection.documents(where="year = 2001"))
        codes = collection.model.encode(["ship fog", "dawn"])
        assert client.search_codes(codes, k=4) == collection.search_codes(codes, k=4)
        assert client.encode(["ship fog", "zzz", "dawn"]) == [
            codes[0].tobytes().hex(),
            None,
            codes[1].tobytes().hex(),
        ]
        mine, theirs = client.explain("ship fog", "d3"), collection.explain("ship fog", "d3")
        assert mine.distance == theirs.distance
        assert [pair.agrees for pair in mine.bits] == [pair.agrees for pair in theirs.bits]
        assert [(word.word, word.spans) for word in mine.hit_words] == [
            (word.word, word.spans) for word in theirs.hit_words
        ]
        assert [word.agreeing for word in mine.query_words] == pytest.approx(
            [word.agreeing for word in theirs.query_words], abs=1e-5
        )


def test_concurrent_searches_each_get_their_own_result(shared: Server, collection: Collection) -> None:
    texts = ["ship", "fog", "dawn", "market price", "ice", "wind rope", "zzz", "sail coin", " "]
    queries = [(text, k) for text in texts for k in (1, 3, 10)] * 4

    with httpx.Client(base_url=shared.url, timeout=60) as client, ThreadPoolExecutor(32) as threads:

        def send(query: tuple[str, int]) -> httpx.Response:
            body = {"text": query[0], "k": query[1], "mode": "codes"}
            return client.post("/v1/collections/c/search", json=body)

        responses = list(threads.map(send, queries))
    with collection:
        for (text, k), response in zip(queries, responses, strict=True):
            if text == " ":
                assert response.status_code == 400 and "is empty" in response.json()["error"]
                continue
            if text == "zzz":
                assert response.json()["note"] and response.json()["hits"] == []
                continue
            hits = [(hit["id"], hit["distance"]) for hit in response.json()["hits"]]
            assert hits == [
                (hit.document.id, hit.distance) for hit in collection.search(text, mode="codes", k=k)
            ]


def test_a_search_explains_its_hits_by_words(shared: Server) -> None:
    query = {"text": "ship fog", "k": 2, "explain": True}
    hit = shared.post("/v1/collections/c/search", query).json()["hits"][0]
    text = "".join(piece["text"] for piece in hit["fragments"])
    assert text == hit["text"]
    assert max(abs(piece.get("weight", 0.0)) for piece in hit["fragments"]) == 1.0
    by_words = shared.post("/v1/collections/c/search", {**query, "mode": "hybrid"}).json()["hits"][0]
    assert {piece["text"] for piece in by_words["fragments"] if piece.get("matched")} == {"ship", "fog"}
    similar = shared.post("/v1/collections/c/search", {"id": "d3", "k": 1, "explain": True}).json()
    assert similar["query"] is None and similar["id"] == "d3" and similar["hits"][0]["fragments"]


def test_a_search_without_known_words_or_matches_has_no_hits(shared: Server) -> None:
    for query in ({"text": "neverseen"}, {"text": "zzz", "mode": "codes"}):
        response = shared.post("/v1/collections/c/search", query)
        assert response.status_code == 200
        assert response.json()["hits"] == [] and response.json()["note"]
    nothing = shared.post("/v1/collections/c/search", {"text": "ship", "where": "year > 3000"})
    assert nothing.status_code == 200 and nothing.json()["hits"] == []
    batch = shared.post("/v1/collections/c/search/batch", {"texts": ["ship", "neverseen"], "k": 1}).json()
    assert [len(one["hits"]) for one in batch["results"]] == [1, 0] and batch["results"][1]["note"]


@pytest.mark.parametrize(
    "options", [{}, {"explain": True}, {"rerank": "cosine"}, {"mode": "hybrid"}], ids=str
)
def test_an_offset_skips_hits(shared: Server, options: dict[str, object]) -> None:
    path, query = "/v1/collections/c/search", {"text": "ship fog", "k": 9, **options}
    every = shared.post(path, query).json()
    rest = shared.post(path, {**query, "k": 4, "offset": 5}).json()
    assert rest["hits"] == every["hits"][5:] and len(rest["hits"]) == 4
    assert rest["took_ms"] > 0
    if "explain" not in options:
        body = {"texts": ["ship fog"], "k": 4, "offset": 5, **options}
        batch = shared.post("/v1/collections/c/search/batch", body).json()
        assert batch["results"][0]["hits"] == rest["hits"] and batch["took_ms"] > 0


def test_texts_are_truncated_and_come_with_their_length(shared: Server) -> None:
    query = {"text": "ship fog", "k": 1, "characters": 3}
    hit = shared.post("/v1/collections/c/search", query).json()["hits"][0]
    assert len(hit["text"]) == 3 and hit["length"] > 3


def test_the_client_raises_what_a_collection_raises(shared: Server) -> None:
    with shared.client() as client:
        with pytest.raises(InputError, match="the query is empty"):
            client.search(" ")
        with pytest.raises(UnknownDocumentError, match="c has no document 'd99'"):
            client.get("d99")
        with pytest.raises(InputError, match='no document has a field "yeah"'):
            client.search("ship", where="yeah = 1")
        with pytest.raises(InputError, match="filter, character 7"):
            client.search("ship", where="year >> 1")
        with pytest.raises(InputError, match="put it into a list"):
            client.delete("d1")
    with shared.client("e") as client, pytest.raises(InputError, match='no collection "e"'):
        "d1" in client  # noqa: B015


def test_a_client_reports_an_unreachable_server() -> None:
    client = Client("c", server="http://127.0.0.1:9")
    with client, pytest.raises(CollectionError, match="snuh serve"):
        client.search("ship")


def test_a_server_has_several_collections(shared: Server) -> None:
    collections = shared.get("/v1/collections").json()["collections"]
    summaries = [(item["name"], item["documents"], item["bits"]) for item in collections]
    assert summaries == [("c", 41, 16), ("d", 5, 24)]
    result = shared.post("/v1/collections/d/search", {"text": "ship", "k": 50}).json()
    assert result["bits"] == 24 and len(result["hits"]) == 5


def test_writes_of_the_command_line_are_visible_without_a_restart(folder: Path, root: Path) -> None:
    lines = root / "new.jsonl"
    lines.write_text('{"id": "new", "text": "rope rope rope"}\n', encoding="utf-8")
    with serving(folder) as server, server.client() as client:
        assert client.search("rope", k=1)[0].document.id != "new"
        assert run("add", folder, lines).code == 0
        with Collection(folder) as collection:
            assert client.search("rope", k=50) == collection.search("rope", k=50)
        assert "new" in client
        assert run("delete", folder, "new").code == 0
        assert "new" not in {hit.document.id for hit in client.search("rope", k=50)}
        with Collection(folder) as collection:
            collection.rehash(toy_model(2, bits=24))
            assert client.search("ship fog") == collection.search("ship fog")
        assert client.info().bits == 24
