"""What HTTP clients expect of any server: HEAD, compression, ETags, request ids, refused encodings."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import httpx
import pytest

from tests.cli.running import run
from tests.server.serving import JSON, ROOT, Server, serving

SEARCH = "/v1/collections/c/search"


@pytest.mark.parametrize(
    "path", ["/", "/docs", "/page/app.js", "/health", "/openapi.json", "/v1/collections/c/documents/d1"]
)
def test_head_has_the_headers_of_get_and_no_body(shared: Server, path: str) -> None:
    plain = {"Accept-Encoding": "identity"}
    got, head = shared.get(path, headers=plain), httpx.head(shared.url + path, headers=plain)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.content))
    assert head.headers["content-type"] == got.headers["content-type"]


def test_responses_are_compressed_for_clients_that_accept_it(shared: Server) -> None:
    body = {"text": "ship", "k": 40}
    small = shared.post(SEARCH, body, headers={"Accept-Encoding": "gzip"})
    whole = shared.post(SEARCH, body, headers={"Accept-Encoding": "identity"})
    assert small.headers["content-encoding"] == "gzip" and "content-encoding" not in whole.headers
    assert int(small.headers["content-length"]) < len(whole.content) / 2
    assert small.json()["hits"] == whole.json()["hits"]
    assert "content-encoding" not in shared.get("/health", headers={"Accept-Encoding": "gzip"}).headers


def test_files_of_the_page_are_sent_again_only_if_they_have_changed(shared: Server) -> None:
    for path in ("/", "/docs", "/page/app.js", "/page/icon.svg"):
        first = shared.get(path)
        assert first.status_code == 200 and first.headers["cache-control"] == "no-cache"
        second = shared.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (second.status_code, second.content) == (304, b"")
    assert shared.get("/v1/collections").headers["cache-control"] == "no-store"


def test_the_documentation_of_the_api_is_served_locally(shared: Server) -> None:
    text = shared.get("/docs").text
    assert "//" not in re.sub(r"<!--.*?-->", "", text).replace("<!doctype", "")
    for path in re.findall(r'(?:src|href)="([^"]+)"', text):
        assert shared.get(path).status_code == 200
    assert (ROOT / "src/snuh/server/page/vendor/swagger-ui.LICENSE").exists()


def test_every_response_has_the_id_of_its_request(shared: Server) -> None:
    assert shared.get("/health", headers={"X-Request-ID": "trace-7"}).headers["x-request-id"] == "trace-7"
    new = [shared.get("/nothing", headers={"X-Request-ID": given}) for given in ("", "a b", "x" * 200)]
    ids = [response.headers["x-request-id"] for response in new]
    assert len(set(ids)) == 3 and all(re.fullmatch("[0-9a-f]{16}", one) for one in ids)


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Encoding": "gzip"},
        {"Content-Encoding": "br"},
        {"Content-Type": "application/json; charset=latin-1"},
    ],
    ids=str,
)
def test_unsupported_encodings_are_rejected(shared: Server, headers: dict[str, str]) -> None:
    body = json.dumps({"text": "ship"}).encode()
    content = gzip.compress(body) if "Content-Encoding" in headers else body
    response = shared.post(SEARCH, content, headers={**JSON, **headers})
    assert (response.status_code, response.json()["kind"]) == (415, "type")
    fine = {**JSON, "Content-Encoding": "identity", "Content-Type": "application/json; charset=UTF-8"}
    assert shared.post(SEARCH, body, headers=fine).status_code == 200


def test_the_access_log_has_a_line_of_json_for_each_request(folder: Path) -> None:
    with serving(folder, options=("--access-log",)) as server:
        server.get("/health", headers={"X-Request-ID": "trace-7"})
        server.post(SEARCH, {"text": "ship", "k": 0})
        assert server.process.stderr is not None
        lines = [json.loads(server.process.stderr.readline()) for _ in range(2)]
    assert lines[0]["request_id"] == "trace-7" and lines[0]["client"] == "127.0.0.1"
    assert [(line["method"], line["path"], line["status"]) for line in lines] == [
        ("GET", "/health", 200),
        ("POST", SEARCH, 400),
    ]
    assert lines[1]["bytes"] > 0 and lines[1]["ms"] > 0 and lines[1]["level"] == "info"


def test_settings_come_from_a_file_variables_and_options(folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "snuh.toml"
    config.write_text(
        f'[serve]\ncollections = ["{folder}"]\nread-only = true\naccess-log = true\nrate = 1\n', "utf-8"
    )
    with serving(options=("--config", config), SNUH_RATE="0") as server:
        new = {"documents": [{"id": "x", "text": "ship"}]}
        assert [server.post("/v1/collections/c/documents", new).status_code for _ in range(9)] == [403] * 9
    config.write_text("[serve]\nports = 1\n", "utf-8")
    ran = run("serve", folder, "--config", config)
    assert ran.code == 2 and 'unknown setting "ports" (did you mean "port"?)' in ran.stderr
    with serving(folder, options=("--config", ROOT / "deploy/snuh.toml")) as server:
        assert server.get("/health").status_code == 200
