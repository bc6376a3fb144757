"""The process, or the processes, that listen."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import uvicorn
from uvicorn.supervisors import Multiprocess

from snuh.errors import InputError
from snuh.server.app import SETTINGS_VARIABLE, make_app
from snuh.server.protocol import PatientProtocol, patient_protocol
from snuh.server.settings import Settings

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
