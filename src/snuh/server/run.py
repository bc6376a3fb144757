"""Runs the server: one process, or several worker processes that share a listening socket.

Its logs are JSON lines on standard error.
"""

from __future__ import annotations

import asyncio
import json
import logging
import logging.config
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from snuh.errors import InputError
from snuh.server.app import SETTINGS_VARIABLE, make_app
from snuh.server.requests import error_body
from snuh.server.settings import Settings

logger = logging.getLogger(__name__)

MAX_HEAD_BYTES = 256 << 10  # of request line and headers, or of trailers
MAX_PIPELINED = 100  # requests sent ahead of the responses to earlier ones
MIN_BYTES_SENT = 64 << 10  # of a response per timeout, or the connection is closed
SHUTDOWN_SECONDS = 30  # to finish running requests
KEEP_ALIVE_SECONDS = 15
WORKER_SECONDS = 60  # without a sign of life, after which a worker process is replaced; they start slowly
BACKLOG = 2_048


class TimeoutProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol with timeouts and limits, whose own errors are JSON as well."""

    timeout_seconds = 30.0  # to receive the head of a request, and to send the next part of a response
    max_connections = 1_000
    _head_timer: asyncio.TimerHandle | None = None
    _send_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0  # received since the end of the last head or part of a body
    _header_bytes = 0  # of the request line and headers parsed so far

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer of the first request."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            self._send_error(503, "unavailable", "too many connections: try again later")
        else:
            self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._stop_head_timer()
        self._stop_send_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data, and keep the timer running until the head is complete."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._reject_head()
        elif len(self.pipeline) > MAX_PIPELINED:
            self._send_error(429, "rate", "too many pipelined requests: wait for the responses")
        elif self.cycle is None or self.cycle.response_complete:
            self._start_head_timer()
        else:
            self._stop_head_timer()

    def on_url(self, url: bytes) -> None:
        """Count the request line."""
        self._header_bytes += len(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header; those beyond the limit are not kept."""
        self._header_bytes += len(name) + len(value) + len(b": \r\n")
        if self._header_bytes <= MAX_HEAD_BYTES:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Handle the request, unless its head was too long."""
        size, self._head_bytes, self._header_bytes = self._header_bytes, 0, 0
        if size > MAX_HEAD_BYTES:
            self._reject_head()
        else:
            super().on_headers_complete()

    def _reject_head(self) -> None:
        message = f"the head of the request exceeds the limit of {MAX_HEAD_BYTES:,} bytes"
        self._send_error(431, "too-large", message)

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body, whose size the application limits."""
        self._head_bytes = 0
        super().on_body(body)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Reject an incomplete body; after a complete one the client may close its side."""
        self._stop_head_timer()
        if self.cycle is None or self.cycle.response_complete:
            return False
        self.cycle.keep_alive = False
        if self.cycle.more_body and not self.cycle.response_started:
            self._send_error(400, "invalid", "the body is incomplete: the connection was closed early")
            return False
        return True  # keep the transport open for the response

    def send_400_response(self, msg: str) -> None:
        """Reject data that is not HTTP."""
        self._send_error(400, "invalid", "this is not a valid HTTP request")

    def pause_writing(self) -> None:
        """Start the timer of a response that the client is slow to receive."""
        super().pause_writing()
        self._start_send_timer()

    def resume_writing(self) -> None:
        """Stop the timer, except for the last response on a connection."""
        if not self.transport.is_closing():
            self._stop_send_timer()
        super().resume_writing()

    def on_response_complete(self) -> None:
        """Keep the timer running until the last response on a connection has been sent."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._start_send_timer()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, or abort it if the client has not received the response."""
        if self._send_timer is not None:  # a response is still being sent
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        elif self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _start_send_timer(self) -> None:
        if self._send_timer is None:
            unsent = self.transport.get_write_buffer_size()
            self._send_timer = self.loop.call_later(self.timeout_seconds, self._check_sent, unsent)

    def _stop_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _check_sent(self, unsent_before: int) -> None:
        self._send_timer = None
        if self.transport.get_write_buffer_size() > unsent_before - MIN_BYTES_SENT:
            self.transport.abort()
        else:
            self._start_send_timer()

    def _start_head_timer(self) -> None:
        if self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self.timeout_seconds, self._head_timed_out)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_timed_out(self) -> None:
        self._head_timer = None
        self._send_error(408, "timeout", f"no complete request within {self.timeout_seconds:g} seconds")

    def _send_error(self, status: int, kind: str, message: str) -> None:
        if self.transport.is_closing():
            return
        body = error_body(kind, message)
        head = [
            STATUS_LINE[status],
            b"content-type: application/json\r\nconnection: close\r\ncontent-length: ",
            str(len(body)).encode(),
            b"\r\n\r\n",
        ]
        self.transport.write(b"".join([*head, body]))
        self.transport.close()
        self._start_send_timer()


