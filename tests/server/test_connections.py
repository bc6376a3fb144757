"""Limits of connections: large heads, slow receivers, pipelining; and requests of other sites."""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Iterator

import psutil
import pytest

from snuh.collection import Collection
from snuh.server.run import MAX_HEAD_BYTES
from tests.cli.running import run
from tests.collection.worlds import temporary_folder
from tests.server.conftest import fill
from tests.server.serving import Server, read_response, serving_with

LONG = "/v1/collections/c/documents?id=long"
CHARACTERS = 10_000_000


@pytest.fixture(scope="module")
def limited() -> Iterator[Server]:
    """A server with a short timeout, and a document larger than any socket buffer."""
    root = temporary_folder()
    with Collection(fill(root / "c")) as collection:
        collection.add([{"id": "long", "text": "ship ".ljust(CHARACTERS, "x")}])
    with serving_with({"timeout_seconds": 2.0}, root / "c") as server:
        yield server
    shutil.rmtree(root)


def request(path: str, *headers: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def open_connections(server: Server) -> int:
    connections = psutil.Process(server.process.pid).net_connections()
    return sum(connection.status != psutil.CONN_LISTEN for connection in connections)


def slow_connection(server: Server) -> socket.socket:
    """Connect with the smallest possible receive buffer."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.settimeout(30)
    connection.connect(("127.0.0.1", server.port))
    return connection


def drain(connection: socket.socket) -> int:
    """Receive until the connection is closed; return the number of bytes."""
    received = 0
    try:
        while part := connection.recv(1 << 20):
            received += len(part)
    except ConnectionResetError:
        pass
    return received


@pytest.mark.parametrize(
    "sent",
    [request(LONG), request(LONG, "Connection: close"), request(LONG) * 2],
    ids=["one response", "last response", "two responses"],
)
def test_a_client_that_stops_receiving_is_disconnected(limited: Server, sent: bytes) -> None:
    with slow_connection(limited) as connection:
        connection.sendall(sent)
        assert connection.recv(1)  # the response has started
        end = time.monotonic() + 120
        while open_connections(limited) and time.monotonic() < end:
            time.sleep(0.05)
        assert not open_connections(limited)
        assert drain(connection) < CHARACTERS


def test_a_client_that_receives_slowly_gets_the_whole_response(limited: Server) -> None:
    received = 0
    with limited.connection() as connection:
        connection.sendall(request(LONG, "Connection: close"))
        started = time.monotonic()
        while part := connection.recv(200_000):
            received += len(part)
            time.sleep(len(part) / 4_000_000)
    assert time.monotonic() - started > 2.0 and received > CHARACTERS


@pytest.mark.parametrize(
    "start",
    [b"GET /", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", request("/")[:-2] + b"X: y\r\nZ: "],
    ids=["path", "header", "many headers"],
)
def test_an_endless_head_is_rejected(limited: Server, start: bytes) -> None:
    with limited.connection() as connection:
        connection.sendall(start + b"x" * (MAX_HEAD_BYTES + 1))
        status, body = read_response(connection)
        assert status == 431 and b"the head of the request exceeds" in body


@pytest.mark.parametrize("chunk", [1 << 10, 1 << 16, 1 << 20])
def test_a_head_above_the_limit_is_rejected_however_it_arrives(limited: Server, chunk: int) -> None:
    head = request("/health", *(f"X-{number}: {'y' * 8_000}" for number in range(38)))
    assert len(head) > 300_000
    with socket.create_connection(("127.0.0.1", limited.port), 30) as connection:
        for start in range(0, len(head), chunk):
            try:
                connection.sendall(head[start : start + chunk])
            except (BrokenPipeError, ConnectionResetError):
                break
            time.sleep(0.001)
        assert read_response(connection)[0] == 431


@pytest.mark.parametrize(
    "start",
    [
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"POST /v1/collections/c/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 1000\r\n\r\n",
        b"POST /v1/collections/c/documents/lines HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/x-ndjson\r\nContent-Length: 1000\r\n\r\n",
    ],
    ids=["head", "body", "upload"],
)
def test_a_byte_at_a_time_does_not_keep_a_connection_open(limited: Server, start: bytes) -> None:
    with socket.create_connection(("127.0.0.1", limited.port), 30) as connection:
        connection.sendall(start)
        began = time.monotonic()
        connection.settimeout(0.2)
        while time.monotonic() - began < 20:
            try:
                connection.sendall(b"x")
                if connection.recv(1 << 16):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        assert time.monotonic() - began < 8  # the limit is 2 seconds


@pytest.mark.parametrize("header", ["Host: localhost", "Origin: http://localhost", "Authorization: Bearer x"])
def test_a_header_given_twice_is_rejected(limited: Server, header: str) -> None:
    lines = [header] * (1 if header.startswith("Host") else 2)
    with socket.create_connection(("127.0.0.1", limited.port), 30) as connection:
        connection.sendall(request("/health", *lines))
        assert read_response(connection)[0] == 400


def test_a_head_within_the_limit_is_accepted(limited: Server) -> None:
    with limited.connection() as connection:
        for _ in range(3):  # the limit applies to each request
            connection.sendall(request("/health", "X: " + "x" * (MAX_HEAD_BYTES // 2)))
            assert read_response(connection)[0] == 200


def test_endless_trailers_are_rejected(limited: Server) -> None:
    head = b"POST /v1/collections/c/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with limited.connection() as connection:
        start = head + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n"
        connection.sendall(start)
        connection.sendall(b"X: " + b"x" * (2 * MAX_HEAD_BYTES))
        assert read_response(connection)[0] == 431


def test_too_many_pipelined_requests_are_rejected(limited: Server) -> None:
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
            if b"too many pipelined requests" in data:
                break
        assert b"HTTP/1.1 429" in data


# Requests of other sites


def test_an_invalid_origin_is_rejected_like_any_other(shared: Server) -> None:
    for origin in ("http://[", "http://127.0.0.1:8765/", "null", "", "//"):
        response = shared.get("/health", headers={"Origin": origin})
        assert (response.status_code, response.json()["kind"]) == (403, "forbidden")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_images_and_scripts_of_other_sites_are_rejected(shared: Server, site: str) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
    for path in ("/v1/collections", "/v1/collections/c/map", "/metrics"):
        response = shared.get(path, headers=headers)
        assert (response.status_code, response.json()["kind"]) == (403, "forbidden")
    assert shared.get("/", headers=headers).status_code == 200  # links to the page are allowed
    for own in ("same-origin", "none"):
        assert shared.get("/v1/collections", headers={"Sec-Fetch-Site": own}).status_code == 200


def test_a_path_with_a_trailing_slash_is_unknown(shared: Server) -> None:
    response = shared.get("/v1/collections/", headers={"Host": f"localhost:{shared.port}"})
    assert (response.status_code, response.json()["kind"]) == (404, "not-found")


@pytest.mark.parametrize("origin", ["http://[", "https://a.org/", "https://u@a.org", "HTTPS://A.org", "*"])
def test_the_cors_option_takes_origins_as_browsers_send_them(origin: str) -> None:
    ran = run("serve", "absent", "--cors", origin)
    assert ran.code == 2 and "--cors expects an origin" in ran.stderr and len(ran.complaints) == 1
