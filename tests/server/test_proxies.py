"""Forwarding headers are read from trusted reverse proxies only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from snuh.errors import InputError
from snuh.server.middleware import Proxies, Sender
from tests.cli.running import run
from tests.collection.worlds import temporary_folder
from tests.server.conftest import fill
from tests.server.serving import Server, serving

SEARCH = "/v1/collections/c/search"
FORWARDED = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Host": "search.example.org"}


@pytest.fixture(scope="module")
def proxied() -> Iterator[Server]:
    """A server that trusts a reverse proxy on the same machine."""
    root = temporary_folder()
    with serving(fill(root / "c"), options=("--proxy", "127.0.0.1", "--rate", 0.001)) as server:
        yield server
    shutil.rmtree(root)


def test_behind_a_proxy_the_page_may_use_the_api(proxied: Server) -> None:
    for headers, expected in (
        ({"Origin": "https://search.example.org", **FORWARDED}, 200),
        ({"Origin": "https://search.example.org", "Host": "search.example.org"}, 200),
        ({"Origin": "https://evil.example", **FORWARDED}, 403),
    ):
        response = proxied.post(SEARCH, {"text": "ship"}, headers=headers)
        assert response.status_code == expected, response.text


def test_each_client_address_has_its_own_rate_limit(proxied: Server) -> None:
    for number in range(5):
        headers = {"X-Forwarded-For": f"198.51.100.{number}"}
        assert proxied.get("/health", headers=headers).status_code == 200
        limited = proxied.get("/health", headers=headers)
        assert (limited.status_code, limited.json()["kind"]) == (429, "rate")
        assert 1 <= int(limited.headers["retry-after"]) <= 1_000
        assert proxied.get("/", headers=headers).status_code == 200  # the page's own files do not count


def test_without_the_option_no_proxy_is_trusted(shared: Server) -> None:
    headers = {"Origin": "https://search.example.org", **FORWARDED}
    response = shared.post(SEARCH, {"text": "ship"}, headers=headers)
    assert (response.status_code, response.json()["kind"]) == (403, "forbidden")
    response = shared.get("/health", headers={"Host": "search.example.org", **FORWARDED})
    assert (response.status_code, response.json()["kind"]) == (421, "host")


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("10.0.0.1", b"203.0.113.7", "203.0.113.7"),
        ("10.0.0.1", b"1.2.3.4, 203.0.113.7", "203.0.113.7"),  # the first was sent by the client
        ("10.0.0.1", b"203.0.113.7, 10.0.0.2", "203.0.113.7"),
        ("10.0.0.1", b"unknown, nonsense", "nonsense"),
        ("10.0.0.1", b"", "10.0.0.1"),
        ("203.0.113.9", b"1.2.3.4", "203.0.113.9"),
    ],
)
def test_the_address_is_the_last_one_seen_by_a_trusted_proxy(
    peer: str, forwarded: bytes, address: str
) -> None:
    headers = {b"host": b"a.org", b"x-forwarded-for": forwarded, b"x-forwarded-host": b"b.org"}
    is_trusted = peer == "10.0.0.1"
    sender = Proxies(["10.0.0.0/8", "::1"]).sender_of(peer, headers)
    assert sender == Sender(address, "b.org" if is_trusted else "a.org", is_proxied=is_trusted)


def test_an_invalid_proxy_address_is_rejected() -> None:
    with pytest.raises(InputError, match='got "nginx"'):
        Proxies(["nginx"])
    ran = run("serve", "absent", "--proxy", "nginx")
    assert ran.code == 2 and "--proxy expects an address" in ran.stderr and len(ran.complaints) == 1
