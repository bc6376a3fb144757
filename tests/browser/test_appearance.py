"""Every view in both themes and three widths: screenshots, overflow and accessibility (axe)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.worlds import UNKNOWN
from tests.server.serving import Server

VIEWS = {  # route, and an element that is present once the view is complete
    "start": ("search", ".suggestions"),
    "search": ("search?q=printer+paper+jam", ".hit"),
    "similar": ("search?like=ticket-4&has.labels=%22network%22", ".hit"),
    "document": ("search?q=printer+paper+jam&open=ticket-0", ".whole-text"),
    "why": ("search?q=printer+paper+jam&open=ticket-0&why=1", ".bit-grid"),
    "map": ("map", "canvas"),
    "map-search": ("map?q=printer+paper+jam", ".map-hits"),
    "bits": ("bits", ".bit-row"),
    "duplicates": ("duplicates", ".cluster"),
    "info": ("info", ".balances"),
    "unknown": (f"search?q={UNKNOWN}", ".suggestions"),
    "filter": ("search?q=printer&where=year+%3E%3E+2020", ".caret"),
    "none": ("search?q=printer&where=year+%3E+3000", ".notice"),
}
pytestmark = pytest.mark.slow

SIZES = {360: 740, 900: 900, 1400: 900}


RUNNING = {"state": "running", "seconds": 12.4, "done": 0.4}
NO_TOKEN = {"error": 'a token is required: send "Authorization: Bearer TOKEN"', "kind": "token"}
TRANSIENT = {  # route, the response of the server, and an element of the resulting state
    "running": ("tickets/map", lambda route: route.fulfill(status=202, json=RUNNING), ".running"),
    "token": ("tickets", lambda route: route.fulfill(status=401, json=NO_TOKEN), "#token-field"),
    "offline": ("tickets", lambda route: route.abort("connectionrefused"), ".notice[data-kind=offline]"),
    "nowhere": ("nowhere", lambda route: route.continue_(), ".notice"),
}


def check_appearance(page: Page, name: str, folder: Path) -> None:
    """Take a screenshot at each width, check that nothing overflows, and run axe at the last."""
    for width, height in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        page.screenshot(path=folder / f"{name}-{width}.png")
        too_wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(too_wide) <= 0, f"{name} is too wide at {width}"
    check_with_axe(page, name)


def check_with_axe(page: Page, name: str) -> None:
    violations = Axe().run(page).response["violations"]
    summary = [
        (violation["id"], [node["html"][:200] for node in violation["nodes"]]) for violation in violations
    ]
    assert summary == [], name


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_fits_and_passes_axe(
    theme: str, new_page: Callable[..., Page], server: Server, screenshots: Path
) -> None:
    page = new_page(base_url=server.url, theme=theme)
    for name, (route, complete) in VIEWS.items():
        page.goto("about:blank")
        page.goto(f"/#/tickets/{route}")
        page.wait_for_selector(complete, timeout=180_000)
        page.wait_for_load_state("networkidle")
        if theme == "light":
            check_appearance(page, f"{name}-{theme}", screenshots)
        else:  # the same layout in other colours
            check_with_axe(page, f"{name}-{theme}")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_transient_states_fit_and_pass_axe(
    theme: str, new_page: Callable[..., Page], server: Server, screenshots: Path
) -> None:
    page = new_page(base_url=server.url, theme=theme)
    for name, (route, respond, complete) in TRANSIENT.items():
        page.goto("about:blank")
        pattern = "**/map" if name == "running" else "**/v1/**"
        page.route(pattern, respond)
        page.goto(f"/#/{route}")
        page.wait_for_selector(complete)
        check_appearance(page, f"{name}-{theme}", screenshots)
        page.unroute(pattern)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_expanded_filters_on_a_phone_fit_and_pass_axe(
    theme: str, new_page: Callable[..., Page], server: Server, screenshots: Path
) -> None:
    page = new_page(base_url=server.url, theme=theme, width=360, height=740)
    page.goto("/#/tickets/search?q=printer+paper+jam&has.labels=%22printer%22")
    page.wait_for_selector(".hit")
    page.get_by_role("button", name="Filters").click()
    page.wait_for_selector(".filters.unfolded .choice")
    page.screenshot(path=screenshots / f"phone-filters-{theme}-360.png")
    check_with_axe(page, "filters on a phone")
