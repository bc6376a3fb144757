from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote_plus

from playwright.sync_api import Error, Page, Route, expect

from tests.browser.worlds import BITS, TICKETS
from tests.cli.running import run
from tests.server.serving import Server, serving

HITS = 20


def hits_of(page: Page, words: str) -> list[str]:
    """Type words and return the ids of the hits."""
    with page.expect_response(lambda response: response.url.endswith("/search") and response.ok):
        page.fill("#query", words)
    expect(page.locator(".results")).not_to_have_attribute("aria-busy", "true")
    return [str(row.get_attribute("data-id")) for row in page.locator(".hit").all()]


def test_hits_appear_while_typing_in_the_order_of_the_api(page: Page, server: Server) -> None:
    shown = hits_of(page, "the printer eats my paper")
    query = {"text": "the printer eats my paper", "k": HITS}
    hits = server.post("/v1/collections/tickets/search", query).json()["hits"]
    assert shown == [hit["id"] for hit in hits]
    first = page.locator(".hit").first
    expect(first.locator(".hit-title")).to_have_text(hits[0]["metadata"]["title"])
    expect(first.locator(".distance-number")).to_have_text(str(hits[0]["distance"]))
    expect(first.locator("mark.together").first).to_be_visible()
    expect(page.locator("#announcer")).to_have_text(re.compile(f"best {HITS} of {TICKETS + 1} documents"))
    expect(page.locator(".summary")).to_have_text(re.compile(r"\d ms$"))


def test_the_bar_is_full_at_no_bits_and_empty_at_half_of_them(page: Page, server: Server) -> None:
    hits_of(page, "password expired")
    page.select_option("#order", "codes")
    page.wait_for_url("**order=codes**")
    expect(page.locator(".results")).not_to_have_attribute("aria-busy", "true")
    expect(page.locator(".distance-score")).to_have_count(0)
    row = page.locator(".hit").last
    distance = int(row.locator(".distance-number").inner_text())
    fraction = "bar => bar.offsetWidth / bar.parentElement.offsetWidth"
    filled = row.locator(".bar-fill").evaluate(fraction)
    assert distance > 0
    assert abs(filled - max(0, 1 - 2 * distance / BITS)) < 0.02


def test_words_of_the_query_and_words_that_moved_the_code_are_marked_differently(page: Page) -> None:
    hits_of(page, "the printer eats my paper")
    assert "printer" in page.locator("mark.matched").all_inner_texts()[1:]  # the first is the legend
    expect(page.locator(".highlight-legend")).to_contain_text("word of your query")
    expect(page.locator(".highlight-legend")).to_contain_text("made the codes agree")
    page.select_option("#order", "codes")
    expect(page.locator("mark.matched")).to_have_count(0)
    page.select_option("#order", "words")
    expect(page.locator(".distance-words").first).to_have_text(re.compile("words? found"))


def test_the_number_of_documents_that_match_the_filters_is_exact(page: Page, server: Server) -> None:
    page.goto("/#/tickets/search?q=printer+paper&where=year+%3E+2020")
    where = {"where": "year > 2020"}
    documents = server.get("/v1/collections/tickets/count", params=where).json()["documents"]
    expect(page.locator(".summary")).to_have_text(re.compile(f"of {documents} documents that match"))


def test_suggestions_are_titles_of_documents(page: Page) -> None:
    page.wait_for_selector(".suggestions")
    queries = page.locator(".suggestions a").all_inner_texts()
    titles = page.evaluate("fetch('/v1/collections/tickets/examples').then((response) => response.json())")
    assert queries == titles["queries"] and len({*queries}) == len(queries) > 2


def test_fast_typing_sends_one_request_and_adds_one_history_entry(page: Page) -> None:
    requests: list[str] = []
    page.on(
        "request", lambda request: requests.append(request.url) if request.url.endswith("/search") else None
    )
    page.locator("#query").evaluate(  # in one call: a busy machine would pause between keys
        """(field) => {
          for (const key of "router cable") {
            field.value += key;
            field.dispatchEvent(new Event("input", { bubbles: true }));
          }
        }"""
    )
    page.wait_for_selector(".hit")
    assert len(requests) == 1  # for twelve keys
    page.go_back()
    expect(page.locator("#query")).to_have_value("")
    expect(page.locator(".start")).to_be_visible()


def test_an_older_response_never_replaces_a_newer_one(page: Page) -> None:
    delayed: list[Route] = []

    def delay(route: Route) -> None:
        if "printer" in str(route.request.post_data):
            delayed.append(route)
        else:
            route.continue_()

    page.route("**/search", delay)
    with page.expect_request("**/search"):
        page.fill("#query", "printer")
    page.fill("#query", "password")
    expect(page.locator(".hit .label").first).to_have_text("account")
    with suppress(Error):  # the page may have aborted it
        delayed[0].continue_()
    page.wait_for_timeout(300)
    expect(page.locator(".hit .label").first).to_have_text("account")


def test_a_url_restores_the_state_of_the_page(page: Page, server: Server) -> None:
    hits_of(page, "wifi & router #1")
    page.select_option("#order", "cosine")
    page.wait_for_selector(".distance-score")
    page.locator(".hit-title").nth(2).click()
    title = page.locator("#drawer-title").inner_text()
    url = page.url
    assert "wifi & router #1" in unquote_plus(url)
    other = page.context.new_page()
    other.goto(url)
    expect(other.locator("#drawer-title")).to_have_text(title)
    expect(other.locator("#query")).to_have_value("wifi & router #1")
    expect(other.locator("#order")).to_have_value("cosine")
    expect(other.locator(".hit")).to_have_count(HITS)


def test_more_like_this_searches_for_similar_documents(page: Page, server: Server) -> None:
    shown = hits_of(page, "toner ink")
    page.locator(".hit").first.get_by_text("More like this").click()
    expect(page.locator(".similar-to")).to_contain_text("Similar to ")
    expect(page.locator(f'.hit[data-id="{shown[0]}"]')).to_have_count(0)
    hits = server.post("/v1/collections/tickets/similar", {"id": shown[0], "k": HITS}).json()["hits"]
    expect(page.locator(".hit").first).to_have_attribute("data-id", hits[0]["id"])
    page.go_back()
    expect(page.locator("#query")).to_have_value("toner ink")
    expect(page.locator(".hit").first).to_have_attribute("data-id", shown[0])


def test_more_hits_are_shown_on_request(page: Page) -> None:
    hits_of(page, "vpn")
    page.get_by_text("Show more").click()
    expect(page.locator(".hit")).to_have_count(2 * HITS)


def test_enter_finds_a_document_added_by_the_command_line(
    new_page: Callable[..., Page], root: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(root / "tickets", tmp_path / "live"))
    with serving(folder) as server:
        page = new_page(base_url=server.url)
        page.goto("/#/live/search?q=toner+ink+cartridge&order=cosine")
        page.wait_for_selector(".hit")
        new = json.dumps({"id": "new", "title": "Quite new", "text": "toner ink cartridge"})
        assert run("add", folder, "-", stdin=new).code == 0
        page.press("#query", "Enter")
        expect(page.locator(".hit").first).to_have_attribute("data-id", "new")
