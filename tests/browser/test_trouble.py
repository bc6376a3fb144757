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


def test_words_that_nobody_knows_are_said_to_be_so(page: Page) -> None:
    page.fill("#query", UNKNOWN)
    expect(page.locator(".notice h2")).to_have_text("None of these words is known")
    page.locator(".suggestions a").first.click()
    page.wait_for_selector(".hit")


def test_a_collection_that_is_not_there_offers_the_others(page: Page) -> None:
    page.goto("/#/nowhere/search?q=x")
    expect(page.locator(".notice h2")).to_have_text("No such collection")
    page.locator(".notice").get_by_role("link", name="notes").click()
    expect(page.locator("#query")).to_be_visible()


@pytest.mark.parametrize(
    "address", ["#/%E0%A4%A", "#//", "#/tickets/nonsense?k=-5&in.labels={&from.year=x&order="]
)
def test_an_address_spoilt_by_hand_does_no_harm(page: Page, address: str) -> None:
    page.goto(f"/{address}")
    expect(page.locator("main")).not_to_be_empty()


def test_a_server_that_goes_away_is_missed(new_page: Callable[..., Page], place: Path) -> None:
    with serving(place / "notes") as server:
        page = new_page(base_url=server.url)
        page.goto("/#/notes/search?q=printer")
        page.wait_for_selector(".hit")
        port = server.port
    page.fill("#query", "router")
    expect(page.locator(".notice h2")).to_have_text("The server is gone")
    expect(page.locator(".notice")).to_contain_text("Trying again in")
    with serving(place / "notes", options=("--port", port)):
        page.wait_for_selector(".hit")


def test_too_many_requests_are_waited_out(new_page: Callable[..., Page], place: Path) -> None:
    with serving(place / "notes", options=("--rate", 1)) as server:
        page = new_page(base_url=server.url)
        page.goto("/#/notes/search")
        page.wait_for_selector("#query")
        with taking_every_turn(server):
            page.fill("#query", "printer")
            expect(page.locator(".notice[data-kind=rate]")).to_contain_text("Trying again in")
        expect(page.locator(".hit").first).to_be_visible()


@contextmanager
def taking_every_turn(server: Server) -> Iterator[None]:
    """Ask so often from this address that the page is refused, while the block lasts."""
    done = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=server.url) as client:
            while not done.wait(0.01):
                client.get("/health")

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_token_is_asked_for_and_kept_until_the_tab_is_closed(
    new_page: Callable[..., Page], place: Path
) -> None:
    with serving(place / "notes", SNUH_READ_TOKEN="a-token-for-reading") as server:
        page = new_page(base_url=server.url)
        page.goto("/#/notes/search?q=printer")
        page.fill("#token-field", "a wrong one")
        page.keyboard.press("Enter")
        expect(page.locator("#token .wrong")).to_have_text("The server does not know that token.")
        page.fill("#token-field", "a-token-for-reading")
        page.keyboard.press("Enter")
        page.wait_for_selector(".hit")
        page.reload()
        page.wait_for_selector(".hit")
        assert "a-token" not in page.url
        assert page.evaluate("localStorage.length + document.cookie.length") == 0
