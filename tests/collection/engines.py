"""Where collections can be, for tests that hold for each: a fresh address, and a server to restart."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.collection.postgres_server import PostgresServer
from tests.collection.worlds import temporary_folder


class Engine(Protocol):
    def fresh(self) -> Path | str:
        """Return an address at which nothing is."""

    def restart(self) -> None:
        """Kill the server and start it again; open collections must go on."""


class Folders:
    def __init__(self, workspace: Path) -> None:
        self.root = workspace

    def fresh(self) -> Path:
        return self.root / secrets.token_hex(4)

    def restart(self) -> None:
        pass


class Postgres:
    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.database = server.new_database()

    def fresh(self) -> str:
        return self.server.address(f"c_{secrets.token_hex(4)}", database=self.database)

    def restart(self) -> None:
        self.server.kill()
        self.server.start()


@contextmanager
def folders() -> Iterator[Folders]:
    workspace = temporary_folder()
    try:
        yield Folders(workspace)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)


@contextmanager
def postgres() -> Iterator[Postgres]:
    server = PostgresServer()
    try:
        yield Postgres(server)
    finally:
        server.stop()
