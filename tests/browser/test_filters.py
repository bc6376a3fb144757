from __future__ import annotations

from collections import Counter

from playwright.sync_api import Locator, Page, expect

from tests.browser.worlds import tickets

LABELS = Counter(ticket["labels"][0] for ticket in tickets())
YEARS = {ticket["id"]: ticket["year"] for ticket in tickets()}


def shown(page: Page) -> set[str]:
    """Return the ids of the hits of the latest search."""
    expect(page.locator(".results")).not_to_have_attribute("aria-busy", "true")
    return {str(row.get_attribute("data-id")) for row in page.locator(".hit").all()}


def checkbox(page: Page, label: str) -> Locator:
    """Return the checkbox of a label."""
    return page.get_by_label(f"{label} {LABELS[label]}")


def test_each_facet_has_a_control(page: Page) -> None:
    page.wait_for_selector(".choice")
    legends = page.locator(".filters legend").all_inner_texts()
    assert {"labels", "year", "desk.city", "desk.open"} <= set(legends)
    assert "title" not in legends  # all values are distinct
    printers = page.locator(".choice", has_text="printer").first
    expect(printers.locator("small")).to_have_text(str(LABELS["printer"]))


def test_filters_narrow_the_hits_and_are_part_of_the_url(page: Page) -> None:
    page.fill("#query", "router password printer")
    page.wait_for_selector(".hit")
    checkbox(page, "account").check()
    checkbox(page, "network").check()
    expect(page.locator(".hit .label", has_text="printer")).to_have_count(0)
    from_year = page.locator(".range", has_text="year").get_by_label("From")
    from_year.fill("2023")
    page.wait_for_url("**from.year=2023**")
    page.wait_for_function("document.querySelectorAll('.hit').length > 0")
    expect(page.locator(".hit .tag", has_text="year 201")).to_have_count(0)
    assert {YEARS[doc_id] for doc_id in shown(page)} == {2023, 2024}
    page.reload()
    page.wait_for_selector(".hit")
    assert {YEARS[doc_id] for doc_id in shown(page)} == {2023, 2024}
    expect(checkbox(page, "account")).to_be_checked()
    page.get_by_text("Clear all").click()
    expect(page.locator(".hit .label", has_text="printer").first).to_be_visible()
    page.go_back()
    expect(checkbox(page, "account")).to_be_checked()


def test_booleans_and_nested_fields_can_be_filtered(page: Page) -> None:
    page.fill("#query", "router")
    page.locator("fieldset", has_text="desk.open").get_by_label("true").check()
    page.locator("fieldset", has_text="desk.city").get_by_label("Zürich").check()
    page.wait_for_url("**Z%C3%BCrich**")
    expect(page.locator(".hit .tag", has_text="desk.city Bern")).to_have_count(0)
    assert {int(doc_id.split("-")[1]) % 6 for doc_id in shown(page)} == {4}


def test_a_filter_error_is_shown_at_its_position(page: Page) -> None:
    page.fill("#query", "router")
    page.fill("#where", "year >> 2020")
    expect(page.locator(".caret")).to_have_text("year >> 2020\n      ^")
    expect(page.locator("#where-error")).to_contain_text("Character 7: expected a value")
    expect(page.locator("#where")).to_have_attribute("aria-invalid", "true")
    page.get_by_text("Edit the filter").click()
    assert page.evaluate("document.activeElement.selectionStart") == 6
    page.fill("#where", "year > 2022 and desk.open = true")
    page.wait_for_selector(".hit")
    assert {YEARS[doc_id] for doc_id in shown(page)} == {2023}


def test_a_filter_error_is_shown_at_its_position_among_other_filters(page: Page) -> None:
    page.fill("#query", "router")
    page.wait_for_selector(".hit")
    checkbox(page, "network").check()
    page.fill("#where", "year >> 2020")
    expect(page.locator(".caret")).to_have_text("year >> 2020\n      ^")


def test_filters_without_matches_are_reported(page: Page) -> None:
    page.fill("#query", "router")
    page.fill("#where", "year > 3000")
    expect(page.locator(".notice h2")).to_have_text("No document matches these filters")
    page.get_by_text("Clear all filters").click()
    page.wait_for_selector(".hit")
