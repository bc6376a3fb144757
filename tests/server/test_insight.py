"""Bits, facts, the map and duplicates; health and metrics."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snuh.collection import Collection
from snuh.model import Model
from snuh.server.job_runner import place_codes
from tests.collection.worlds import WORDS, document, toy_model
from tests.server.serving import Server, serving


def made(server: Server, path: str, *, current: bool = True) -> dict[str, Any]:
    """Ask until it is made."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        answer = server.get(path)
        if answer.status_code == 200 and answer.json()["current"] == current:
            return dict(answer.json())
        assert answer.status_code in (200, 202), answer.text
        assert answer.json()["state"] in ("making", "ready")
        time.sleep(0.1)
    raise AssertionError("it was not made in time")


def test_the_map_is_made_once_and_kept_beside_the_collection(folder: Path) -> None:
    with serving(folder) as server:
        first = server.get("/v1/collections/c/map")
        assert first.status_code == 202 and first.json()["state"] == "making"
        told = made(server, "/v1/collections/c/map")
        assert told["documents"] == 41 and len(told["ids"]) == 40 and "unknown" not in told["ids"]
        assert len(told["x"]) == len(told["y"]) == len(told["titles"]) == len(told["labels"]) == 40
        assert max(map(abs, told["x"] + told["y"])) == 1.0
        kept = (folder / "map.json").stat().st_mtime_ns
        server.post("/v1/collections/c/documents/delete", {"ids": ["d1"]})
        assert server.get("/v1/collections/c/map").json()["current"] is False
    with serving(folder) as server:  # another run finds it, and does not make it again at once
        assert server.get("/v1/collections/c/map").json()["ids"] == told["ids"]
        assert (folder / "map.json").stat().st_mtime_ns == kept
    (folder / "map.json").write_text("{", encoding="utf-8")
    with serving(folder) as server:
        assert server.get("/v1/collections/c/map").status_code == 202  # damaged: it is made again
        assert len(made(server, "/v1/collections/c/map")["ids"]) == 39


def test_duplicates_are_found_by_a_process_of_its_own(folder: Path) -> None:
    with Collection(folder) as collection:
        collection.add([{"id": f"copy-{n}", "text": "market price ice", "title": f"T{n}"} for n in range(3)])
    path = "/v1/collections/c/duplicates"
    with serving(folder) as server:
        told = made(server, f"{path}?threshold=0.99")
        assert told["documents"] == 44 and told["left"] == 44 - told["duplicates"]
        cluster = next(c for c in told["biggest"] if "copy-0" in [one["id"] for one in c])
        assert [one["action"] for one in cluster][:2] == ["keep", "drop"]
        assert {"T0", "T1", "T2"} <= {one["title"] for one in cluster}
        server.get(f"{path}?group_by=nothing")
        answer = server.get(f"{path}?group_by=nothing")
        while answer.status_code == 202:
            answer = server.get(f"{path}?group_by=nothing")
            time.sleep(0.1)
        assert answer.status_code == 400 and 'no document has a field "nothing"' in answer.json()["error"]


def test_a_collection_of_nothing_has_a_map_of_nothing(tmp_path: Path) -> None:
    Collection.create(tmp_path / "c", toy_model()).close()
    with serving(tmp_path / "c") as server:
        assert made(server, "/v1/collections/c/map")["ids"] == []
        assert server.get("/v1/collections/c").json()["documents"] == 0
        assert server.get("/v1/collections/c/fields").json() == {"documents": 0, "fields": []}
        assert server.post("/v1/collections/c/search", {"text": "ship"}).json()["hits"] == []


@pytest.mark.parametrize("count", [0, 1, 2, 9, 30])
def test_codes_are_placed_in_the_plane_whatever_their_number(count: int) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (count, 2), dtype=np.uint8)
    places = place_codes(codes)
    assert places.shape == (count, 2) and np.isfinite(places).all()
    assert np.abs(places).max(initial=0.0) <= 1.0
    assert np.array_equal(places, place_codes(codes))
    assert (place_codes(np.zeros((20, 2), dtype=np.uint8)) == 0).all()