def limited_protocol(*, timeout_seconds: float, max_connections: int) -> type[TimeoutProtocol]:
    """Return the protocol with other limits."""
    limits = {"timeout_seconds": timeout_seconds, "max_connections": max_connections}
    return type("LimitedProtocol", (TimeoutProtocol,), limits)


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; connections queue until the server has started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else "there is no such port"
        raise InputError(f"cannot listen at {host} port {port}: {reason}; choose another --port") from error
    listener.set_inheritable(True)
    return listener


def run(settings: Settings, listener: socket.socket, *, on_ready: Callable[[], None]) -> bool:
    """Serve until a signal stops the server, after running requests; return whether it started at all."""
    limits, is_single = settings.limits, settings.workers == 1
    # Worker processes import the application and the protocol by name, so they use the default limits.
    protocol = TimeoutProtocol
    if is_single:
        protocol = limited_protocol(
            timeout_seconds=limits.timeout_seconds, max_connections=limits.connections
        )
    config = uvicorn.Config(
        make_app(settings) if is_single else "snuh.server.app:app_from_environment",
        factory=not is_single,
        workers=settings.workers,
        http=protocol,
        ws="none",
        lifespan="on",
        log_config=logging_config(level=settings.log_level, has_access_log=settings.has_access_log),
        access_log=False,  # SecurityMiddleware writes it, with request ids and the addresses behind proxies
        server_header=False,
        proxy_headers=False,  # SecurityMiddleware reads them, from trusted proxies only
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        timeout_worker_healthcheck=WORKER_SECONDS,
    )
    if not is_single:
        os.environ[SETTINGS_VARIABLE] = settings.to_text()
        on_ready()
        _Workers(config, sockets=[listener]).run()
        return True
    server = _NotifyingServer(config, on_ready)
    server.run(sockets=[listener])
    return server.started


class _Workers(Multiprocess):
    """Worker processes; those that exit are replaced, which is logged."""

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have exited."""
        before = list(self.processes)
        super().keep_subprocess_alive()
        for old, new in zip(before, self.processes, strict=True):
            if old is not new:
                logger.warning(
                    "worker %s exited with %s, worker %s replaces it", old.pid, old.exitcode, new.pid
                )


class _NotifyingServer(uvicorn.Server):
    """Calls `on_ready` once the server has started."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server, then notify."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()


# Logs

LEVELS = ("debug", "info", "warning", "error")


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON; `extra={"values": {...}}` adds fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        values: dict[str, Any] = {  # Any: JSON values
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
            **getattr(record, "values", {}),
        }
        if record.exc_info:
            values["traceback"] = self.formatException(record.exc_info)
        return json.dumps(values, default=str)


def logging_config(*, level: str, has_access_log: bool) -> dict[str, Any]:
    """Return the configuration of `logging`, which uvicorn applies in every process."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "snuh.server.run.JsonFormatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "loggers": {
            "snuh": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
            "snuh.access": {"level": "INFO" if has_access_log else "CRITICAL"},
            "uvicorn": {"handlers": ["stderr"], "level": level.upper(), "propagate": False},
        },
    }
