from __future__ import annotations

import pytest

from snuh.collection.milvus.connection import check_version, parse_url
from snuh.errors import CollectionError, InputError


@pytest.mark.parametrize(
    ("address", "uri", "token", "database", "name"),
    [
        ("milvus://host/tickets", "http://host:19530", "", "", "tickets"),
        ("milvus://me:pa%40ss@host:1/db/t_1", "http://host:1", "me:pa@ss", "db", "t_1"),
        ("milvus://:key@host:443/t?tls=true", "https://host:443", "key", "", "t"),
        ("milvus://[::1]:7/t", "http://[::1]:7", "", "", "t"),
    ],
)
def test_an_address_is_read(address: str, uri: str, token: str, database: str, name: str) -> None:
    url = parse_url(address)
    assert (url.uri, url.token, url.database, url.name) == (uri, token, database, name)


@pytest.mark.parametrize(
    "address",
    [
        "milvus://",
        "milvus://host",
        "milvus://host/",
        "milvus://host:port/t",
        "milvus://host/a/b/c",
        "milvus://host/t?tls=maybe",
        "milvus://host/t?other=1",
        "milvus://host/1t",
        "milvus://host/a__b",
        "milvus://host/a-b",
        f"milvus://host/{'a' * 101}",
    ],
)
def test_what_is_no_address_is_refused_in_one_line(address: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_url(address)
    assert "\n" not in str(caught.value)


def test_the_password_comes_from_the_environment_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILVUS_TOKEN", "me:hidden")
    assert parse_url("milvus://host/t").token == "me:hidden"
    for address in ("milvus://host/t", "milvus://me:hidden@host/t"):
        assert "hidden" not in repr(parse_url(address)) and "hidden" not in parse_url(address).shown
    for address in ("milvus://me:hidden@host/a/b/c", "milvus://host/t?tls=true?token=hidden"):
        with pytest.raises(InputError) as caught:
            parse_url(address)
        assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("sign", ["@", "/", "?", "#", ":/"])
def test_a_password_that_is_cut_short_is_not_told(sign: str) -> None:
    for start in ("hid", "12"):
        with pytest.raises(InputError) as caught:
            parse_url(f"milvus://me:{start}{sign}den@host/t")
        assert start not in str(caught.value) and "den" not in str(caught.value)


def test_an_old_server_is_refused() -> None:
    for version in ("v2.3.5-lite", "2.6.1", "v3.0"):
        check_version(version, name="x")
    with pytest.raises(CollectionError, match=r"expected Milvus 2\.3 or newer, got v2\.2\.16: update"):
        check_version("v2.2.16", name="x")
