from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.worlds import UNKNOWN
from tests.server.serving import Server, serving


def test_unknown_words_are_reported_with_suggestions(page: Page) -> None:
    page.fill("#query", UNKNOWN)
    expect(page.locator(".notice h2")).to_have_text("No hits")
    expect(page.locator(".notice")).to_contain_text("No document contains")
    page.locator(".suggestions a").first.click()
    page.wait_for_selector(".hit")


def test_an_unknown_collection_offers_the_others(page: Page) -> None:
    page.goto("/#/nowhere/search?q=x")
    expect(page.locator(".notice h2")).to_have_text("No such collection")
    page.locator(".notice").get_by_role("link", name="notes").click()
    expect(page.locator("#query")).to_be_visible()


@pytest.mark.parametrize(
    "url", ["#/%E0%A4%A", "#//", "#/tickets/nonsense?k=-5&in.labels={&from.year=x&order="]
)
def test_an_invalid_url_does_not_break_the_page(page: Page, url: str) -> None:
    page.goto(f"/{url}")
    expect(page.locator("main")).not_to_be_empty()


def test_an_unreachable_server_is_reported_and_retried(new_page: Callable[..., Page], root: Path) -> None:
    with serving(root / "notes") as server:
        page = new_page(base_url=server.url)
        page.goto("/#/notes/search?q=printer")
        page.wait_for_selector(".hit")
        port = server.port
    page.fill("#query", "router")
    expect(page.locator(".notice h2")).to_have_text("The server is unreachable")
    expect(page.locator(".notice")).to_contain_text("Trying again in")
    with serving(root / "notes", options=("--port", port)):
        page.wait_for_selector(".hit")


def test_the_page_retries_after_too_many_requests(new_page: Callable[..., Page], root: Path) -> None:
    with serving(root / "notes", options=("--rate", 1)) as server:
        page = new_page(base_url=server.url)
        page.goto("/#/notes/search")
        page.wait_for_selector("#query")
        with exceeding_the_rate_limit(server):
            page.fill("#query", "printer")
            expect(page.locator(".notice[data-kind=rate]")).to_contain_text("Trying again in")
        expect(page.locator(".hit").first).to_be_visible()


@contextmanager
def exceeding_the_rate_limit(server: Server) -> Iterator[None]:
    """Send enough requests from this address that those of the page are rejected."""
    done, is_limited = threading.Event(), threading.Event()

    def send_requests() -> None:
        with httpx.Client(base_url=server.url) as client:
            while not done.wait(0.01):
                if client.get("/health").status_code == 429:
                    is_limited.set()

    thread = threading.Thread(target=send_requests)
    thread.start()
    try:
        assert is_limited.wait(60)
        yield
    finally:
        done.set()
        thread.join()


def test_the_page_asks_for_a_token_and_stores_it_for_the_session(
    new_page: Callable[..., Page], root: Path
) -> None:
    with serving(root / "notes", SNUH_READ_TOKEN="a-token-for-reading") as server:
        page = new_page(base_url=server.url)
        page.goto("/#/notes/search?q=printer")
        page.fill("#token-field", "a wrong one")
        page.keyboard.press("Enter")
        expect(page.locator("#token .error-text")).to_have_text("The server rejected this token.")
        page.fill("#token-field", "a-token-for-reading")
        page.keyboard.press("Enter")
        page.wait_for_selector(".hit")
        page.reload()
        page.wait_for_selector(".hit")
        assert "a-token" not in page.url
        assert page.evaluate("localStorage.length + document.cookie.length") == 0
