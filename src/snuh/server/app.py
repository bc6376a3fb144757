"""The application: collections opened, routes put together, errors turned into sentences."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

import snuh
from snuh.errors import SnuhError
from snuh.server.errors import Refusal, of_details, of_error
from snuh.server.job_runner import end_with_parent
from snuh.server.jobs import Jobs
from snuh.server.metrics import Metrics
from snuh.server.middleware import App, Guard, Shortcut
from snuh.server.requests import GoneError
from snuh.server.routes import about, documents, insight, search
from snuh.server.service import Served
from snuh.server.settings import Settings

# The page: a fixed list of files, read once; no name from a request ever reaches the file system.

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


SETTINGS_VARIABLE = "SNUH_SERVER_SETTINGS"  # how a worker process is told
KINDS = {404: "not-found", 405: "method"}


def make_app(settings: Settings) -> App:
    """Return the whole application for some collections, which are opened when it starts."""
    metrics = Metrics(is_shared=settings.workers > 1)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            app.state.jobs = Jobs(Path(settings.scratch), seconds=settings.limits.job_seconds)
            stack.callback(app.state.jobs.close)
            app.state.served = {}
            for name, folder in settings.folders.items():
                one = Served(name, folder, limits=settings.limits, metrics=metrics)
                stack.callback(one.close)
                app.state.served[name] = one
            yield

    app = FastAPI(
        title="snuh",
        version=snuh.__version__,
        description="Search collections of documents by short binary codes.",
        lifespan=lifespan,
        docs_url=None,  # these would fetch scripts from another site
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.settings, app.state.metrics = settings, metrics
    for topic in (search, documents, insight, about):
        app.include_router(topic.router)
    app.include_router(about.status_router)
    add_page(app)
    _add_refusals(app, settings)
    guarded: App = Guard(Shortcut(app, search.router, search.search), settings, metrics)
    if settings.origins:
        guarded = CORSMiddleware(
            guarded,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )
    return guarded


def app_of_environment() -> App:
    """Return the application of a worker process, which ends when the process that started it is gone."""
    end_with_parent()
    return make_app(Settings.from_text(os.environ[SETTINGS_VARIABLE]))


def _add_refusals(app: FastAPI, settings: Settings) -> None:
    @app.exception_handler(Refusal)
    async def refused(_: Request, error: Refusal) -> Response:
        return error.response()

    @app.exception_handler(SnuhError)
    async def library(_: Request, error: SnuhError) -> Response:
        return of_error(error, settings.folders).response()

    @app.exception_handler(RequestValidationError)
    async def wrong(_: Request, error: RequestValidationError) -> Response:
        details = error.errors()[0]
        details["loc"] = details["loc"][1:]  # without "query" or "path"
        return of_details(details).response()

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> Response:
        kind = KINDS.get(error.status_code, "invalid")
        sentence = {
            404: "there is nothing at this path: /openapi.json has them all",
            405: f"{request.method} is not known at this path",
        }.get(error.status_code, str(error.detail))
        refusal = Refusal(error.status_code, kind, sentence)
        refusal.headers.update(error.headers or {})
        return refusal.response()

    @app.exception_handler(GoneError)
    async def gone(_: Request, error: GoneError) -> Response:
        return Response(status_code=400)  # nobody is there to read it

    @app.exception_handler(Exception)
    async def bug(_: Request, error: Exception) -> Response:
        return Refusal(500, "bug", "this is a bug in snuh: the server's log has more").response()
