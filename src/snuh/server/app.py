"""The FastAPI application: opens the collections, registers routes and the web page, handles errors."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles

import snuh
from snuh._numba import prefer_compiled
from snuh.errors import SnuhError
from snuh.features.embedding import load_embedding
from snuh.server.job_runner import exit_with_parent
from snuh.server.jobs import Jobs
from snuh.server.middleware import PROTECTED_PATHS, App, Metrics, SecurityMiddleware
from snuh.server.requests import ApiError, from_library_error, from_validation_error
from snuh.server.routes import collections, documents, insight, search
from snuh.server.service import CollectionService
from snuh.server.settings import Settings

SETTINGS_VARIABLE = "SNUH_SERVER_SETTINGS"  # passes the settings to worker processes
HTTP_ERROR_KINDS = {404: "not-found", 405: "method"}

PAGE_FOLDER, START_FILE, DOCS_FILE = "page", "index.html", "docs.html"
GZIP_LEVEL, MIN_GZIP_BYTES = 4, 1_000


def make_app(settings: Settings) -> App:
    """Return the application; it opens the collections when it starts."""
    metrics = Metrics(is_shared=settings.workers > 1)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            app.state.jobs = Jobs(Path(settings.scratch), seconds=settings.limits.job_seconds)
            stack.callback(app.state.jobs.close)
            app.state.services = {}
            prefer_compiled()
            embed = None if settings.embedding is None else load_embedding(settings.embedding)
            for name, folder in settings.folders.items():
                service = CollectionService(
                    name, folder, limits=settings.limits, metrics=metrics, embed=embed
                )
                stack.callback(service.close)
                app.state.services[name] = service
            yield

    app = FastAPI(
        title="snuh",
        version=snuh.__version__,
        description="Search collections of documents by short binary codes.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's page loads scripts from another site; see _add_page
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.settings, app.state.metrics = settings, metrics
    for topic in (search, documents, insight, collections):
        app.include_router(topic.router)
    app.include_router(collections.status_router)
    _add_page(app)
    _declare_tokens(app)
    _add_exception_handlers(app, settings)
    compressed = GZipMiddleware(app, minimum_size=MIN_GZIP_BYTES, compresslevel=GZIP_LEVEL)
    secured: App = SecurityMiddleware(compressed, settings, metrics)
    if settings.origins:
        secured = CORSMiddleware(
            secured,
            allow_origins=settings.origins,
            allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["authorization", "content-type", "x-request-id"],
            expose_headers=["retry-after", "x-request-id"],
        )
    return secured


def _declare_tokens(app: FastAPI) -> None:
    """Add the tokens, which SecurityMiddleware checks, to the OpenAPI schema."""
    make_schema = app.openapi

    def openapi() -> dict[str, Any]:
        schema = make_schema()
        scheme = {"type": "http", "scheme": "bearer", "description": "Required if the server has tokens."}
        schema["components"]["securitySchemes"] = {"token": scheme}
        for path, operations in schema["paths"].items():
            if path.startswith(PROTECTED_PATHS):
                for operation in operations.values():
                    operation["security"] = [{"token": []}]
        return schema

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI documents it


def app_from_environment() -> App:
    """Return the application of a worker process, which exits with the process that started it."""
    exit_with_parent()
    return make_app(Settings.from_text(os.environ[SETTINGS_VARIABLE]))


def _add_page(app: FastAPI) -> None:
    """Serve the page at /, the documentation of the API at /docs, and their other files at /page."""
    files = StaticFiles(packages=[("snuh.server", PAGE_FOLDER)])
    app.mount(f"/{PAGE_FOLDER}", files)
    for path, name in (("/", START_FILE), ("/docs", DOCS_FILE)):
        app.add_api_route(path, _static_endpoint(files, name), include_in_schema=False)


def _static_endpoint(files: StaticFiles, name: str) -> Callable[[Request], Awaitable[Response]]:
    async def send(request: Request) -> Response:
        return await files.get_response(name, request.scope)  # 304 if the client has it

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
            400: "the body is not valid JSON",
            404: "unknown path: see /docs for all paths",
            405: f"{request.method} is not supported at this path",
        }.get(error.status_code, str(error.detail))
        kind = HTTP_ERROR_KINDS.get(error.status_code, "invalid")
        return ApiError(error.status_code, kind, message, headers=error.headers).response()

    @app.exception_handler(ClientDisconnect)
    async def handle_disconnect(_: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=400)  # the client has disconnected

    @app.exception_handler(Exception)
    async def handle_bug(_: Request, error: Exception) -> Response:
        return ApiError(500, "internal", "this is a bug in snuh: see the server's log").response()
