"""Server processes for tests, each listening at a free port."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from snuh import Client
from tests.cli.running import environment

ROOT = Path(__file__).parents[2]
JSON = {"Content-Type": "application/json"}
TIMEOUT = 120.0  # seconds: machines that run tests are busy
NDJSON = {"Content-Type": "application/x-ndjson"}


@dataclass
class Server:
    """A running server, with methods to send requests to it."""

    process: subprocess.Popen[str]
    port: int
    root: Path = Path()  # the folder of its collections, for tests that open them

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, name: str = "c", **arguments: Any) -> Client:
        return Client(name, server=self.url, **{"timeout": TIMEOUT, **arguments})

    def get(self, path: str, **arguments: Any) -> httpx.Response:
        return httpx.get(self.url + path, timeout=TIMEOUT, **arguments)

    def post(self, path: str, body: Any = None, **arguments: Any) -> httpx.Response:
        """Post a JSON value, or raw bytes."""
        content = {"content": body, "headers": JSON} if isinstance(body, bytes) else {"json": body}
        return httpx.post(self.url + path, timeout=TIMEOUT, **content | arguments)

    def wait_until_ready(self) -> None:
        """Wait until the server has warmed up."""
        end = time.monotonic() + TIMEOUT
        while self.get("/ready").status_code != 200:
            assert time.monotonic() < end, self.get("/ready").text
            time.sleep(0.05)

    @contextmanager
    def connection(self) -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self.port), timeout=TIMEOUT) as connection:
            yield connection

    def stop(self) -> int:
        """Send SIGTERM, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=TIMEOUT)


@contextmanager
def serving(*folders: Path, options: tuple[object, ...] = (), **variables: str) -> Iterator[Server]:
    """Run `snuh serve` until the block ends."""
    arguments = [*map(str, folders), "--port", "0", *map(str, options)]
    with started([sys.executable, "-m", "snuh.cli", "serve", *arguments], **variables) as server:
        yield server


@contextmanager
def serving_with(limits: dict[str, float], *folders: Path) -> Iterator[Server]:
    """Run a server with limits that have no command-line options."""
    command = [sys.executable, "-m", "tests.server.limited", repr(limits), *map(str, folders)]
    with started(command) as server:
        yield server


@contextmanager
def started(command: list[str], **variables: str) -> Iterator[Server]:
    """Start a process, wait until it prints its URL, and stop it when the block ends."""
    process_environment = environment() | variables
    process_environment["PYTHONPATH"] = os.pathsep.join([process_environment["PYTHONPATH"], str(ROOT)])
    process = subprocess.Popen(command, env=process_environment, stderr=subprocess.PIPE, text=True)
    try:
        yield Server(process, _port(process))
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    output = ""
    for line in process.stderr:
        output += line
        if match := re.search(r"at http://\S+:(\d+) ", line):
            return int(match[1])
    raise AssertionError(f"the server did not start: {output}")


def read_response(connection: socket.socket) -> tuple[int, bytes]:
    """Read one response from a connection; return its status and body."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65_536)
        assert part, f"the connection ended after {data!r}"
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    while length and len(body) < int(length[1]):
        body += connection.recv(65_536)
    return int(head.split()[1]), body
