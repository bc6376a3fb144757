from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.worlds import BITS, NOTES, TICKETS
from tests.server.serving import Server


def test_bits_show_their_themes_which_link_to_searches(page: Page, server: Server) -> None:
    page.get_by_role("link", name="Bits").click()
    expect(page.locator(".bit-row")).to_have_count(BITS)
    meanings = server.get("/v1/collections/tickets/bits?words=12").json()["meanings"]
    expect(page.locator("#bit-3 .theme-link").first).to_have_text(" ".join(meanings[3]["on"][0]))
    page.fill("#bit-word", "toner")
    page.wait_for_url("**word=toner")
    for text in page.locator(".bit-row:visible").all_inner_texts():
        assert "toner" in text
    page.locator(".bit-row:visible .theme-link").first.click()
    page.wait_for_selector(".hit")


def test_duplicates_are_grouped_with_one_document_to_keep(page: Page) -> None:
    page.get_by_role("link", name="Duplicates").click()
    page.wait_for_selector(".cluster", timeout=180_000)
    pair = page.locator(".cluster", has_text="ticket-39")
    expect(pair.locator(".kept small")).to_have_text("ticket-38")
    expect(pair.locator(".duplicate:not(.kept) .duplicate-score")).to_have_text("100%")
    pair.get_by_role("button", name="Compare").click()
    expect(pair.locator(".comparison")).to_have_text("The texts are identical.")
    pieces = page.evaluate(
        "import('/page/diff.js').then(({ diff }) => diff('an old cat sat', 'an old dog sat down'))"
    )
    assert pieces == [
        [["an old ", True], ["cat", False], [" sat", True]],
        [["an old ", True], ["dog", False], [" sat", True], [" down", False]],
    ]
    page.locator("#threshold").select_option("1")
    page.wait_for_url("**threshold=1")
    page.wait_for_selector(".cluster", timeout=180_000)
    pair.locator(".duplicate a").last.click()
    expect(page.locator(".pairs")).to_contain_text("ticket-39")
    page.keyboard.press("Escape")
    expect(page).to_have_url(re.compile("threshold=1$"))
    page.go_back()
    expect(page.locator(".pairs")).to_contain_text("ticket-39")
    page.go_back()
    expect(page.locator("#drawer")).not_to_be_visible()
    expect(page.locator("#threshold")).to_have_value("1")


def test_an_invalid_threshold_is_reported(page: Page) -> None:
    page.goto("/#/tickets/duplicates?threshold=7")
    expect(page.locator(".notice.error")).to_contain_text("7")


def test_the_info_view_shows_the_info_of_the_api(page: Page, server: Server) -> None:
    info = server.get("/v1/collections/tickets").json()
    page.get_by_role("link", name="Info").click()
    expect(page.locator(".numbers dd").first).to_have_text(str(TICKETS + 1))
    expect(page.locator(".info")).to_contain_text(info["model"]["method"])
    expect(page.locator(".balances span")).to_have_count(BITS)


def test_another_collection_can_be_selected(page: Page) -> None:
    page.fill("#query", "printer")
    page.wait_for_selector(".hit")
    page.get_by_label("Collection").select_option("notes")
    expect(page.locator(".summary")).to_contain_text(f"of {NOTES}")
    expect(page.locator("#query")).to_have_value("printer")
    expect(page.locator('.hit[data-id^="note-"]').first).to_be_visible()
    expect(page.locator("h3.as-text").first).to_be_visible()  # notes have no titles
    page.go_back()
    expect(page.locator(".summary")).to_contain_text(f"of {TICKETS + 1}")


def test_the_selected_theme_is_stored(page: Page) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.locator("#theme").click()
    page.locator("#theme").click()
    dark = page.evaluate(colour)
    assert dark != light
    page.reload()
    assert page.evaluate(colour) == dark
    expect(page.locator("#theme")).to_have_attribute("aria-label", "Theme: dark")
