"""Every view in both themes and three widths: kept as pictures, and checked by axe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.worlds import UNKNOWN
from tests.server.serving import Server

VIEWS = {  # the address, and what is there when it is complete
    "start": ("search", ".suggestions"),
    "search": ("search?q=printer+paper+jam", ".hit"),
    "similar": ("search?like=ticket-4&has.labels=%22network%22", ".hit"),
    "document": ("search?q=printer+paper+jam&open=ticket-0", ".whole-text"),
    "why": ("search?q=printer+paper+jam&open=ticket-0&why=1", ".bit-grid"),
    "map": ("map", "canvas"),
    "map-search": ("map?q=printer+paper+jam", ".map-hits"),
    "bits": ("bits", ".bit-row"),
    "duplicates": ("duplicates", ".cluster"),
    "facts": ("facts", ".balances"),
    "unknown": (f"search?q={UNKNOWN}", ".suggestions"),
    "filter": ("search?q=printer&where=year+%3E%3E+2020", ".caret"),
    "none": ("search?q=printer&where=year+%3E+3000", ".notice"),
}
pytestmark = pytest.mark.slow

SIZES = {360: 740, 900: 900, 1400: 900}


MAKING = {"state": "making", "seconds": 12.4}
NO_TOKEN = {"error": 'a token is needed: send "Authorization: Bearer TOKEN"', "kind": "token"}
PASSING = {  # what does not last: the address, what the server does meanwhile, and what is there then
    "making": ("tickets/map", lambda route: route.fulfill(status=202, json=MAKING), ".making"),
    "token": ("tickets", lambda route: route.fulfill(status=401, json=NO_TOKEN), "#token-field"),
    "gone": ("tickets", lambda route: route.abort("connectionrefused"), ".notice[data-kind=gone]"),
    "nowhere": ("nowhere", lambda route: route.continue_(), ".notice"),
}


def check_looks(page: Page, name: str, folder: Path) -> None:
    """Take a picture at each width, where nothing may stick out, and let axe look at the last."""
    for width, height in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        page.screenshot(path=folder / f"{name}-{width}.png")
        too_wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(too_wide) <= 0, f"{name} is too wide at {width}"
    check_with_axe(page, name)


def check_with_axe(page: Page, name: str) -> None:
    violations = Axe().run(page).response["violations"]
    told = [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in violations]
    assert told == [], name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_fits_and_passes_axe(
    theme: str, new_page: Callable[..., Page], server: Server, screenshots: Path
) -> None:
    page = new_page(base_url=server.url, theme=theme)
    for name, (address, complete) in VIEWS.items():
        page.goto("about:blank")
        page.goto(f"/#/tickets/{address}")
        page.wait_for_selector(complete, timeout=180_000)
        page.wait_for_load_state("networkidle")
        check_looks(page, f"{name}-{theme}", screenshots)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_states_that_pass_fit_and_pass_axe(
    theme: str, new_page: Callable[..., Page], server: Server, screenshots: Path
) -> None:
    page = new_page(base_url=server.url, theme=theme)
    for name, (address, answer, complete) in PASSING.items():
        page.goto("about:blank")
        asked = "**/map" if name == "making" else "**/v1/**"
        page.route(asked, answer)
        page.goto(f"/#/{address}")
        page.wait_for_selector(complete)
        check_looks(page, f"{name}-{theme}", screenshots)
        page.unroute(asked)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_filters_unfolded_on_a_phone_fit_and_pass_axe(
    theme: str, new_page: Callable[..., Page], server: Server, screenshots: Path
) -> None:
    page = new_page(base_url=server.url, theme=theme, width=360, height=740)
    page.goto("/#/tickets/search?q=printer+paper+jam&has.labels=%22printer%22")
    page.wait_for_selector(".hit")
    page.get_by_role("button", name="Filters").click()
    page.wait_for_selector(".filters.unfolded .choice")
    page.screenshot(path=screenshots / f"phone-filters-{theme}-360.png")
    check_with_axe(page, "filters on a phone")
