"""Many clients of an HTTP server in one thread: each sends its next request when its answer is whole.

A request is sent as ready bytes and of an answer only the length is read, so that one request takes some tens
of microseconds here and the server is what is measured.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle


@dataclass(frozen=True)
class Loaded:
    """What some seconds of load brought."""

    requests: int
    errors: int
    seconds: float
    own_cpu_seconds: float
    milliseconds: tuple[float, ...]  # of each answer, ascending

    def percentile(self, share: float) -> float:
        """Return the time within which a share of the answers came."""
        return self.milliseconds[min(len(self.milliseconds) - 1, int(share * len(self.milliseconds)))]


class _Client:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent, self.data = 0.0, b""

    def send(self, request: bytes) -> None:
        self.sent, self.data = time.perf_counter(), b""
        self.socket.sendall(request)

    def has_answer(self) -> bool:
        """Read what is there, and tell whether it is whole."""
        part = self.socket.recv(1 << 16)
        if not part:
            raise ConnectionError("the server closed a connection")
        self.data += part
        head, found, body = self.data.partition(b"\r\n\r\n")
        if not found:
            return False
        start = head.lower().index(b"content-length:") + len(b"content-length:")
        return len(body) >= int(head[start:].split(b"\r\n", 1)[0])


def load(port: int, path: str, bodies: Sequence[bytes], *, clients: int, seconds: float) -> Loaded:
    """Keep a server busy for some seconds."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    requests = cycle([f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in bodies])
    times: list[float] = []
    errors = 0
    with selectors.DefaultSelector() as waiting:
        every = [_Client(port) for _ in range(clients)]
        start, cpu = time.perf_counter(), time.process_time()
        for client in every:
            waiting.register(client.socket, selectors.EVENT_READ, client)
            client.send(next(requests))
        while time.perf_counter() < start + seconds:
            for key, _ in waiting.select(1.0):
                client = key.data
                if client.has_answer():
                    times.append(1e3 * (time.perf_counter() - client.sent))
                    errors += not client.data.startswith(b"HTTP/1.1 200")
                    client.send(next(requests))
        taken = time.perf_counter() - start
        own = time.process_time() - cpu
        for client in every:
            client.socket.close()
    return Loaded(len(times), errors, taken, own, tuple(sorted(times)))
