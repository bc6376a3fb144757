"""The page: a fixed list of files, read once; no name from a request ever reaches the file system."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

PAGE, START = "page", "index.html"
PAGE_FILES: tuple[tuple[str, str], ...] = (
    (START, "text/html"),
    ("address.js", "text/javascript"),
    ("api.js", "text/javascript"),
    ("app.js", "text/javascript"),
    ("base.css", "text/css"),
    ("bits.js", "text/javascript"),
    ("chart.js", "text/javascript"),
    ("controls.js", "text/javascript"),
    ("document.css", "text/css"),
    ("document.js", "text/javascript"),
    ("dom.js", "text/javascript"),
    ("duplicates.js", "text/javascript"),
    ("facts.js", "text/javascript"),
    ("filters.js", "text/javascript"),
    ("finding.js", "text/javascript"),
    ("frame.css", "text/css"),
    ("frame.js", "text/javascript"),
    ("hits.js", "text/javascript"),
    ("icon.svg", "image/svg+xml"),
    ("keys.js", "text/javascript"),
    ("map.js", "text/javascript"),
    ("mapkeys.js", "text/javascript"),
    ("notices.js", "text/javascript"),
    ("painter.js", "text/javascript"),
    ("plane.js", "text/javascript"),
    ("search.css", "text/css"),
    ("search.js", "text/javascript"),
    ("searchbox.js", "text/javascript"),
    ("theme.js", "text/javascript"),
    ("titles.js", "text/javascript"),
    ("token.js", "text/javascript"),
    ("views.css", "text/css"),
    ("where.js", "text/javascript"),
    ("why.js", "text/javascript"),
)
MISSING = b"<!doctype html><title>snuh</title><p>The page was not installed; the API is at /v1/collections."


def add_page(app: FastAPI) -> None:
    """Serve the page at / and its other files at /page/NAME."""
    folder = files("snuh.server") / PAGE
    for name, kind in PAGE_FILES:
        file = folder / name
        content = file.read_bytes() if file.is_file() else MISSING
        path = "/" if name == START else f"/{PAGE}/{name}"
        app.add_api_route(path, _sender(content, kind), include_in_schema=False)


def _sender(content: bytes, kind: str) -> Callable[[Request], Response]:
    def send(request: Request) -> Response:
        return Response(content, media_type=kind, headers={"cache-control": "no-cache"})

    return send
