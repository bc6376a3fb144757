from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.server.serving import Server


def focused(page: Page) -> str:
    """Return what has the focus, by its id, its document or its text."""
    return str(
        page.evaluate(
            "(({ id, dataset, textContent }) => id || dataset.item || textContent)(document.activeElement)"
        )
    )


def test_a_search_needs_no_mouse(page: Page) -> None:
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    assert focused(page) == "query"
    page.keyboard.type("printer paper")
    page.wait_for_selector(".hit")
    ids = [row.get_attribute("data-id") for row in page.locator(".hit").all()]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert focused(page) == ids[1]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert focused(page) == "query"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#drawer-body .whole-text")).to_be_visible()
    assert focused(page) == "tab-text"
    page.keyboard.press("ArrowRight")
    expect(page.locator(".bit-grid")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#drawer")).not_to_be_visible()
    assert focused(page) == ids[0]
    page.keyboard.press("Tab")
    assert focused(page) == "Why this hit"
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(page.locator("#query")).to_have_value("")


def test_every_control_can_be_reached_by_tab(page: Page) -> None:
    page.fill("#query", "wifi")
    page.wait_for_selector(".hit")
    page.wait_for_selector(".choice")
    wanted = page.evaluate(
        "[...document.querySelectorAll('a, button, input, select')]"
        ".filter((one) => one.checkVisibility()).length"
    )
    page.evaluate("document.activeElement.blur()")
    seen = set()
    for _ in range(wanted + 5):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
    assert len(seen) >= wanted


def test_a_slash_in_a_field_is_a_slash(page: Page) -> None:
    page.locator("#query").press_sequentially("tcp/ip")
    expect(page.locator("#query")).to_have_value("tcp/ip")


def test_the_first_tab_leads_past_the_header(new_page: Callable[..., Page], server: Server) -> None:
    page = new_page(base_url=server.url)
    page.goto("/#/tickets/facts")
    page.wait_for_selector(".card")
    page.keyboard.press("Tab")
    assert focused(page) == "skip"
    before = page.url
    page.keyboard.press("Enter")
    assert focused(page) == "main"
    assert page.url == before


def test_bits_can_be_gone_through_with_arrows(page: Page) -> None:
    page.fill("#query", "printer")
    page.get_by_text("Why this hit").first.click()
    page.wait_for_selector(".bit-grid")
    page.locator(".bit-grid .bit").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".bit-told b")).to_contain_text("Bit 17:")
