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
from tests.collection.worlds import fast_place
from tests.server.serving import Server, serving

PATIENCE = 90_000  # milliseconds: machines that run tests are busy
SCREENSHOTS = "SNUH_SCREENSHOTS"  # a folder in which to keep them


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def place() -> Iterator[Path]:
    folder = fast_place()
    make_collections(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def server(place: Path) -> Iterator[Server]:
    """A server with two collections, which no test changes."""
    with serving(place / "tickets", place / "notes", options=("--read-only",)) as server:
        yield server


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages; at the end none of them may have complained."""
    contexts = []
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        is_answer = message.text.startswith("Failed to load resource")  # a 4xx that the page shows in words
        if message.type in ("error", "warning") and not is_answer:
            complaints.append(message.text)

    def open_page(
        *, width: int = 1280, height: int = 800, theme: Literal["light", "dark"] = "light", **how: Any
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce", **how
        )
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", hear)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def page(new_page: Callable[..., Page], server: Server) -> Page:
    """The page on the collection of tickets, ready to type."""
    page = new_page(base_url=server.url)
    page.goto("/")
    page.wait_for_selector("#query")
    return page


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots are kept."""
    named = os.environ.get(SCREENSHOTS)
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
