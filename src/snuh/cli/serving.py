"""Check the options of `snuh serve` and run the server."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from pathlib import Path

import typer

from snuh.cli.base_command import say
from snuh.collection import Collection
from snuh.errors import POSIX_MODULES, InputError, MissingExtraError

try:
    from snuh.server.middleware import Proxies
    from snuh.server.run import listen, run
    from snuh.server.settings import (
        VARIABLES,
        Limits,
        Settings,
        Tokens,
        find_tokens,
        is_loopback,
        named_folders,
    )
except ModuleNotFoundError as error:
    if error.name in POSIX_MODULES:
        raise
    raise MissingExtraError(f'serving needs {error.name}: pip install "snuh[serve]"') from None

DEFAULT_RATE = 100.0  # for addresses that other machines can reach
MAX_WORKERS = 64
ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:\d+)?")  # as browsers send it


def run_server(
    collections: list[str],
    *,
    host: str,
    port: int,
    token_file: Path | None,
    read_only: bool,
    origins: list[str],
    proxies: list[str],
    rate: float | None,
    workers: int,
) -> None:
    """Serve until SIGINT or SIGTERM."""
    folders = named_folders(collections)
    tokens = find_tokens(token_file, os.environ)
    _check(host=host, port=port, tokens=tokens, origins=origins, rate=rate, workers=workers)
    Proxies(proxies)  # validates the addresses
    for folder in collections:
        Collection(folder).close()  # report a broken collection before listening
    if hasattr(signal, "SIGPIPE"):  # a client that disconnects must not end the server
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    default_rate = 0.0 if is_loopback(host) else DEFAULT_RATE
    with tempfile.TemporaryDirectory(prefix="snuh-serve-") as scratch, listen(host, port) as listener:
        bound_port = listener.getsockname()[1]
        settings = Settings(
            folders=folders,
            scratch=scratch,
            host=host,
            port=bound_port,
            workers=workers,
            is_read_only=read_only,
            origins=tuple(origins),
            proxies=tuple(proxies),
            tokens=tokens,
            limits=Limits(rate=default_rate if rate is None else rate),
        )
        if workers > 1:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = scratch
        for number in (signal.SIGTERM, signal.SIGINT):  # a regular exit, not an error
            signal.signal(number, lambda *_: sys.exit(0))
        url = f"http://[{host}]:{bound_port}" if ":" in host else f"http://{host}:{bound_port}"
        started = run(
            settings,
            listener,
            on_ready=lambda: say(f"serving {', '.join(folders)} at {url} (press Ctrl-C to stop)"),
        )
    if not started:
        raise typer.Exit(1)


def _check(
    *, host: str, port: int, tokens: Tokens, origins: list[str], rate: float | None, workers: int
) -> None:
    if not is_loopback(host) and not tokens:
        raise InputError(
            f"other machines can reach {host}: set tokens with --token-file, "
            f"or in the environment variables {' and '.join(VARIABLES.values())}"
        )
    if not 0 <= port <= 65_535:
        raise InputError(f"--port must be from 0 to 65535, got {port}")
    if not 1 <= workers <= MAX_WORKERS:
        raise InputError(f"--workers must be from 1 to {MAX_WORKERS}, got {workers}")
    if rate is not None and not 0 <= rate < float("inf"):
        raise InputError(f"--rate must be at least 0, got {rate}")
    for origin in origins:
        if not ORIGIN.fullmatch(origin):
            raise InputError(f'--cors expects an origin such as "https://example.org", got "{origin}"')
