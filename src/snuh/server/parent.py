"""Processes that do not outlive the one that started them, however that one ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading

STANDARD_INPUT = 0


def end_with_parent() -> None:
    """Ask this worker process to end, as SIGTERM does, once the process that started it is gone."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def end_with_input(code: int) -> None:
    """Stop this process at once when its standard input ends: whoever holds the other end is gone."""

    def wait() -> None:
        os.read(STANDARD_INPUT, 1)  # unbuffered: a thread may wait here when the process ends of itself
        os._exit(code)

    threading.Thread(target=wait, daemon=True).start()
