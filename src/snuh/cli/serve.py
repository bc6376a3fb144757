"""`snuh serve`: an HTTP API and a web page for collections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = (
    "snuh serve tickets",
    "snuh serve tickets articles --port 9000",
    "snuh serve tickets --host 0.0.0.0 --token-file tokens.txt",
)


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
    from snuh.cli.serving import run_server

    run_server(
        collections,
        host=host,
        port=port,
        token_file=token_file,
        read_only=read_only,
        origins=cors or [],
        proxies=proxy or [],
        rate=rate,
        workers=workers,
    )
