"""A real Milvus in a folder of its own, which can be killed and started again.

It is the server of the package `milvus`. It listens at all addresses, and no setting keeps it from that, so
it runs in a network of its own (`apart`): two of its ports are at this machine's loopback, nothing else is.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.collection.apart import start_apart, why_not

USER, FIRST_PASSWORD = "root", "Milvus"  # of any new Milvus
SECONDS = 180  # a busy machine takes its time
ROOM = 2 << 30  # bytes
PORT, HEALTH_PORT = 19530, 9091  # inside
SETTINGS = {
    "proxy.timeTickInterval": 40,  # milliseconds; what must see the last write waits for the next one
    "queryCoord.checkInterval": 100,
    "queryCoord.distPullInterval": 100,
    "queryCoord.checkHandoffInterval": 200,
    "common.session.ttl": 5,  # seconds after which the parts of a killed server are forgotten
}
ALWAYS = {
    "proxy_port": PORT,
    "authorization_enabled": True,
    "log.level": "warn",
    "log.stdout": "false",
}


class MilvusServer:
    """Started by the constructor, in a hurry unless told otherwise."""

    def __init__(self, settings: Mapping[str, object] = SETTINGS) -> None:
        check_namespaces()
        self.folder = roomy_folder()
        self.password = secrets.token_urlsafe(16)
        self.port, self._health = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None
        try:
            (self.folder / "bin").symlink_to(binaries())
            self._configure({**settings, **ALWAYS})
            self.start()
            self._change_password()
        except BaseException:
            self.stop()
            raise

    def _configure(self, settings: Mapping[str, object]) -> None:
        from milvus import MilvusServerConfig

        config = MilvusServerConfig(data_dir=str(self.folder))
        for name, value in settings.items():
            config.set(name, value)
        config.resolve()

    def _change_password(self) -> None:
        from pymilvus import MilvusClient

        client = MilvusClient(
            f"http://127.0.0.1:{self.port}", token=f"{USER}:{FIRST_PASSWORD}", timeout=SECONDS
        )
        client.update_password(USER, FIRST_PASSWORD, self.password, timeout=SECONDS)
        client.close()

    def start(self) -> None:
        """Start it, again after `kill` at the same port, and wait until it answers."""
        folder = str(self.folder)
        surroundings = {
            "DEPLOY_MODE": "STANDALONE",
            "METRICS_PORT": str(HEALTH_PORT),
            "MILVUS_RUN_DIR": f"{folder}/run",
            "OMP_NUM_THREADS": "1",
        }
        with (self.folder / "log").open("ab") as log:
            self._process = start_apart(
                # Its libraries are for it alone, not for who starts it.
                [
                    "/usr/bin/env",
                    f"LD_LIBRARY_PATH={folder}/bin",
                    f"{folder}/bin/milvus",
                    "run",
                    "standalone",
                ],
                {self.port: PORT, self._health: HEALTH_PORT},
                cwd=self.folder,
                env={**os.environ, **surroundings},
                log=log,
            )
        end = time.monotonic() + SECONDS
        while not self._is_healthy():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"Milvus did not start:\n{self.log()[-3000:]}")
            time.sleep(0.1)

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._health}/healthz", timeout=10) as answer:
                return b"OK" in answer.read()
        except (urllib.error.URLError, OSError):
            return False

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Let it die at once, without any tidying, as a crash does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(SECONDS)

    def restart(self) -> None:
        self.kill()
        self.start()

    def stop(self) -> None:
        """End it, and remove all that it wrote."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def address(self, name: str, *, user: str = USER, password: str | None = None) -> str:
        return f"milvus://{user}:{password or self.password}@127.0.0.1:{self.port}/{name}"


def check_namespaces() -> None:
    """Raise where the server cannot have a network of its own; tests are skipped there, but under CI=true."""
    reason = why_not()
    if reason is None:
        return
    told = f"Milvus is kept off the network: {reason}"
    if "PYTEST_CURRENT_TEST" in os.environ and os.environ.get("CI") != "true":
        pytest.skip(told)
    raise RuntimeError(told)


def binaries() -> Path:
    """Unpack the server where its package does, once for all: that takes longer than to start it."""
    import milvus

    folder = Path(milvus.MilvusServerConfig.get_default_data_dir())
    if not os.access(Path.home(), os.W_OK):
        folder = Path(tempfile.gettempdir()) / f"milvus-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        milvus._initialize_data_files(str(folder))
    return folder / "bin"


def roomy_folder() -> Path:
    """Make a folder in memory where there is enough: the server flushes to disk all the time."""
    memory = Path("/dev/shm")
    is_enough = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM
    return Path(tempfile.mkdtemp(prefix="snuh-milvus-", dir=memory if is_enough else None))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
