"""Clients repeat requests that the server refused, and only those."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from snuh import AsyncClient, Client
from snuh.client import session
from snuh.collection import Collection
from snuh.errors import CollectionError, UnknownDocumentError
from tests.server.serving import Server, serving

EMPTY = {"hits": [], "note": None, "query": "x", "id": None}


@contextmanager
def responding(*statuses: int | None, after: str | None = None) -> Iterator[tuple[str, list[str]]]:
    """Run a server that sends these statuses, then 200; None closes the connection instead."""
    remaining, requests = list(statuses), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            requests.append(self.path.rpartition("/")[2])
            status = remaining.pop(0) if remaining else 200
            if status is None:
                self.close_connection = True
                return
            body = json.dumps(EMPTY | {"error": "busy", "kind": "unavailable", "deleted": 1}).encode()
            self.send_response(status)
            if after is not None:
                self.send_header("Retry-After", after)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", requests
        server.shutdown()
        thread.join()


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a thread of its own: that of the browser tests has a running event loop."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, main).result()


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "FIRST_DELAY", 0.001)


def test_a_refused_request_is_repeated() -> None:
    with responding(503, 429, 502) as (url, requests), Client("c", server=url) as client:
        assert client.search("x") == [] and len(requests) == 4
    with responding(503, 503) as (url, requests), Client("c", server=url) as client:
        assert client.delete(["x"]) == 1 and len(requests) == 3
    with responding(503, 503) as (url, requests), Client("c", server=url, retries=1) as client:
        with pytest.raises(CollectionError, match="busy"):
            client.search("x")
        assert len(requests) == 2


def test_an_invalid_request_is_not_repeated() -> None:
    with responding(400) as (url, requests), Client("c", server=url) as client:
        with pytest.raises(Exception, match="busy"):
            client.search("x")
        assert len(requests) == 1


def test_a_lost_response_is_repeated_for_reads_only() -> None:
    with responding(None) as (url, requests), Client("c", server=url) as client:
        assert client.search("x") == [] and len(requests) == 2
    with responding(None) as (url, requests), Client("c", server=url) as client:
        with pytest.raises(CollectionError, match="cannot reach the server"):
            client.delete(["x"])
        assert len(requests) == 1


def test_the_server_decides_how_long_to_wait() -> None:
    with responding(429, after="0") as (url, requests), Client("c", server=url) as client:
        assert client.search("x") == [] and len(requests) == 2
    with responding(429, after="3600") as (url, requests), Client("c", server=url) as client:
        with pytest.raises(CollectionError):
            client.search("x")
        assert len(requests) == 1


def test_the_async_client_returns_what_the_client_returns(shared: Server) -> None:
    async def main() -> None:
        async with AsyncClient("c", server=shared.url) as client:
            with shared.client() as plain, Collection(shared.root / "c") as collection:
                texts = ["ship", "fog", "dawn"]
                found = await asyncio.gather(*(client.search(text, k=3) for text in texts))
                assert found == [plain.search(text, k=3) for text in texts]
                assert await client.search_many([*texts, "zzz"]) == plain.search_many([*texts, "zzz"])
                assert await client.similar("d3") == plain.similar("d3")
                assert [document async for document in client.documents()] == list(collection.documents())
                assert await client.page(limit=5) == plain.page(limit=5) == collection.page(limit=5)
                assert await client.count(where="year = 2001") == collection.count(where="year = 2001") == 13
                assert await client.info() == plain.info() and await client.get("d3") == plain.get("d3")
                assert (await client.model()).bits == 16 and await client.encode(texts) == plain.encode(texts)
                assert await client.bits() == plain.bits() and await client.facets() == plain.facets()
                codes = collection.model.encode(texts)
                assert await client.search_codes(codes) == plain.search_codes(codes)
            with pytest.raises(UnknownDocumentError):
                await client.get("d99")

    run(main())


def test_the_async_client_has_the_methods_of_the_client() -> None:
    names = {name for name in dir(Client) if not name.startswith("_")}
    assert names == {name for name in dir(AsyncClient) if not name.startswith("_")}


def test_the_async_client_writes(folder: Path) -> None:
    async def main(url: str) -> None:
        async with AsyncClient("c", server=url) as client:
            assert (await client.add([{"id": "new", "text": "ship"}])).inserted == 1
            assert (await client.update("new", {"year": 7})).metadata == {"year": 7}
            assert await client.delete_where("year = 7") == 1 and await client.delete([]) == 0

    with serving(folder) as server:
        run(main(server.url))
