"""Real servers for tests: processes that listen at a free port."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
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
PATIENCE = 120.0  # seconds: machines that run tests are busy
LINES = {"Content-Type": "application/x-ndjson"}


@dataclass
class Server:
    """A server that runs, and ways to talk to it."""

    process: subprocess.Popen[str]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, name: str = "c", **how: Any) -> Client:
        return Client(name, server=self.url, **{"timeout": PATIENCE, **how})

    def get(self, path: str, **how: Any) -> httpx.Response:
        return httpx.get(self.url + path, timeout=PATIENCE, **how)

    def post(self, path: str, body: Any = None, **how: Any) -> httpx.Response:
        """Post JSON, or bytes as they are."""
        content = {"content": body, "headers": JSON} if isinstance(body, bytes) else {"json": body}
        return httpx.post(self.url + path, timeout=PATIENCE, **content | how)

    @contextmanager
    def connection(self) -> Iterator[socket.socket]:
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection:
            yield connection

    def end(self) -> int:
        """Ask it to end, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE)


@contextmanager
def serving(*folders: Path, options: tuple[object, ...] = (), **variables: str) -> Iterator[Server]:
    """Run `snuh serve` until the block ends."""
    arguments = [*map(str, folders), "--port", "0", *map(str, options)]
    with started([sys.executable, "-m", "snuh.cli", "serve", *arguments], **variables) as server:
        yield server


@contextmanager
def serving_with(limits: dict[str, float], *folders: Path) -> Iterator[Server]:
    """Run a server with limits that the command line has no options for."""
    command = [sys.executable, "-m", "tests.server.limited", repr(limits), *map(str, folders)]
    with started(command) as server:
        yield server


@contextmanager
def started(command: list[str], **variables: str) -> Iterator[Server]:
    """Start a process, wait until it says where it listens, and end it with the block."""
    known = environment() | variables
    known["PYTHONPATH"] = os.pathsep.join([known["PYTHONPATH"], str(ROOT)])
    process = subprocess.Popen(command, env=known, stderr=subprocess.PIPE, text=True)
    try:
        yield Server(process, _port(process))
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if found := re.search(r"at http://\S+:(\d+) ", line):
            return int(found[1])
    raise AssertionError(f"the server did not start: {said}")


def answer_of(connection: socket.socket) -> tuple[int, bytes]:
    """Read one answer, with its body, from a connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65_536)
        assert part, f"the connection ended after {data!r}"
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    while found and len(body) < int(found[1]):
        body += connection.recv(65_536)
    return int(head.split()[1]), body
