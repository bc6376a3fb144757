"""Tokens, host and origin checks, rate limits and the options of `snuh serve`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from snuh.errors import InputError
from snuh.server.middleware import RateLimiter
from snuh.server.routes.collections import compute_facets
from snuh.server.settings import Limits, Settings, Tokens, find_tokens, is_loopback, named_folders
from tests.cli.running import environment, run
from tests.collection.worlds import temporary_folder
from tests.server.conftest import fill
from tests.server.serving import Server, serving

READ, WRITE = "r" * 20, "w" * 20
SEARCH, DOCUMENTS = "/v1/collections/c/search", "/v1/collections/c/documents"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server at a public address, with a token of each kind."""
    root = temporary_folder()
    tokens = root / "tokens"
    tokens.write_text(f"# who\nread {READ}\n\nwrite {WRITE}\n", encoding="utf-8")
    options = ("--host", "0.0.0.0", "--token-file", tokens, "--cors", "https://example.org")
    with serving(fill(root / "c"), options=options) as server:
        yield server
    shutil.rmtree(root)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_requests_without_a_valid_token_are_rejected(guarded: Server) -> None:
    for headers in ({}, bearer("x" * 20), {"Authorization": "Bearer"}, {"Authorization": f"Basic {READ}"}):
        for path in ("/v1/collections", "/v1/collections/c", f"{DOCUMENTS}?id=d1", "/metrics"):
            response = guarded.get(path, headers=headers)
            assert (response.status_code, response.json()["kind"]) == (401, "token")
            assert response.headers["www-authenticate"] == "Bearer"
        assert guarded.post(SEARCH, {"text": "ship"}, headers=headers).status_code == 401
    guarded.wait_until_ready()
    for path in ("/", "/health", "/ready", "/openapi.json"):
        assert guarded.get(path).status_code == 200


def test_a_read_token_reads_and_a_write_token_also_writes(guarded: Server) -> None:
    new = {"documents": [{"id": "new", "text": "ship"}]}
    for token, expected in ((READ, 403), (WRITE, 200)):
        headers = bearer(token)
        assert guarded.post(SEARCH, {"text": "ship"}, headers=headers).status_code == 200
        assert guarded.post(DOCUMENTS, new, headers=headers).status_code == expected
        assert guarded.post(f"{DOCUMENTS}/delete", {"ids": ["new"]}, headers=headers).status_code == expected
        lines = headers | {"Content-Type": "application/x-ndjson"}
        assert guarded.post(f"{DOCUMENTS}/lines", b"", headers=lines).status_code == expected
        (line,) = guarded.get("/v1/collections", headers=headers).json()["collections"]
        assert line["writable"] == (expected == 200)
    with guarded.client(token=READ) as client, pytest.raises(InputError, match="read-only access"):
        client.delete(["d1"])


def test_other_sites_are_rejected_unless_cors_allows_them(guarded: Server) -> None:
    for origin, expected in (("https://evil.example", 403), ("null", 403), ("https://example.org", 200)):
        headers = bearer(READ) | {"Origin": origin}
        response = guarded.post(SEARCH, {"text": "ship"}, headers=headers)
        assert response.status_code == expected
        allowed = response.headers.get("access-control-allow-origin")
        assert allowed == (origin if expected == 200 else None)
    preflight = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    response = httpx.options(guarded.url + SEARCH, headers=preflight)
    assert response.headers["access-control-allow-origin"] == "https://example.org"
    preflight["Origin"] = "https://evil.example"
    assert "access-control-allow-origin" not in httpx.options(guarded.url + SEARCH, headers=preflight).headers


def test_a_local_server_rejects_other_hosts_and_origins(shared: Server) -> None:
    for host in ("evil.example", f"evil.example:{shared.port}", "127.0.0.1.evil.example", ""):
        response = shared.get("/v1/collections", headers={"Host": host})
        assert (response.status_code, response.json()["kind"]) == (421, "host")
    for host in ("localhost", f"LOCALHOST:{shared.port}", f"127.0.0.1:{shared.port}", f"[::1]:{shared.port}"):
        assert shared.get("/v1/collections", headers={"Host": host}).status_code == 200
    response = shared.get("/v1/collections", headers={"Origin": "https://evil.example"})
    assert (response.status_code, response.json()["kind"]) == (403, "forbidden")
    assert shared.get("/v1/collections", headers={"Origin": shared.url}).status_code == 200


