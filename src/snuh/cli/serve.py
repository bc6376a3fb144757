"""`snuh serve`: an HTTP API and a web page for collections."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snuh.cli.base_command import say
from snuh.errors import POSIX_MODULES, InputError, MissingExtraError

if TYPE_CHECKING:
    from snuh.server.settings import Tokens

EXAMPLES = (
    "snuh serve tickets",
    "snuh serve tickets articles --port 9000",
    "snuh serve tickets --host 0.0.0.0 --token-file tokens.txt",
)

DEFAULT_RATE = 100.0  # for addresses that other machines can reach
MAX_WORKERS = 64
ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:\d+)?")  # as browsers send it


def serve(
    collections: Annotated[
        list[str], typer.Argument(metavar="COLLECTION", help="Collections to serve, named by their folders.")
    ],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; other than localhost needs tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="Port to listen on; 0 selects a free one.")] = 8765,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help='File with lines "read TOKEN" and "write TOKEN".')
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Do not allow writes.")] = False,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Allow this origin to use the API (CORS); repeatable."),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Trust the X-Forwarded-* headers of this reverse proxy; repeatable.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(metavar="N", help="Requests per second and client address; 0 is unlimited."),
    ] = None,
    workers: Annotated[int, typer.Option(metavar="N", help="Number of worker processes.")] = 1,
) -> None:
    """Serve collections over HTTP: a JSON API, and a web page to search and explore them.

    Listens on localhost by default. Any other address requires tokens, from a file or from the environment
    variables SNUH_READ_TOKEN and SNUH_WRITE_TOKEN. Ctrl-C stops the server after the current requests.
    """
    _check_extra()
    from snuh.collection import Collection
    from snuh.server.middleware import Proxies
    from snuh.server.run import listen, run
    from snuh.server.settings import Limits, Settings, find_tokens, is_loopback, named_folders

    origins, proxies = cors or [], proxy or []
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


def _check_extra() -> None:
    try:
        import snuh.server.run  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name in POSIX_MODULES:
            raise
        raise MissingExtraError(f'serving needs {error.name}: pip install "snuh[serve]"') from None


def _check(
    *, host: str, port: int, tokens: Tokens, origins: list[str], rate: float | None, workers: int
) -> None:
    from snuh.server.settings import VARIABLES, is_loopback

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
