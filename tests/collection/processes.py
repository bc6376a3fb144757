"""Other processes for tests: forked, so that they start at once; no connection to a store may be open."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

NOBODY = 65_534
SECONDS = 300  # to wait for a process at most: a test that hangs says nothing
fork = multiprocessing.get_context("fork")


class Child:
    """A process that runs a function with a pipe to its parent."""

    def __init__(self, function: Callable[[Connection], Any]) -> None:
        self.pipe, other = fork.Pipe()
        self.process = fork.Process(target=_run, args=(function, other), daemon=True)
        self.process.start()
        other.close()

    def result(self) -> Any:
        """Wait for what the function returns; what it raised becomes a failure."""
        while True:
            kind, value = self._heard()
            if kind == "failed":
                raise AssertionError(value)
            if kind == "result":
                self.process.join(SECONDS)
                return value

    def wait_for(self, message: str) -> None:
        kind, value = self._heard()
        assert (kind, value) == ("said", message), value

    def _heard(self) -> tuple[str, Any]:
        assert self.pipe.poll(SECONDS), f"nothing came from the process in {SECONDS} seconds"
        kind, value = self.pipe.recv()
        return kind, value

    def tell(self, message: str) -> None:
        self.pipe.send(message)


def _run(function: Callable[[Connection], Any], pipe: Connection) -> None:
    try:
        pipe.send(("result", function(pipe)))
    except BaseException:
        pipe.send(("failed", traceback.format_exc()))


def say(pipe: Connection, message: str) -> None:
    pipe.send(("said", message))


def in_child(function: Callable[[], Any]) -> Any:
    """Run a function in another process and return its result."""
    return Child(lambda _: function()).result()


def become_nobody() -> None:
    """Give up being root, whom permissions do not stop; others stay who they are."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


@contextmanager
def started(*functions: Callable[[Connection], Any]) -> Iterator[list[Child]]:
    """Start processes, and end them with the block."""
    children = [Child(function) for function in functions]
    try:
        yield children
    finally:
        for child in children:
            child.process.kill()
            child.process.join()
            child.pipe.close()
