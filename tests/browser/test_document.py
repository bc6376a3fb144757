from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.worlds import BITS, SCRIPT, scripted
from tests.server.serving import Server

QUERY = "printer paper jam"


def test_the_explanation_shows_every_bit_and_the_words(page: Page, server: Server) -> None:
    page.fill("#query", QUERY)
    row = page.locator(".hit").nth(3)
    hit = str(row.get_attribute("data-id"))
    row.get_by_text("Why this hit").click()
    page.wait_for_selector(".bit-grid")
    explanation = server.post("/v1/collections/tickets/explain", {"text": QUERY, "id": hit}).json()
    expect(page.locator(".bit-grid .bit")).to_have_count(BITS)
    expect(page.locator(".bit-grid .differs")).to_have_count(explanation["distance"])
    ones = "".join(str(int(bit["hit"])) for bit in explanation["bits"])
    assert "".join(page.locator(".bit-grid .bit").all_inner_texts()) == ones
    words = page.locator(".words").first.locator("th[scope=row]").all_inner_texts()
    assert set(words) == {"printer", "paper", "jam"}
    page.locator(".bit-grid .bit").nth(5).hover()
    expect(page.locator(".bit-description")).to_contain_text("Bit 5: ")
    page.get_by_text("More on this bit").click()
    expect(page.locator("#bit-5")).to_have_class("bit-row selected")


def test_hits_of_similar_documents_are_explained(page: Page) -> None:
    page.goto("/#/tickets/search?like=ticket-0")
    page.get_by_text("Why this hit").first.click()
    expect(page.get_by_text("The document you started from")).to_be_visible()
    expect(page.locator(".bit-grid .bit")).to_have_count(BITS)


def test_a_document_is_shown_with_its_text_and_metadata(page: Page, server: Server) -> None:
    page.goto("/#/tickets/search?open=ticket-7")
    document = server.get("/v1/collections/tickets/documents?id=ticket-7").json()["documents"][0]
    expect(page.locator("#drawer-title")).to_have_text(document["metadata"]["title"])
    expect(page.locator(".whole-text")).to_have_text(document["text"])
    expect(page.locator(".pairs")).to_contain_text("desk.city")
    page.mouse.click(20, 400)  # outside the drawer
    expect(page.locator("#drawer")).not_to_be_visible()
    expect(page).not_to_have_url(re.compile("open="))  # updated asynchronously


def test_words_of_the_query_are_marked_in_the_document(page: Page) -> None:
    page.goto("/#/tickets/search?q=printers+tray&open=ticket-0")
    marks = page.locator(".whole-text mark")
    expect(marks.first).to_be_visible()
    assert {mark.lower() for mark in marks.all_inner_texts()} <= {"printer", "tray"}


def test_a_missing_document_is_reported(page: Page) -> None:
    page.goto("/#/tickets/search?open=nobody")
    expect(page.locator("#drawer .notice")).to_contain_text("nobody")


def test_scripts_in_documents_are_shown_as_text(page: Page) -> None:
    evil = scripted()
    page.fill("#query", "toner cartridge ink")
    expect(page.locator(".hit-title", has_text=SCRIPT)).to_be_visible()
    expect(page.locator(".hit .label", has_text=SCRIPT)).to_be_visible()
    expect(page.locator(".choice", has_text=SCRIPT).first).to_be_attached()
    page.locator(".hit-title", has_text=SCRIPT).click()
    expect(page.locator(".whole-text")).to_have_text(evil["text"])
    page.get_by_role("tab", name="Why this hit").click()
    expect(page.locator(".marked-text").last).to_contain_text("onerror")
    page.keyboard.press("Escape")
    page.locator(".hit", has_text=SCRIPT).get_by_text("More like this").click()
    expect(page.locator(".similar-to b")).to_contain_text("<img")
    for view in ("map", "duplicates", "info", "bits"):
        page.goto(f"/#/tickets/{view}?q=toner")
        page.wait_for_load_state("networkidle")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[src=x], main script").count() == 0
