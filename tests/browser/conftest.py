from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.chromium import find_chromium
from tests.browser.worlds import make_collections
from tests.collection.worlds import temporary_folder
from tests.server.serving import Server, serving

TIMEOUT = 90_000  # milliseconds: machines that run tests are busy
SCREENSHOTS = "SNUH_SCREENSHOTS"  # the folder to save them in


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=TIMEOUT)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def root() -> Iterator[Path]:
    folder = temporary_folder()
    make_collections(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def server(root: Path) -> Iterator[Server]:
    """A server with two collections, which no test changes."""
    with serving(root / "tickets", root / "notes", options=("--read-only",)) as server:
        yield server


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open pages; fail at the end if one of them logged an error or warning."""
    contexts = []
    errors: list[str] = []

    def record(message: ConsoleMessage) -> None:
        is_response = message.text.startswith(
            "Failed to load resource"
        )  # a 4xx that the page shows as a notice
        if message.type in ("error", "warning") and not is_response:
            errors.append(message.text)

    def open_page(
        *, width: int = 1280, height: int = 800, theme: Literal["light", "dark"] = "light", **options: Any
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            reduced_motion="reduce",
            **options,
        )
        context.set_default_timeout(TIMEOUT)
        contexts.append(context)
        page = context.new_page()
        page.on("console", record)
        page.on("pageerror", lambda error: errors.append(str(error)))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def page(new_page: Callable[..., Page], server: Server) -> Page:
    """The page with the collection of tickets, ready for input."""
    page = new_page(base_url=server.url)
    page.goto("/")
    page.wait_for_selector("#query")
    return page


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for screenshots."""
    path = os.environ.get(SCREENSHOTS)
    folder = Path(path) if path else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