def test_codes_of_two_kinds_lie_apart() -> None:
    rng = np.random.default_rng(0)
    flips = np.packbits(rng.random((60, 64)) < 0.05, axis=1)
    kinds = np.repeat([0, 1], 30)
    places = place_codes(np.where(kinds[:, None] == 1, 0xFF, 0).astype(np.uint8) ^ flips)
    centroids = np.array([places[kinds == kind].mean(axis=0) for kind in (0, 1)])
    nearest = np.linalg.norm(places[:, None] - centroids, axis=2).argmin(axis=1)
    assert (nearest == kinds).mean() > 0.95


def test_bits_facts_and_fields_are_told(shared: Server) -> None:
    told = shared.get("/v1/collections/c/bits?words=3").json()
    assert told["bits"] == len(told["meanings"]) == 16
    words = {word for side in ("on", "off") for theme in told["meanings"][0][side] for word in theme}
    assert words and words <= set(WORDS)
    info = shared.get("/v1/collections/c").json()
    assert (info["name"], info["documents"], info["searchable"]) == ("c", 41, 40)
    assert info["fields"] == ["desk", "year"] and info["health"]["bits"] == 16
    assert str(shared.place) not in json.dumps(info)  # type: ignore[attr-defined]
    fields = {field["name"]: field for field in shared.get("/v1/collections/c/fields").json()["fields"]}
    assert (fields["year"]["min"], fields["year"]["max"]) == (2000, 2002)
    assert fields["desk.city"]["values"] == [{"value": "Bern", "documents": 40}]


def test_health_readiness_and_metrics(folder: Path) -> None:
    with serving(folder) as server:
        assert server.get("/health").json() == {"status": "ok"}
        assert server.get("/ready").json() == {"status": "ready"}
        server.post("/v1/collections/c/search", {"text": "ship"})
        server.post("/v1/collections/c/search", {"text": "zzz"})
        server.post("/v1/collections/c/documents", {"documents": [{"id": "x", "text": "ship"}]})
        server.get("/some/path")
        text = server.get("/metrics").text
        path = 'path="/v1/collections/{name}/search"'
        assert f'snuh_requests_total{{method="POST",{path},status="200"}} 1.0' in text
        assert f'snuh_requests_total{{method="POST",{path},status="422"}} 1.0' in text
        assert 'path="other",status="404"' in text and "/some/path" not in text
        assert 'snuh_documents_written_total{collection="c"} 1.0' in text
        assert "process_resident_memory_bytes" in text
        for name in ("store.sqlite", "store.sqlite-wal"):
            (folder / name).write_bytes(b"nonsense" * 1_000)
        refused = server.get("/ready")
        assert refused.status_code == 503 and refused.json()["kind"] == "unavailable"
        assert str(folder) not in refused.text


def test_the_schema_describes_every_path(shared: Server) -> None:
    schema = shared.get("/openapi.json").json()
    paths = {path.removeprefix("/v1/collections/{name}") for path in schema["paths"]}
    assert {"/search", "/search/batch", "/similar", "/explain", "/encode", "/documents"} <= paths
    assert {"/documents/lines", "/documents/delete", "/bits", "/map", "/duplicates", "/fields"} <= paths
    body = schema["paths"]["/v1/collections/{name}/search"]["post"]["requestBody"]
    assert body["content"]["application/json"]["schema"]["examples"][0]["text"]


def test_a_bit_that_no_text_can_change_has_no_margin_in_json(tmp_path: Path) -> None:
    model = toy_model()
    stuck = replace(model.encoder, threshold=np.where(np.arange(16) == 3, 1.0, 0.5))
    with Collection.create(tmp_path / "c", Model(stuck, model.features)) as collection:
        collection.add([document(1, "ship")])
    with serving(tmp_path / "c") as server:
        answer = server.post("/v1/collections/c/explain", {"text": "ship", "id": "d1"})
        assert answer.json()["bits"][3] == {
            "bit": 3,
            "query": False,
            "hit": False,
            "query_margin": None,
            "hit_margin": None,
        }
        with server.client() as client:
            assert client.explain("ship", "d1").bits[3].hit_margin == -np.inf
