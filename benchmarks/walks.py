"""How many files and functions a fit, a search and an HTTP search pass through.

python -m benchmarks.walks [--list]

Each walk runs in this process on 300 documents; a profiler notes every function of `snuh` that is called.
Code that runs while a module is imported is left out; compiled kernels are not seen. `docs/architecture.md`
draws the three walks.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import snuh

DOCUMENTS = 300
TOPICS = (
    "printer paper jam tray toner ink page print queue driver scanner cartridge",
    "wifi network router cable slow connection drops vpn signal internet download ping",
    "password login account locked reset email expired user sign code profile access",
)
QUERY = "the printer eats my paper"
PACKAGE = Path(str(snuh.__file__)).parent


class Walk:
    """The functions called while it records, by file."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self.is_recording = False
        self._importing = threading.local()

    def note(self, frame: FrameType, event: str, _: Any) -> None:  # Any: as sys.setprofile passes it
        """Take a call or a return; what a module's own code calls is part of its import."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(str(PACKAGE)):
            return
        depth = getattr(self._importing, "depth", 0)
        if code.co_name == "<module>":
            self._importing.depth = depth + (1 if event == "call" else -1)
        elif self.is_recording and not depth and code.co_flags & inspect.CO_OPTIMIZED:  # no class body
            self.codes.add(code)

    @contextmanager
    def profiling(self, *, is_recording: bool = True) -> Iterator[None]:
        """Profile this thread and every thread that starts in the block; recording can be switched."""
        self.is_recording = is_recording
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @property
    def files(self) -> list[str]:
        """The files passed through, relative to the package."""
        return sorted({str(Path(code.co_filename).relative_to(PACKAGE)) for code in self.codes})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="name the files")
    names = parser.parse_args().list
    with tempfile.TemporaryDirectory() as folder:
        walks = take_walks(Path(folder))
    counts = {
        name: {"files": len(walk.files), "functions": len(walk.codes)}
        | ({"names": walk.files} if names else {})
        for name, walk in walks.items()
    }
    print(json.dumps(counts, indent=2))


def take_walks(folder: Path) -> dict[str, Walk]:
    """Fit, search and search over HTTP in a folder."""
    source, model, collection = folder / "tickets.jsonl", folder / "model", folder / "tickets"
    write_tickets(source)
    fit, search, http = Walk(), Walk(), Walk()
    with fit.profiling():
        run("fit", source, "--out", model, "--bits", "16", "--set", "epochs=3")
    run("create", collection, "--model", model, "--from", source)
    with search.profiling():
        run("search", collection, QUERY)
    with http.profiling(is_recording=False):
        serve_one_search(collection, http)
    return {"fit": fit, "search": search, "http": http}


def write_tickets(path: Path) -> None:
    """Write short documents about three topics."""
    rng = random.Random(0)
    with path.open("w") as file:
        for number in range(DOCUMENTS):
            words = rng.choices(rng.choice(TOPICS).split(), k=10)
            file.write(json.dumps({"id": f"ticket-{number}", "text": " ".join(words)}) + "\n")


def run(*arguments: str | Path) -> None:
    """Run a command of the terminal in this process; its output goes nowhere."""
    from snuh.cli.app import app

    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        app([str(argument) for argument in arguments], standalone_mode=False)


def serve_one_search(collection: Path, walk: Walk) -> None:
    """Serve a collection until it has answered two searches, and record the second one."""
    from snuh.server.run import listen
    from snuh.server.run import run as serve
    from snuh.server.settings import Settings, named_folders

    with tempfile.TemporaryDirectory() as scratch, listen("127.0.0.1", 0) as listening:
        server = f"http://127.0.0.1:{listening.getsockname()[1]}"
        url = f"{server}/v1/collections/{collection.name}/search"

        def send_searches() -> None:
            try:
                search_over_http(url)
                wait_until_warm(f"{server}/ready")  # other threads are recorded, too
                walk.is_recording = True
                search_over_http(url)
                walk.is_recording = False
            finally:
                os.kill(os.getpid(), signal.SIGINT)

        settings = Settings(folders=named_folders([collection]), scratch=scratch)
        with suppress(KeyboardInterrupt):
            serve(settings, listening, on_ready=threading.Thread(target=send_searches).start)


def wait_until_warm(url: str) -> None:
    """Wait until the server has run its warm-up searches; it answers 503 before."""
    for _ in range(600):
        with suppress(urllib.error.HTTPError), urllib.request.urlopen(url, timeout=60):
            return
        time.sleep(0.1)


def search_over_http(url: str) -> None:
    """Post a search and read the answer."""
    body = json.dumps({"text": QUERY}).encode()
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        assert json.load(response)["hits"]


if __name__ == "__main__":
    main()
