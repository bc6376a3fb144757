"""`snuh serve`: an HTTP API and a web page for collections."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snuh.cli.base_command import say
from snuh.errors import POSIX_MODULES, InputError, MissingExtraError, suggest

if TYPE_CHECKING:
    from snuh.server.settings import Tokens

EXAMPLES = (
    "snuh serve tickets",
    "snuh serve tickets articles --port 9000",
    "snuh serve tickets --host 0.0.0.0 --token-file tokens.txt",
    "snuh serve --config snuh.toml --access-log",
)

DEFAULT_RATE = 100.0  # for addresses that other machines can reach
MAX_WORKERS = 64
ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:\d+)?")  # as browsers send it


def _read_config(context: typer.Context, file: Path | None) -> Path | None:
    """Take the table [serve] of a TOML file as defaults; options and variables override them."""
    if file is None:
        return None
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("serve", {})
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"cannot read the settings in {file}: {reason}") from error
    names = {param.name or "" for param in context.command.params} - {"config"}
    values = {name.replace("-", "_"): value for name, value in table.items()}
    if unknown := sorted(values.keys() - names):
        raise InputError(f'{file} has an unknown setting "{unknown[0]}"{suggest(unknown[0], sorted(names))}')
    context.default_map = values
    return file


def serve(
    collections: Annotated[
        list[str],
        typer.Argument(
            metavar="COLLECTION",
            envvar="SNUH_COLLECTIONS",
            help="Collections to serve, named by their folders.",
        ),
    ],
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            envvar="SNUH_HOST",
            help="Address to listen on; other than localhost needs tokens.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", envvar="SNUH_PORT", help="Port to listen on; 0 selects a free one.")
    ] = 8765,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", envvar="SNUH_TOKEN_FILE", help='File with lines "read TOKEN" and "write TOKEN".'
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", envvar="SNUH_READ_ONLY", help="Do not allow writes.")
    ] = False,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ORIGIN", envvar="SNUH_CORS", help="Allow this origin to use the API (CORS); repeatable."
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            envvar="SNUH_PROXY",
            help="Trust the X-Forwarded-* headers of this reverse proxy; repeatable.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="N", envvar="SNUH_RATE", help="Requests per second and client address; 0 is unlimited."
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(metavar="N", envvar="SNUH_WORKERS", help="Number of worker processes.")
    ] = 1,
    embed_with: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            envvar="SNUH_EMBED_WITH",
            help="Embedding model for the vectors of texts, where a model reads vectors.",
        ),
    ] = None,
    log_level: Annotated[
        str,
        typer.Option(
            metavar="LEVEL",
            envvar="SNUH_LOG_LEVEL",
            help="Log, as JSON lines on stderr, from this level on: debug, info, warning or error.",
        ),
    ] = "warning",
    access_log: Annotated[
        bool, typer.Option("--access-log", envvar="SNUH_ACCESS_LOG", help="Log every request.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="SNUH_CONFIG",
            callback=_read_config,
            is_eager=True,
            help="TOML file whose table [serve] has these options.",
        ),
    ] = None,
) -> None:
    """Serve collections over HTTP: a JSON API, and a web page to search and explore them.

    Listens on localhost by default. Any other address requires tokens, from a file or from the environment
    variables SNUH_READ_TOKEN and SNUH_WRITE_TOKEN. Ctrl-C stops the server after the current requests.

    An option overrides its environment variable, which overrides the file given by --config.
    """
    _check_extra()
    from snuh.collection import Collection
    from snuh.features.embedding import load_embedding
    from snuh.server.middleware import Proxies
    from snuh.server.run import listen, run
    from snuh.server.settings import Limits, Settings, find_tokens, is_loopback, named_folders

    origins, proxies = cors or [], proxy or []
    folders = named_folders(collections)
    tokens = find_tokens(token_file, os.environ)
    _check(host=host, port=port, tokens=tokens, origins=origins, rate=rate, workers=workers)
    _check_level(log_level)
    Proxies(proxies)  # validates the addresses
    embed = None if embed_with is None else load_embedding(embed_with)
    readers = 0
    for folder in collections:
        with Collection(folder, embed=embed) as opened:  # report a broken collection before listening
            readers += opened.model.vectors is not None
    if embed is not None and not readers:
        raise InputError("no model of these collections reads vectors: omit --embed-with")
    del embed  # each process loads its own
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
            log_level=log_level,
            has_access_log=access_log,
            origins=tuple(origins),
            proxies=tuple(proxies),
            embedding=None if embed_with is None else str(embed_with.resolve()),
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
        raise MissingExtraError(f'serving needs {error.name}: pip install "snuhash[serve]"') from None


def _check_level(level: str) -> None:
    from snuh.server.run import LEVELS

    if level not in LEVELS:
        raise InputError(f'--log-level must be one of {", ".join(LEVELS)}, got "{level}"')


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
