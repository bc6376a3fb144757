"""The command line and the server, with a collection wherever it is; imported like the contract."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from snuh.collection import Collection, is_collection
from tests.cli.running import run
from tests.collection.engines import Engine
from tests.collection.promises import Promise, needs
from tests.collection.worlds import document, documents, toy_model
from tests.server.serving import serving
from tests.worlds import write_jsonl

__all__ = ["test_every_command_works_here", "test_it_is_served"]


def told(command: str, *arguments: object) -> Any:
    ran = run(command, "--json", *arguments)
    assert ran.code == 0, ran.stderr
    if password := re.search(r":([^:@/]+)@", " ".join(map(str, arguments))):
        assert password[1] not in ran.stdout + ran.stderr
    return json.loads(ran.stdout)


def found(answer: Any) -> list[str]:
    return [hit["id"] for hit in answer["hits"]]


def lines(path: Path, *numbers: int) -> Path:
    return write_jsonl(path, [{"id": one.id, "text": one.text} for one in map(document, numbers)])


@needs(Promise.EVERY_WAY_IN)
def test_every_command_works_here(engine: Engine, tmp_path: Path) -> None:
    address, there = engine.fresh(), engine.fresh()
    model, other = tmp_path / "model", tmp_path / "other"
    toy_model().save(model)
    toy_model(2, bits=24).save(other)
    source = lines(tmp_path / "some.jsonl", *range(12))
    assert told("create", address, "--model", model, "--from", source)["inserted"] == 12
    added = told("add", address, lines(tmp_path / "more.jsonl", 3, 50))
    assert (added["inserted"], added["replaced"]) == (1, 1)
    with Collection(address) as here:
        expected = [hit.document.id for hit in here.search("ship", k=5)]
        alike = [hit.document.id for hit in here.similar("d1", k=4)]
    assert found(told("search", address, "ship", "-k", 5)) == expected
    assert found(told("similar", address, "d1", "-k", 4)) == alike
    assert told("delete", address, "d50")["deleted"] == 1
    assert told("index", address, "-k", 3)["recall"] > 0.8
    assert told("dedup", address)["documents"] == 12
    assert told("copy", address, there)["documents"] == 12
    assert told("rehash", address, "--model", other)["documents"] == 12
    assert (told("info", address)["model"]["bits"], told("info", there)["model"]["bits"]) == (24, 16)
    assert run("export", there, "--out", tmp_path / "out.jsonl").code == 0
    out = [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sorted(out) == sorted(f"d{number}" for number in range(12))
    again = run("create", address, "--model", model)
    assert again.code == 2 and "is a collection already" in again.stderr and is_collection(address)


@needs(Promise.EVERY_WAY_IN)
def test_it_is_served(engine: Engine) -> None:
    address = engine.fresh()
    with Collection.create(address, toy_model()) as made:
        made.add(documents(12))
        expected = [hit.document.id for hit in made.search("ship", k=5)]
    name = re.split("[/=]", str(address))[-1]
    password = re.search(r":([^:@/]+)@", str(address))
    with serving(address) as server, server.client(name) as client:  # type: ignore[arg-type]
        assert [hit.document.id for hit in client.search("ship", k=5)] == expected
        client.add([{"id": "over-http", "text": "ship"}])
        assert "over-http" in client and len(client) == 13
        server.wait_until_ready()
        for path in ("/v1/collections", f"/v1/collections/{name}", "/ready"):
            answered = server.get(path)
            assert answered.status_code == 200
            assert password is None or password[1] not in answered.text
        missing = server.get(f"/v1/collections/{name}/documents/nothing")
        assert missing.status_code == 404 and "127.0.0.1" not in missing.text
        engine.restart()
        assert "over-http" in [hit.document.id for hit in client.search("ship", k=5)]
