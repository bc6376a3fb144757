"""The process, or the processes, that listen."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from snuh.errors import InputError
from snuh.server.app import SETTINGS_VARIABLE, make_app
from snuh.server.errors import refusal_body
from snuh.server.settings import Settings

# HTTP connections that do not wait for ever, and whose own refusals are JSON as well.

HEAD_BYTES = 256 << 10  # of a head, or of whatever else comes beside a body
MAX_PIPELINED = 100  # requests sent before the answers to those before them
MIN_BYTES_TAKEN = 64 << 10  # bytes of an answer, in the time there is for the head of a request


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with an end to the patience for a request, or the taking of an answer."""

    seconds = 30.0  # for the head of a request to come, and for the next part of an answer to be taken
    max_connections = 1_000  # connections at once
    _alarm: asyncio.TimerHandle | None = None
    _watch: asyncio.TimerHandle | None = None
    _unread = 0  # bytes that came since the last of a body, or the end of a head

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self._refuse(503, "unavailable", "there are too many connections: try again later")
        else:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came, and wait on where it was not a whole head."""
        self._unread += len(data)
        super().data_received(data)
        if self._unread > HEAD_BYTES:
            self._refuse(
                431, "too-large", f"the head has more than the {HEAD_BYTES:,} bytes that are allowed"
            )
        elif len(self.pipeline) > MAX_PIPELINED:
            self._refuse(429, "rate", "too many requests at once on one connection: wait for the answers")
        elif self.cycle is None or self.cycle.response_complete:
            self._wait_for_head()
        else:
            self._stop_waiting()

    def on_headers_complete(self) -> None:
        """Start to answer."""
        self._unread = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body, which has a limit of its own."""
        self._unread = 0
        super().on_body(body)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Refuse a body that was cut short; whoever has sent all of it still gets an answer."""
        self._stop_waiting()
        if self.cycle is None or self.cycle.response_complete:
            return False
        self.cycle.keep_alive = False
        if self.cycle.more_body and not self.cycle.response_started:
            self._refuse(400, "invalid", "the body ended before it was whole: send all of it")
            return False
        return True  # the transport stays open for the answer

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self._refuse(400, "invalid", "this is no HTTP request that can be read")

    def pause_writing(self) -> None:
        """Watch whether an answer that was not taken at once is taken at all."""
        super().pause_writing()
        self._start_watching()

    def resume_writing(self) -> None:
        """Go on; the end of the last answer on a connection stays watched."""
        if not self.transport.is_closing():
            self._stop_watching()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """Watch the end of the last answer on a connection, which closes when it was taken."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._start_watching()

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that is idle, or whose other end does not take the end of its answer."""
        if self._watch is not None:  # an answer is still on its way
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        elif self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _start_watching(self) -> None:
        if self._watch is None:
            left = self.transport.get_write_buffer_size()
            self._watch = self.loop.call_later(self.seconds, self._check_taken, left)

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _check_taken(self, before: int) -> None:
        self._watch = None
        if self.transport.get_write_buffer_size() > before - MIN_BYTES_TAKEN:
            self.transport.abort()
        else:
            self._start_watching()

    def _wait_for_head(self) -> None:
        if self._alarm is None and not self.transport.is_closing():
            self._alarm = self.loop.call_later(self.seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _give_up(self) -> None:
        self._alarm = None
        self._refuse(408, "slow", f"no whole request came within {self.seconds:g} seconds")

    def _refuse(self, status: int, kind: str, sentence: str) -> None:
        if self.transport.is_closing():
            return
        body = refusal_body(kind, sentence)
        head = [
            STATUS_LINE[status],
            b"content-type: application/json\r\nconnection: close\r\ncontent-length: ",
            str(len(body)).encode(),
            b"\r\n\r\n",
        ]
        self.transport.write(b"".join([*head, body]))
        self.transport.close()
        self._start_watching()


def patient_protocol(*, seconds: float, connections: int) -> type[PatientProtocol]:
    """Return the protocol with limits of its own."""
    return type("LimitedProtocol", (PatientProtocol,), {"seconds": seconds, "max_connections": connections})


DRAIN_SECONDS = 30  # for the requests under way when the server is told to end
KEEP_ALIVE_SECONDS = 15
BACKLOG = 2_048


def listen(host: str, port: int) -> socket.socket:
    """Take an address; connections that come before the server is up wait."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = error.strerror if isinstance(error, OSError) else "there is no such port"
        raise InputError(f"cannot listen at {host} port {port}: {reason}; choose another --port") from error
    listening.set_inheritable(True)
    return listening


def run(settings: Settings, listening: socket.socket, *, on_ready: Callable[[], None]) -> bool:
    """Serve until told to end, and return whether it ever started; requests under way are finished first."""
    limits, is_alone = settings.limits, settings.workers == 1
    # Worker processes are given the application and the protocol by their names.
    protocol = PatientProtocol
    if is_alone:
        protocol = patient_protocol(seconds=limits.seconds, connections=limits.connections)
    config = uvicorn.Config(
        make_app(settings) if is_alone else "snuh.server.app:app_of_environment",
        factory=not is_alone,
        workers=settings.workers,
        http=protocol,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the guard reads them, where it was told whose
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    if not is_alone:
        os.environ[SETTINGS_VARIABLE] = settings.to_text()
        on_ready()
        Multiprocess(config, sockets=[listening]).run()
        return True
    server = _Announcing(config, on_ready)
    server.run(sockets=[listening])
    return server.started


class _Announcing(uvicorn.Server):
    """Says when it is up."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()
