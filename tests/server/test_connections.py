"""Connections that send too much, or do not take their answers; and pages of other sites."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator

import psutil
import pytest

from snuh.collection import Collection
from snuh.server.run import HEAD_BYTES
from tests.cli.running import run
from tests.collection.worlds import fast_place
from tests.server.conftest import fill
from tests.server.serving import Server, answer_of, serving_with

LONG = "/v1/collections/c/documents?id=long"
CHARACTERS = 10_000_000


@pytest.fixture(scope="module")
def limited() -> Iterator[Server]:
    """A server with little patience, and a document that no buffer of the system holds."""
    place = fast_place()
    with Collection(fill(place / "c")) as collection:
        collection.add([{"id": "long", "text": "ship ".ljust(CHARACTERS, "x")}])
    with serving_with({"seconds": 2.0}, place / "c") as server:
        yield server
    shutil.rmtree(place)


def request(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def open_connections(server: Server) -> int:
    every = psutil.Process(server.process.pid).net_connections()
    return sum(one.status != psutil.CONN_LISTEN for one in every)


def slow_connection(server: Server) -> socket.socket:
    """Connect with as little room for an answer as there can be."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.settimeout(30)
    connection.connect(("127.0.0.1", server.port))
    return connection


def taken_to_the_end(connection: socket.socket) -> int:
    """Count the bytes that are still to be had."""
    taken = 0
    try:
        while part := connection.recv(1 << 20):
            taken += len(part)
    except ConnectionResetError:
        pass
    return taken


@pytest.mark.parametrize(
    "sent",
    [request(LONG), request(LONG, "Connection: close"), request(LONG) * 2],
    ids=["one answer", "the last answer", "two answers"],
)
def test_whoever_does_not_take_an_answer_is_left(limited: Server, sent: bytes) -> None:
    with slow_connection(limited) as connection:
        connection.sendall(sent)
        assert connection.recv(1)  # it is being answered
        end = time.monotonic() + 120
        while open_connections(limited) and time.monotonic() < end:
            time.sleep(0.05)
        assert not open_connections(limited)
        assert taken_to_the_end(connection) < CHARACTERS


def test_whoever_takes_an_answer_slowly_gets_all_of_it(limited: Server) -> None:
    taken = 0
    with limited.connection() as connection:
        connection.sendall(request(LONG, "Connection: close"))
        started = time.monotonic()
        while part := connection.recv(200_000):
            taken += len(part)
            time.sleep(len(part) / 4_000_000)
    assert time.monotonic() - started > 2.0 and taken > CHARACTERS


@pytest.mark.parametrize(
    "start",
    [b"GET /", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", request("/")[:-2] + b"X: y\r\nZ: "],
    ids=["path", "header", "many headers"],
)
def test_a_head_without_end_is_refused(limited: Server, start: bytes) -> None:
    with limited.connection() as connection:
        connection.sendall(start + b"x" * (HEAD_BYTES + 1))
        status, body = answer_of(connection)
        assert status == 431 and b"the head has more than" in body


def test_a_head_within_the_limit_is_read(limited: Server) -> None:
    with limited.connection() as connection:
        for _ in range(3):  # each counts for itself
            connection.sendall(request("/health", "X: " + "x" * (HEAD_BYTES // 2)))
            assert answer_of(connection)[0] == 200


def test_trailers_without_end_are_refused(limited: Server) -> None:
    head = b"POST /v1/collections/c/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with limited.connection() as connection:
        start = head + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n"
        connection.sendall(start)
        connection.sendall(b"X: " + b"x" * (2 * HEAD_BYTES))
        assert answer_of(connection)[0] == 431


def test_requests_that_do_not_wait_for_answers_are_refused_where_they_are_many(limited: Server) -> None:
    with limited.connection() as connection:
        connection.sendall(request("/health") * 50)
        data = b""
        while data.count(b"HTTP/1.1 200") < 50:
            data += connection.recv(65_536)
    with limited.connection() as connection:
        connection.sendall(request("/health") * 3_000)
        data = b""
        while part := connection.recv(65_536):
            data += part
            if b"too many requests at once" in data:
                break
        assert b"HTTP/1.1 429" in data


# Pages of other sites


def test_an_origin_that_is_none_is_refused_like_any_other(shared: Server) -> None:
    for origin in ("http://[", "http://127.0.0.1:8765/", "null", "", "//"):
        answer = shared.get("/health", headers={"Origin": origin})
        assert (answer.status_code, answer.json()["kind"]) == (403, "forbidden")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_images_and_scripts_of_other_sites_start_nothing(shared: Server, site: str) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
    for path in ("/v1/collections", "/v1/collections/c/map", "/metrics"):
        answer = shared.get(path, headers=headers)
        assert (answer.status_code, answer.json()["kind"]) == (403, "forbidden")
    assert shared.get("/", headers=headers).status_code == 200  # a link to the page may be followed
    for own in ("same-origin", "none"):
        assert shared.get("/v1/collections", headers={"Sec-Fetch-Site": own}).status_code == 200


def test_a_path_with_a_slash_too_many_leads_nowhere(shared: Server) -> None:
    answer = shared.get("/v1/collections/", headers={"Host": f"localhost:{shared.port}"})
    assert (answer.status_code, answer.json()["kind"]) == (404, "not-found")


@pytest.mark.parametrize("origin", ["http://[", "https://a.org/", "https://u@a.org", "HTTPS://A.org", "*"])
def test_what_no_browser_sends_as_origin_is_no_origin(origin: str) -> None:
    ran = run("serve", "absent", "--cors", origin)
    assert ran.code == 2 and "--cors expects an origin" in ran.stderr and len(ran.complaints) == 1
