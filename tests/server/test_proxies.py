"""Who is believed about where a request comes from."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from snuh.errors import InputError
from snuh.server.middleware import Proxies, Sender
from tests.cli.running import run
from tests.collection.worlds import fast_place
from tests.server.conftest import fill
from tests.server.serving import Server, serving

SEARCH = "/v1/collections/c/search"
FORWARDED = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Host": "search.example.org"}


@pytest.fixture(scope="module")
def behind() -> Iterator[Server]:
    """A server that believes one on the same machine."""
    place = fast_place()
    with serving(fill(place / "c"), options=("--proxy", "127.0.0.1", "--rate", 0.001)) as server:
        yield server
    shutil.rmtree(place)


def test_behind_a_server_its_own_page_may_use_it(behind: Server) -> None:
    for headers, expected in (
        ({"Origin": "https://search.example.org", **FORWARDED}, 200),
        ({"Origin": "https://search.example.org", "Host": "search.example.org"}, 200),
        ({"Origin": "https://evil.example", **FORWARDED}, 403),
    ):
        answer = behind.post(SEARCH, {"text": "ship"}, headers=headers)
        assert answer.status_code == expected, answer.text


def test_each_address_has_a_rate_of_its_own_and_is_told_when_to_come_again(behind: Server) -> None:
    for number in range(5):
        headers = {"X-Forwarded-For": f"198.51.100.{number}"}
        assert behind.get("/health", headers=headers).status_code == 200
        refused = behind.get("/health", headers=headers)
        assert (refused.status_code, refused.json()["kind"]) == (429, "rate")
        assert 1 <= int(refused.headers["retry-after"]) <= 1_000
        assert behind.get("/", headers=headers).status_code == 200  # the page's own files do not count


def test_without_the_option_nobody_is_believed(shared: Server) -> None:
    headers = {"Origin": "https://search.example.org", **FORWARDED}
    answer = shared.post(SEARCH, {"text": "ship"}, headers=headers)
    assert (answer.status_code, answer.json()["kind"]) == (403, "forbidden")
    answer = shared.get("/health", headers={"Host": "search.example.org", **FORWARDED})
    assert (answer.status_code, answer.json()["kind"]) == (421, "host")


@pytest.mark.parametrize(
    ("peer", "passed", "address"),
    [
        ("10.0.0.1", b"203.0.113.7", "203.0.113.7"),
        ("10.0.0.1", b"1.2.3.4, 203.0.113.7", "203.0.113.7"),  # the first is what he says of himself
        ("10.0.0.1", b"203.0.113.7, 10.0.0.2", "203.0.113.7"),
        ("10.0.0.1", b"unknown, nonsense", "nonsense"),
        ("10.0.0.1", b"", "10.0.0.1"),
        ("203.0.113.9", b"1.2.3.4", "203.0.113.9"),
    ],
)
def test_the_address_is_the_last_that_a_known_server_saw(peer: str, passed: bytes, address: str) -> None:
    headers = {b"host": b"a.org", b"x-forwarded-for": passed, b"x-forwarded-host": b"b.org"}
    is_known = peer == "10.0.0.1"
    sender = Proxies(["10.0.0.0/8", "::1"]).sender_of(peer, headers)
    assert sender == Sender(address, "b.org" if is_known else "a.org", is_passed_on=is_known)


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(InputError, match='got "nginx"'):
        Proxies(["nginx"])
    ran = run("serve", "absent", "--proxy", "nginx")
    assert ran.code == 2 and "--proxy expects an address" in ran.stderr and len(ran.complaints) == 1
