"""push and pull, against a server that answers the few requests of huggingface_hub that they make."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import snuh
from snuh.encoder import Encoder, Layer
from snuh.errors import InputError, ModelError, SnuhError
from snuh.features import TfidfFeatures
from tests.worlds import planted_topics

huggingface_hub = pytest.importorskip("huggingface_hub", reason="without the extra hub")

TEXTS = [document["text"] for document in planted_topics(docs=60)]


class Hub(ThreadingHTTPServer):
    """Repositories as dictionaries of files, without history: the commit is a hash of the files."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.tokens: set[str | None] = set()

    def commit(self, name: str) -> str:
        return hashlib.sha1(repr(sorted(self.repositories[name].items())).encode()).hexdigest()


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.tokens.add(self.headers.get("Authorization"))
        path = self.path.split("?")[0]
        if path == "/api/validate-yaml":
            self.answer(json.dumps({"errors": [], "warnings": []}).encode())
        elif path == "/api/repos/create":
            wanted = json.loads(body)
            name = f"{wanted['organization']}/{wanted['name']}"
            self.server.repositories.setdefault(name, {})
            self.server.private[name] = wanted.get("visibility") == "private" or wanted.get("private", False)
            self.answer(json.dumps({"url": f"https://huggingface.co/{name}", "id": name}).encode())
        elif "/preupload/" in path:
            files = [{"path": f["path"], "uploadMode": "regular"} for f in json.loads(body)["files"]]
            self.answer(json.dumps({"files": [f | {"shouldIgnore": False} for f in files]}).encode())
        else:
            name = path.removeprefix("/api/models/").split("/commit/")[0]
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    content = base64.b64decode(line["value"]["content"])
                    self.server.repositories[name][line["value"]["path"]] = content
            commit = self.server.commit(name)
            url = f"https://huggingface.co/{name}/commit/{commit}"
            self.answer(json.dumps({"commitUrl": url, "commitOid": commit, "success": True}).encode())

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path.startswith("/api/models/"):
            name = "/".join(path.split("/")[3:5])
            if name not in self.server.repositories:
                self.answer(b"{}", status=404, headers={"X-Error-Code": "RepoNotFound"})
                return
            files = self.server.repositories[name]
            if "/tree/" in path:
                tree = [
                    {
                        "type": "file",
                        "path": file,
                        "size": len(content),
                        "oid": hashlib.sha1(content).hexdigest(),
                    }
                    for file, content in files.items()
                ]
                self.answer(json.dumps(tree).encode())
                return
            siblings = [{"rfilename": file} for file in files]
            about = {"id": name, "sha": self.server.commit(name), "siblings": siblings, "tags": []}
            self.answer(json.dumps(about).encode())
            return
        name, file = path[1:].partition("/resolve/")[::2]
        content = self.server.repositories[name][file.partition("/")[2]]
        etag = f'"{hashlib.sha1(content).hexdigest()}"'
        self.answer(content, headers={"ETag": etag, "X-Repo-Commit": self.server.commit(name)})

    def do_HEAD(self) -> None:
        self.do_GET()

    def answer(self, content: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def api(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    return huggingface_hub.HfApi(endpoint=f"http://127.0.0.1:{hub.server_port}", token="hf_secret")


@pytest.fixture(scope="module")
def model() -> snuh.Model:
    features = TfidfFeatures().fit(TEXTS)
    weights = np.random.default_rng(0).normal(size=(len(features.terms), 16)).astype(np.float32)
    encoder = Encoder((Layer(weights, np.zeros(16)),), threshold=np.zeros(16))
    return snuh.Model(encoder, features, method="lsh", training={"documents": len(TEXTS)})


def test_a_model_comes_back_from_the_hub(model: snuh.Model, hub: Hub, api: Any, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    url = snuh.push(tmp_path / "model", "me/tickets", private=True, api=api)
    assert url == f"https://huggingface.co/me/tickets/commit/{hub.commit('me/tickets')}"
    assert hub.private == {"me/tickets": True}
    assert hub.tokens == {"Bearer hf_secret"}
    card = hub.repositories["me/tickets"]["README.md"].decode()
    assert 'snuh.pull("me/tickets")' in card and "codes of 16 bits" in card and "60 documents" in card

    pulled = snuh.pull("me/tickets", api=api)
    assert np.array_equal(pulled.encode(TEXTS), model.encode(TEXTS))
    pulled.save(tmp_path / "model")  # a folder like any other: the card is not in it


def test_files_that_were_changed_on_the_hub_are_refused(model: snuh.Model, hub: Hub, api: Any) -> None:
    snuh.push(model, "me/tickets", api=api)
    hub.repositories["me/tickets"]["vocabulary.json"] += b" "
    with pytest.raises(ModelError, match=r"vocabulary.json should have \d+ bytes"):
        snuh.pull("me/tickets", api=api)


def test_a_repository_without_a_model_is_refused(hub: Hub, api: Any) -> None:
    hub.repositories["me/bert"] = {"config.json": b"{}"}
    with pytest.raises(ModelError):
        snuh.pull("me/bert", api=api)


def test_errors_of_the_hub_are_one_line(model: snuh.Model, hub: Hub, api: Any) -> None:
    with pytest.raises(InputError, match=r'no repository "me/nothing": check its name; .* "hf auth login"'):
        snuh.pull("me/nothing", api=api)
    with pytest.raises(InputError, match='expected a repository such as "name/model", got "a b"'):
        snuh.push(model, "a b", api=api)
    nowhere = huggingface_hub.HfApi(endpoint="http://127.0.0.1:9")
    with pytest.raises(SnuhError, match=r'the hub failed on "me/tickets": [^\n]+$'):
        snuh.pull("me/tickets", api=nowhere)