def test_every_response_has_security_headers(shared: Server) -> None:
    for path in ("/", "/v1/collections", "/nothing", "/health"):
        headers = shared.get(path).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_a_read_only_server_rejects_writes(folder: Path) -> None:
    with serving(folder, options=("--read-only",)) as server:
        assert server.post(DOCUMENTS, {"documents": [{"id": "x", "text": "ship"}]}).status_code == 403
        assert server.post(SEARCH, {"text": "ship"}).status_code == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--host", "0.0.0.0"), "other machines can reach 0.0.0.0: set tokens"),
        (("--port", "99999"), "--port must be from 0 to 65535, got 99999"),
        (("--workers", "0"), "--workers must be from 1 to 64"),
        (("--rate", "-1"), "--rate must be at least 0"),
        (("--cors", "example.org"), "--cors expects an origin"),
        (("--token-file", "absent"), "cannot read the tokens in absent"),
        (("--host", "192.0.2.1"), "other machines can reach 192.0.2.1"),
    ],
)
def test_invalid_options_are_rejected_before_the_server_listens(
    folder: Path, options: tuple[str, ...], message: str
) -> None:
    ran = run("serve", folder, *options)
    assert ran.code == 2 and message in ran.stderr
    assert len(ran.complaints) == 1


def test_a_missing_collection_or_a_repeated_name_is_rejected(root: Path, folder: Path) -> None:
    ran = run("serve", folder, root / "nothing")
    assert ran.code == 2 and "there is no collection" in ran.stderr
    ran = run("serve", folder, folder)
    assert ran.code == 2 and "are both named 'c'" in ran.stderr


def test_a_port_in_use_is_reported(shared: Server, folder: Path) -> None:
    ran = run("serve", folder, "--port", shared.port)
    assert ran.code == 2 and f"port {shared.port}: Address already in use" in ran.stderr


def test_help_does_not_import_the_server() -> None:
    program = (
        "import sys, snuh.cli.app; print([m for m in ('fastapi', 'uvicorn', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment())
    assert done.stdout.strip() == "[]"


# Units


def test_tokens_come_from_a_file_and_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"read {READ}\n", encoding="utf-8")
    tokens = find_tokens(file, {"SNUH_WRITE_TOKEN": WRITE})
    assert [tokens.right_of(token) for token in (READ, WRITE, READ[:-1], "", "ü")] == [
        "read",
        "write",
        None,
        None,
        None,
    ]
    assert READ not in repr(tokens) and not Tokens() and tokens
    file.write_text("everything please\n", encoding="utf-8")
    with pytest.raises(InputError, match='tokens line 1: expected "read TOKEN"'):
        find_tokens(file, {})
    with pytest.raises(InputError, match="at least 16"):
        find_tokens(None, {"SNUH_READ_TOKEN": "short"})


def test_the_rate_limiter_allows_a_burst_and_then_n_requests_per_second() -> None:
    now = 0.0
    limiter = RateLimiter(10.0, clock=lambda: now)
    assert [limiter.retry_after("a") for _ in range(21)] == [0] * 20 + [1]
    assert limiter.retry_after("b") == 0
    now = 0.55
    assert [limiter.retry_after("a") for _ in range(6)] == [0] * 5 + [1]
    assert RateLimiter(0.0, clock=lambda: now).retry_after("a") == 0
    slow = RateLimiter(0.1, clock=lambda: now)
    assert [slow.retry_after("a"), slow.retry_after("a")] == [0, 10]


def test_settings_survive_serialization() -> None:
    tokens = Tokens.of(read=[READ], write=[WRITE])
    settings = Settings(
        {"c": "/c"}, "/tmp", origins=("https://x.org",), tokens=tokens, limits=Limits(rate=3.0), workers=2
    )
    assert Settings.from_text(settings.to_text()) == settings
    assert READ not in settings.to_text()


def test_loopback_addresses_are_recognized() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.3.2.1", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "example.org", "")))


def test_collections_are_named_by_their_folders(tmp_path: Path) -> None:
    assert named_folders([tmp_path / "a", tmp_path / "x" / ".." / "b"]) == {
        "a": str(tmp_path / "a"),
        "b": str(tmp_path / "b"),
    }
    with pytest.raises(InputError, match="are both named"):
        named_folders([tmp_path / "a", tmp_path / "x" / "a"])


def test_facets_list_the_fields_to_filter_by(tmp_path: Path) -> None:
    from snuh.collection import Collection
    from tests.collection.worlds import toy_model

    with Collection.create(tmp_path / "c", toy_model()) as collection:
        new = [
            {"id": f"{n}", "text": "ship", "labels": ["a"], "n": n, "on": n % 2 == 0, "in": {"my field": "x"}}
            for n in range(4)
        ]
        collection.add([*new, {"id": "m", "text": "fog", "n": "four", "tags": ["u", "v"], "gone": None}])
        facets = {facet.pop("name"): facet for facet in compute_facets(collection)["facets"]}
        assert set(facets) == {"labels", "n", "on", "`in`.`my field`", "tags"}
        assert facets["labels"] == {
            "kind": "list",
            "documents": 4,
            "distinct": 1,
            "values": [{"value": "a", "documents": 4}],
        }
        kinds = {name: facet["kind"] for name, facet in facets.items()}
        assert (kinds["n"], kinds["on"], kinds["tags"]) == ("mixed", "boolean", "list")
        for name in facets:
            collection.search("ship", where=f"{name} is not null")  # filters accept every name
