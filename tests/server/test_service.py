"""One collection of the server, in this process: kinds of work that do not wait for each other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request

from snuh.server.middleware import Metrics
from snuh.server.routes.search import search_batch
from snuh.server.schemas import RERANKED_AT_ONCE, BatchRequest, SearchRequest
from snuh.server.service import CollectionService
from snuh.server.settings import Limits, Settings


def run(coroutine: Coroutine[Any, Any, object]) -> object:
    """Run in a thread of its own: browser tests may have left this one an event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


@pytest.fixture
def service(folder: Path) -> Iterator[CollectionService]:
    service = CollectionService("c", str(folder), limits=Limits(), metrics=Metrics(is_shared=False))
    yield service
    service.close()


def test_status_and_searches_do_not_wait_for_a_long_read(service: CollectionService) -> None:
    is_reading, may_end = threading.Event(), threading.Event()

    def read(_: Any) -> bool:
        is_reading.set()
        return may_end.wait(60)

    async def read_and_search() -> None:
        reading = asyncio.create_task(service.reader.run(read))
        await asyncio.to_thread(is_reading.wait, 60)
        assert await service.cached("info", len, is_status=True) == 41
        assert b'"hits":[{' in await service.search(SearchRequest.model_validate({"text": "ship"}))
        assert not reading.done()
        may_end.set()
        assert await reading

    run(read_and_search())


def test_a_batch_ends_when_its_client_has_disconnected(service: CollectionService) -> None:
    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    settings = Settings(folders={}, scratch="")
    app = SimpleNamespace(state=SimpleNamespace(settings=settings))
    request = Request({"type": "http", "app": app}, receive)
    options = {"texts": ["ship"] * 3, "rerank": "asymmetric", "shortlist": RERANKED_AT_ONCE}
    body = BatchRequest.model_validate(options)
    with pytest.raises(ClientDisconnect):
        run(search_batch(request, service, body))
