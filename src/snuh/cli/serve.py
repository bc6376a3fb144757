"""`snuh serve`: collections over HTTP, with a page to search and explore them."""

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
        list[str], typer.Argument(metavar="COLLECTION", help="The collections; each is named by its folder.")
    ],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; any but this machine's own needs tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="0 takes one that is free.")] = 8765,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help='Lines such as "read TOKEN" and "write TOKEN".')
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Nobody may add or delete.")] = False,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="A site whose pages may use the API; may be repeated."),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="A server in front, whose X-Forwarded- headers are believed; may be repeated.",
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(metavar="N", help="Requests a second from one address; 0: any number.")
    ] = None,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes that answer.")] = 1,
) -> None:
    """Answer searches over HTTP, and show a page to search and explore the collections.

    Listens on this machine only. For any other address there must be tokens, in a file or in the variables
    SNUH_READ_TOKEN and SNUH_WRITE_TOKEN. Ctrl-C ends it, after the requests under way.
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
