from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.server.serving import Server


def focused(page: Page) -> str:
    """Return the id, the document or the text of the focused element."""
    return str(
        page.evaluate(
            "(({ id, dataset, textContent }) => id || dataset.item || textContent)(document.activeElement)"
        )
    )


def test_searching_works_without_a_mouse(page: Page) -> None:
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
    controls = page.evaluate(
        "[...document.querySelectorAll('a, button, input, select')]"
        ".filter((element) => element.checkVisibility()).length"
    )
    page.evaluate("document.activeElement.blur()")
    seen = set()
    for _ in range(controls + 5):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
    assert len(seen) >= controls


def test_a_slash_can_be_typed_into_a_field(page: Page) -> None:
    page.locator("#query").press_sequentially("tcp/ip")
    expect(page.locator("#query")).to_have_value("tcp/ip")


def test_the_first_tab_stop_skips_the_header(new_page: Callable[..., Page], server: Server) -> None:
    page = new_page(base_url=server.url)
    page.goto("/#/tickets/info")
    page.wait_for_selector(".card")
    page.keyboard.press("Tab")
    assert focused(page) == "skip"
    before = page.url
    page.keyboard.press("Enter")
    assert focused(page) == "main"
    assert page.url == before


def test_arrow_keys_move_through_the_bits(page: Page) -> None:
    page.fill("#query", "printer")
    page.get_by_text("Why this hit").first.click()
    page.wait_for_selector(".bit-grid")
    page.locator(".bit-grid .bit").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".bit-description b")).to_contain_text("Bit 17:")
