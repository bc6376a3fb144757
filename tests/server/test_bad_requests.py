"""Every invalid request gets a 4xx status and a one-sentence message, and the server keeps running."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.collection.worlds import temporary_folder
from tests.server.conftest import fill
from tests.server.serving import JSON, Server, read_response, serving_with

SEARCH = "/v1/collections/c/search"


def check_error(status: int, body: bytes) -> dict[str, str]:
    assert 400 <= status < 500, (status, body)
    error = json.loads(body)
    assert error["kind"] and error["error"] and "\n" not in error["error"] and len(error["error"]) < 500
    return dict(error)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"text": "\xff"}',
        b'{"text": "\\ud83d"}',
        b'{"text": 7}',
        b'{"text": ["ship"]}',
        b'{"text": "ship", "k": "10"}',
        b'{"text": "ship", "k": 1e400}',
        b'{"text": "ship", "k": 1' + b"0" * 5000 + b"}",
        b'{"text": "ship", "k": -1}',
        b'{"text": "ship", "k": 1001}',
        b'{"text": "ship", "k": 1.5}',
        b'{"text": "ship", "offset": -1}',
        b'{"text": "ship", "offset": 995}',
        b'{"text": "ship", "k": NaN}',
        b'{"text": "ship", "radius": -1}',
        b'{"text": "ship", "radius": 99999999999999999999999}',
        b'{"text": "ship", "rerank": "best"}',
        b'{"text": "ship", "shortlist": 5}',
        b'{"text": "ship", "explain": true, "k": 101}',
        b'{"text": "ship", "where": "((((((((((((((((((((((((((((((((((("}',
        b'{"text": "ship", "id": "d1"}',
        b'{"text": "ship", "wher": "year = 1"}',
        b'{"text": "' + b"x" * 10_001 + b'"}',
        b'{"id": "' + b"x" * 1_001 + b'"}',
        b'{"text": ' + b"[" * 100_000,
        b'{"text": "ship"} trailing',
        b'{"id": "\\u0000"}',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_an_invalid_search_is_rejected(shared: Server, body: bytes) -> None:
    response = shared.post(SEARCH, body)
    check_error(response.status_code, response.content)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("search/batch", {"texts": []}),
        ("search/batch", {"texts": ["ship"] * 101}),
        ("search/batch", {"texts": ["ship"] * 50, "k": 1_000}),
        ("search/batch", {"codes": ["xy"]}),
        ("search/batch", {"codes": ["00"]}),
        ("search/batch", {"texts": ["ship"], "codes": ["0000"]}),
        ("similar", {}),
        ("similar", {"id": "d99"}),
        ("explain", {"id": "d1"}),
        ("explain", {"id": "d1", "text": "ship", "query_id": "d2"}),
        ("encode", {"texts": [None]}),
        ("documents", {"documents": []}),
        ("documents", {"documents": [{"id": "x", "text": "ship"}] * 1_001}),
        ("documents", {"documents": [{"id": "x", "text": "ship", "big": 1e400}]}),
        ("documents", {"documents": [{"id": "x", "text": "ship"}] * 2}),
        ("documents/delete", {"ids": []}),
        ("nothing", {}),
        ("..", {}),
        ("%2e%2e/%2e%2e/etc/passwd", {}),
    ],
    ids=str,
)
def test_other_invalid_requests_are_rejected(shared: Server, path: str, body: object) -> None:
    response = shared.post(f"/v1/collections/c/{path}", json.dumps(body).encode())
    check_error(response.status_code, response.content)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/collections/c/bits?words=0",
        "/v1/collections/c/bits?words=many",
        "/v1/collections/c/documents?limit=0",
        "/v1/collections/c/documents?limit=101",
        "/v1/collections/c/documents?after=x",
        "/v1/collections/c/documents?where=year+%3E%3E+1",
        "/v1/collections/c/documents/d99",
        "/v1/collections/c/documents?id=" + "x" * 1_001,
        "/v1/collections/c/documents?" + "&".join(["id=d1"] * 101),
        "/v1/collections/c/documents/lines?where=year+%3E%3E+1",
        "/v1/collections/c/duplicates?threshold=2",
        "/v1/collections/c/duplicates?threshold=nan",
        "/v1/collections/c/duplicates?keep=all",
        "/v1/collections/%00",
        "/page/../../settings.py",
        "/page/%2e%2e%2fsettings.py",
        "/page/nothing.js",
        "/page/vendor",
    ],
)
def test_invalid_paths_and_parameters_are_rejected(shared: Server, path: str) -> None:
    response = shared.get(path)
    check_error(response.status_code, response.content)


def test_the_message_says_what_to_do(shared: Server) -> None:
    messages = {
        b'{"text": "ship", "k": 0}': '"k": input should be greater than or equal to 1, got 0',
        b'{"text": "ship", "wher": 1}': 'unknown field "wher": remove it',
        b"{}": 'expected "text" or "id", got neither',
        b"{": "the body is not valid JSON: Expecting property name enclosed in double quotes at character 1",
        b"": "the body is missing",
    }
    for body, message in messages.items():
        assert shared.post(SEARCH, body).json()["error"].startswith(message)
    response = shared.get(SEARCH)
    assert (response.status_code, response.json()["kind"]) == (405, "method")
    response = shared.post(SEARCH, b"{}", headers={"Content-Type": "text/plain"})
    assert (response.status_code, response.json()["kind"]) == (415, "type")


def test_data_that_is_not_http_is_rejected(shared: Server) -> None:
    with shared.connection() as connection:
        connection.sendall(b"\x16\x03\x01 this is not http\r\n\r\n")
        assert check_error(*read_response(connection))["kind"] == "invalid"


@pytest.mark.parametrize("length", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
def test_an_incomplete_body_is_rejected(shared: Server, length: bytes) -> None:
    with shared.connection() as connection:
        start = b'9\r\n{"text": \r\n' if b"chunked" in length else b'{"text": '
        connection.sendall(
            f"POST {SEARCH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
            + length
            + b"\r\n\r\n"
            + start
        )
        connection.shutdown(1)
        assert "the body is incomplete" in check_error(*read_response(connection))["error"]


def test_a_client_may_close_its_side_after_sending(shared: Server) -> None:
    body = b'{"text": "ship"}'
    head = f"POST {SEARCH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with shared.connection() as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        connection.shutdown(1)
        status, content = read_response(connection)
        assert status == 200 and json.loads(content)["hits"]


def test_clients_that_disconnect_early_do_not_stop_the_server(shared: Server) -> None:
    body = json.dumps({"text": "ship", "k": 40}).encode()
    head = f"POST {SEARCH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for _ in range(20):
        with shared.connection() as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    assert shared.get("/health").json() == {"status": "ok"}


# With limits that are small enough to reach


@pytest.fixture(scope="module")
def limited() -> Iterator[Server]:
    root: Path = temporary_folder()
    limits = {"body_bytes": 10_000, "timeout_seconds": 3.0, "connections": 20}
    with serving_with(limits, fill(root / "c")) as server:
        yield server
    shutil.rmtree(root)


def test_a_large_body_is_rejected(limited: Server) -> None:
    large = json.dumps({"text": "ship", "where": "x" * 20_000}).encode()
    response = limited.post(SEARCH, large)
    assert (response.status_code, response.json()["kind"]) == (413, "too-large")

    def chunks() -> Iterator[bytes]:
        yield from (large[start : start + 1_000] for start in range(0, len(large), 1_000))

    response = httpx.post(limited.url + SEARCH, content=chunks(), headers=JSON)
    assert (response.status_code, response.json()["kind"]) == (413, "too-large")
    line = json.dumps({"id": "x", "text": "ship" * 5_000}).encode()
    response = limited.post(
        "/v1/collections/c/documents/lines", line, headers={"Content-Type": "application/x-ndjson"}
    )
    assert (response.status_code, response.json()["kind"]) == (413, "too-large")


INCOMPLETE = {
    "nothing": b"",
    "a path": b"POST /v1/coll",
    "an empty line": b"\r\n",
    "half a head": f"POST {SEARCH} HTTP/1.1\r\nHost: localhost\r\nContent-".encode(),
    "half a body": f"POST {SEARCH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "Content-Length: 50\r\n\r\n{".encode(),
}


def test_slow_clients_time_out(limited: Server) -> None:
    with ExitStack() as stack:
        connections = {name: stack.enter_context(limited.connection()) for name in INCOMPLETE}
        for name, connection in connections.items():
            connection.sendall(INCOMPLETE[name])
        for name, connection in connections.items():
            assert check_error(*read_response(connection))["kind"] == "timeout", name


def test_too_many_connections_are_rejected(limited: Server) -> None:
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(limited.connection()).sendall(b"GET /")
        with limited.connection() as connection:
            status, body = read_response(connection)
            assert status == 503 and json.loads(body)["kind"] == "unavailable"
