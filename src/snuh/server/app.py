"""The FastAPI application: opens the collections, registers routes and the web page, handles errors."""

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
from starlette.requests import ClientDisconnect

import snuh
from snuh.errors import SnuhError
from snuh.server.errors import ApiError, from_library_error, from_validation_error
from snuh.server.job_runner import exit_with_parent
from snuh.server.jobs import Jobs
from snuh.server.middleware import App, Metrics, SearchFastPath, SecurityMiddleware
from snuh.server.routes import collections, documents, insight, search
from snuh.server.service import CollectionService
from snuh.server.settings import Settings

SETTINGS_VARIABLE = "SNUH_SERVER_SETTINGS"  # passes the settings to worker processes
HTTP_ERROR_KINDS = {404: "not-found", 405: "method"}

# The files of the web page: a fixed list, so that no name from a request reaches the file system.
PAGE_FOLDER, START_FILE = "page", "index.html"
PAGE_FILES: tuple[tuple[str, str], ...] = (
    (START_FILE, "text/html"),
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
    ("filterexpression.js", "text/javascript"),
    ("filters.js", "text/javascript"),
    ("header.js", "text/javascript"),
    ("hits.js", "text/javascript"),
    ("icon.svg", "image/svg+xml"),
    ("info.js", "text/javascript"),
    ("layout.css", "text/css"),
    ("map.js", "text/javascript"),
    ("mapcontrols.js", "text/javascript"),
    ("notices.js", "text/javascript"),
    ("painter.js", "text/javascript"),
    ("projection.js", "text/javascript"),
    ("router.js", "text/javascript"),
    ("search.css", "text/css"),
    ("search.js", "text/javascript"),
    ("searchbox.js", "text/javascript"),
    ("searcher.js", "text/javascript"),
    ("shortcuts.js", "text/javascript"),
    ("theme.js", "text/javascript"),
    ("titles.js", "text/javascript"),
    ("token.js", "text/javascript"),
    ("views.css", "text/css"),
    ("why.js", "text/javascript"),
)
MISSING_PAGE = (
    b"<!doctype html><title>snuh</title><p>The page is not installed; the API is at /v1/collections."
)


def make_app(settings: Settings) -> App:
    """Return the application; it opens the collections when it starts."""
    metrics = Metrics(is_shared=settings.workers > 1)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            app.state.jobs = Jobs(Path(settings.scratch), seconds=settings.limits.job_seconds)
            stack.callback(app.state.jobs.close)
            app.state.services = {}
            for name, folder in settings.folders.items():
                service = CollectionService(name, folder, limits=settings.limits, metrics=metrics)
                stack.callback(service.close)
                app.state.services[name] = service
            yield

    app = FastAPI(
        title="snuh",
        version=snuh.__version__,
        description="Search collections of documents by short binary codes.",
        lifespan=lifespan,
        docs_url=None,  # these pages load scripts from another site
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.settings, app.state.metrics = settings, metrics
    for topic in (search, documents, insight, collections):
        app.include_router(topic.router)
    app.include_router(collections.status_router)
    _add_page(app)
    _add_exception_handlers(app, settings)
    secured: App = SecurityMiddleware(SearchFastPath(app, search.router, search.search), settings, metrics)
    if settings.origins:
        secured = CORSMiddleware(
            secured,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )
    return secured


def app_from_environment() -> App:
    """Return the application of a worker process, which exits with the process that started it."""
    exit_with_parent()
    return make_app(Settings.from_text(os.environ[SETTINGS_VARIABLE]))


def _add_page(app: FastAPI) -> None:
    """Serve the page at / and its other files at /page/NAME, from memory."""
    folder = files("snuh.server") / PAGE_FOLDER
    for name, media_type in PAGE_FILES:
        file = folder / name
        content = file.read_bytes() if file.is_file() else MISSING_PAGE
        path = "/" if name == START_FILE else f"/{PAGE_FOLDER}/{name}"
        app.add_api_route(path, _static_endpoint(content, media_type), include_in_schema=False)


def _static_endpoint(content: bytes, media_type: str) -> Callable[[Request], Response]:
    def send(request: Request) -> Response:
        return Response(content, media_type=media_type, headers={"cache-control": "no-cache"})

    return send


def _add_exception_handlers(app: FastAPI, settings: Settings) -> None:
    @app.exception_handler(ApiError)
    async def handle_api_error(_: Request, error: ApiError) -> Response:
        return error.response()

    @app.exception_handler(SnuhError)
    async def handle_library_error(_: Request, error: SnuhError) -> Response:
        return from_library_error(error, settings.folders).response()

    @app.exception_handler(RequestValidationError)
    async def handle_validation_error(_: Request, error: RequestValidationError) -> Response:
        details = error.errors()[0]
        details["loc"] = details["loc"][1:]  # without "query" or "path"
        return from_validation_error(details).response()

    @app.exception_handler(HTTPException)
    async def handle_http_exception(request: Request, error: HTTPException) -> Response:
        message = {
            404: "unknown path: see /openapi.json for all paths",
            405: f"{request.method} is not supported at this path",
        }.get(error.status_code, str(error.detail))
        api_error = ApiError(error.status_code, HTTP_ERROR_KINDS.get(error.status_code, "invalid"), message)
        api_error.headers.update(error.headers or {})
        return api_error.response()

    @app.exception_handler(ClientDisconnect)
    async def handle_disconnect(_: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=400)  # nobody receives it

    @app.exception_handler(Exception)
    async def handle_bug(_: Request, error: Exception) -> Response:
        return ApiError(500, "internal", "this is a bug in snuh: see the server's log").response()
