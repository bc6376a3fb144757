"""Whatever a request looks like, the answer is a status of 4xx and one sentence, and the server goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.collection.worlds import fast_place
from tests.server.conftest import fill
from tests.server.serving import JSON, Server, answer_of, serving_with

SEARCH = "/v1/collections/c/search"


def check_refused(status: int, body: bytes) -> dict[str, str]:
    assert 400 <= status < 500, (status, body)
    told = json.loads(body)
    assert told["kind"] and told["error"] and "\n" not in told["error"] and len(told["error"]) < 500
    return dict(told)


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
        b'{"text": ""}',
        b'{"id": "\\u0000"}',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_a_bad_search_is_refused_in_one_sentence(shared: Server, body: bytes) -> None:
    answer = shared.post(SEARCH, body)
    check_refused(answer.status_code, answer.content)


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
        ("documents/delete", {"ids": []}),
        ("nothing", {}),
        ("..", {}),
        ("%2e%2e/%2e%2e/etc/passwd", {}),
    ],
    ids=str,
)
def test_other_bad_requests_are_refused_too(shared: Server, path: str, body: object) -> None:
    answer = shared.post(f"/v1/collections/c/{path}", json.dumps(body).encode())
    check_refused(answer.status_code, answer.content)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/collections/c/bits?words=0",
        "/v1/collections/c/bits?words=many",
        "/v1/collections/c/documents",
        "/v1/collections/c/documents?id=" + "x" * 1_001,
        "/v1/collections/c/documents?" + "&".join(["id=d1"] * 101),
        "/v1/collections/c/documents/lines?where=year+%3E%3E+1",
        "/v1/collections/c/duplicates?threshold=2",
        "/v1/collections/c/duplicates?threshold=nan",
        "/v1/collections/c/duplicates?keep=all",
        "/v1/collections/%00",
        "/page/../../settings.py",
        "/page/%2e%2e%2fsettings.py",
        "/docs",
    ],
)
def test_bad_paths_and_parameters_are_refused(shared: Server, path: str) -> None:
    answer = shared.get(path)
    check_refused(answer.status_code, answer.content)


def test_the_sentence_says_what_to_do(shared: Server) -> None:
    said = {
        b'{"text": "ship", "k": 0}': '"k": input should be greater than or equal to 1, got 0',
        b'{"text": "ship", "wher": 1}': 'there is no field "wher" here: leave it out',
        b"{}": 'expected "text" or "id", got neither',
        b"{": "the body is not JSON: EOF while parsing",
    }
    for body, sentence in said.items():
        assert shared.post(SEARCH, body).json()["error"].startswith(sentence)
    answer = shared.get(SEARCH)
    assert (answer.status_code, answer.json()["kind"]) == (405, "method")
    answer = shared.post(SEARCH, b"{}", headers={"Content-Type": "text/plain"})
    assert (answer.status_code, answer.json()["kind"]) == (415, "type")


def test_what_is_no_http_is_refused(shared: Server) -> None:
    with shared.connection() as connection:
        connection.sendall(b"\x16\x03\x01 this is not http\r\n\r\n")
        assert check_refused(*answer_of(connection))["kind"] == "invalid"


@pytest.mark.parametrize("length", [b"Content-Length: 100", b"Transfer-Encoding: chunked"])
def test_a_body_cut_short_is_refused(shared: Server, length: bytes) -> None:
    with shared.connection() as connection:
        start = b'9\r\n{"text": \r\n' if b"chunked" in length else b'{"text": '
        connection.sendall(
            f"POST {SEARCH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n".encode()
            + length
            + b"\r\n\r\n"
            + start
        )
        connection.shutdown(1)
        assert "ended before it was whole" in check_refused(*answer_of(connection))["error"]


def test_whoever_sends_all_and_then_closes_its_side_still_gets_an_answer(shared: Server) -> None:
    body = b'{"text": "ship"}'
    head = f"POST {SEARCH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with shared.connection() as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        connection.shutdown(1)
        status, answer = answer_of(connection)
        assert status == 200 and json.loads(answer)["hits"]


def test_whoever_goes_away_early_does_not_end_the_server(shared: Server) -> None:
    body = json.dumps({"text": "ship", "k": 40}).encode()
    head = f"POST {SEARCH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for _ in range(20):
        with shared.connection() as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    assert shared.get("/health").json() == {"status": "ok"}


# Limits that are small enough to reach


@pytest.fixture(scope="module")
def limited() -> Iterator[Server]:
    place: Path = fast_place()
    limits = {"body_bytes": 10_000, "seconds": 3.0, "connections": 20}
    with serving_with(limits, fill(place / "c")) as server:
        yield server
    shutil.rmtree(place)


def test_a_large_body_is_refused(limited: Server) -> None:
    large = json.dumps({"text": "ship", "where": "x" * 20_000}).encode()
    answer = limited.post(SEARCH, large)
    assert (answer.status_code, answer.json()["kind"]) == (413, "too-large")

    def pieces() -> Iterator[bytes]:
        yield from (large[start : start + 1_000] for start in range(0, len(large), 1_000))

    answer = httpx.post(limited.url + SEARCH, content=pieces(), headers=JSON)
    assert (answer.status_code, answer.json()["kind"]) == (413, "too-large")
    line = json.dumps({"id": "x", "text": "ship" * 5_000}).encode()
    answer = limited.post(
        "/v1/collections/c/documents/lines", line, headers={"Content-Type": "application/x-ndjson"}
    )
    assert (answer.status_code, answer.json()["kind"]) == (413, "too-large")


CUT_SHORT = {
    "nothing": b"",
    "a path": b"POST /v1/coll",
    "an empty line": b"\r\n",
    "half a head": f"POST {SEARCH} HTTP/1.1\r\nHost: localhost\r\nContent-".encode(),
    "half a body": f"POST {SEARCH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "Content-Length: 50\r\n\r\n{".encode(),
}


def test_slow_clients_are_not_waited_for(limited: Server) -> None:
    with ExitStack() as stack:
        waiting = {name: stack.enter_context(limited.connection()) for name in CUT_SHORT}
        for name, connection in waiting.items():
            connection.sendall(CUT_SHORT[name])
        for name, connection in waiting.items():
            assert check_refused(*answer_of(connection))["kind"] == "slow", name


def test_too_many_connections_are_refused(limited: Server) -> None:
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(limited.connection()).sendall(b"GET /")
        with limited.connection() as connection:
            status, body = answer_of(connection)
            assert status == 503 and json.loads(body)["kind"] == "unavailable"
