"""Many HTTP clients in one thread: each sends its next request when its response is complete.

Requests are prepared bytes and only the length of a response is parsed, so a request takes a few tens of
microseconds here and the measurement is that of the server.
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
    """The result of a period of load."""

    requests: int
    errors: int
    seconds: float
    own_cpu_seconds: float
    milliseconds: tuple[float, ...]  # latency of each response, ascending

    def percentile(self, fraction: float) -> float:
        """Return the latency that a fraction of the responses did not exceed."""
        return self.milliseconds[min(len(self.milliseconds) - 1, int(fraction * len(self.milliseconds)))]


class _Client:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent, self.data = 0.0, b""

    def send(self, request: bytes) -> None:
        self.sent, self.data = time.perf_counter(), b""
        self.socket.sendall(request)

    def has_answer(self) -> bool:
        """Read the available bytes and return whether the response is complete."""
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
    """Put load on a server for some seconds."""
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
