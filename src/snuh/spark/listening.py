"""Progress of a training that runs elsewhere: the first worker sends lines of JSON to the driver."""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, BinaryIO, Self

from snuh.io import dump_json
from snuh.progress import EpochReport, OnProgress, Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_LINE = 65_536
SECONDS_TO_CONNECT, SECONDS_TO_END = 10.0, 10.0


@dataclass(frozen=True)
class Sender:
    """Where a worker sends its progress, and the word by which it is known; without a host nowhere."""

    host: str
    port: int
    word: str

    @contextmanager
    def connected(self, *, is_sending: bool) -> Iterator[OnProgress | None]:
        """Give a callback that sends progress; where the driver does not listen, training goes on without."""
        line = None
        if is_sending and self.host:
            with suppress(OSError):
                line = socket.create_connection((self.host, self.port), timeout=SECONDS_TO_CONNECT)
        if line is None:
            yield None
            return
        with line:
            line.sendall(self.word.encode() + b"\n")

            def send(progress: Progress) -> None:
                with suppress(OSError):
                    line.sendall(dump_json(asdict(progress)).encode() + b"\n")

            yield send


class Listener:
    """Takes the progress of one training on the driver, for the length of a block."""

    def __init__(self, spark: SparkSession, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        host = spark.conf.get("spark.driver.host", "127.0.0.1") or "127.0.0.1"
        self._socket = None
        if on_progress is not None:
            with suppress(OSError):  # a host that is not this one's to listen at: no progress, then
                self._socket = socket.create_server((host, 0))
        port = 0 if self._socket is None else int(self._socket.getsockname()[1])
        self.sender = Sender(host if self._socket else "", port, secrets.token_hex(16))
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        if self._socket is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is None:
            return
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes who waits for a call
        self._socket.close()
        self._thread.join(SECONDS_TO_END)

    def _listen(self) -> None:
        # Again and again: a worker that died has a successor.
        with suppress(OSError):
            while self._socket is not None:
                line, _ = self._socket.accept()
                with line, line.makefile("rb") as file:
                    self._take(file)

    def _take(self, file: BinaryIO) -> None:
        readline = file.readline
        with suppress(OSError, ValueError, TypeError, KeyError):
            if not hmac.compare_digest(readline(MAX_LINE).strip(), self.sender.word.encode()):
                return
            while text := readline(MAX_LINE):
                said = json.loads(text)
                epoch = said.pop("epoch")
                progress = Progress(**said, epoch=None if epoch is None else EpochReport(**epoch))
                if self._on_progress is not None:
                    self._on_progress(progress)
