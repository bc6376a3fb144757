"""Bits, info, facets, maps and duplicates; health and metrics."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snuh.collection import Collection
from snuh.features import TfidfFeatures
from snuh.model import Model
from snuh.server import job_runner
from snuh.server import jobs as jobs_module
from snuh.server.job_runner import project_codes
from snuh.server.requests import ApiError
from tests.collection.worlds import WORDS, document, temporary_folder, toy_model
from tests.server.conftest import fill
from tests.server.serving import Server, serving


def wait_for_job(server: Server, path: str, *, current: bool = True) -> dict[str, Any]:
    """Repeat a request until its job is done."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        response = server.get(path)
        if response.status_code == 200 and response.json()["current"] == current:
            return dict(response.json())
        assert response.status_code in (200, 202), response.text
        assert response.json()["state"] in ("running", "ready")
        time.sleep(0.1)
    raise AssertionError("the job did not finish in time")


@pytest.fixture(scope="module")
def lab() -> Iterator[Server]:
    """A server of collections that are called after the only test that uses each."""
    root = temporary_folder()
    for name in ("mapped", "damaged", "thinned", "copied"):
        fill(root / name)
    (root / "damaged" / "map.json").write_text("{", encoding="utf-8")
    texts = {"a": "market price", "b": "dawn rope rope"}
    with Collection(root / "thinned") as thinned:
        thinned.add([{"id": f"{name}{n}", "text": texts[name]} for name in texts for n in range(3)])
    with Collection(root / "copied") as copied:
        copied.add([{"id": f"copy-{n}", "text": "market price ice", "title": f"T{n}"} for n in range(3)])
    Collection.create(root / "empty", toy_model()).close()
    model = toy_model()
    stuck = replace(model.encoder, threshold=np.where(np.arange(16) == 3, 1.0, 0.5))
    with Collection.create(root / "stuck", Model(stuck, model.features)) as collection:
        collection.add([document(1, "ship")])
    with serving(*root.iterdir()) as server:
        server.root = root
        yield server
    shutil.rmtree(root)


def test_the_map_is_computed_once_and_has_documents_as_they_are_now(lab: Server) -> None:
    path, folder = "/v1/collections/mapped/map", lab.root / "mapped"
    first = lab.get(path)
    assert first.status_code == 202 and first.json()["state"] == "running" and first.json()["done"] == 0.0
    result = wait_for_job(lab, path)
    assert result["documents"] == 41 and len(result["ids"]) == 40 and "unknown" not in result["ids"]
    assert len(result["x"]) == len(result["y"]) == len(result["titles"]) == len(result["labels"]) == 40
    assert max(map(abs, result["x"] + result["y"])) == 1.0
    years = lab.get(f"{path}/values", params={"field": "year"}).json()["values"]
    assert years == [2000 + int(doc_id[1:]) % 3 for doc_id in result["ids"]]
    assert lab.get(f"{path}/values", params={"field": "desk.city"}).json()["values"] == ["Bern"] * 40
    assert lab.get(f"{path}/values", params={"field": "a b"}).status_code == 400
    assert lab.get("/v1/collections/copied/map/values?field=year").status_code == 503
    stored = json.loads((folder / "map.json").read_text())
    assert stored["ids"] == result["ids"] and stored.keys().isdisjoint({"titles", "labels"})
    with serving(folder) as server:  # another run uses it, and does not compute it again at once
        assert server.get(path).json() == result
        assert json.loads((folder / "map.json").read_text()) == stored
        server.post("/v1/collections/mapped/documents/delete", {"ids": ["d1"]})
        changed = {"id": "d2", "text": "a secret no more\nship", "labels": ["new"]}
        server.post("/v1/collections/mapped/documents", {"documents": [changed]})
        after = server.get(path).json()
        assert after["current"] is False
        assert after["ids"] == [doc_id for doc_id in result["ids"] if doc_id != "d1"]
        index = after["ids"].index("d2")
        assert (after["titles"][index], after["labels"][index]) == ("a secret no more", "new")
        assert after["x"][index] == result["x"][result["ids"].index("d2")]
        assert "d1" not in json.loads((folder / "map.json").read_text())["ids"]
        [[x, y]] = server.get(f"{path}/positions?id=d3").json()["positions"]
        assert -1 <= min(x, y) <= max(x, y) <= 1
        assert server.get(f"{path}/positions", params={"id": "unknown"}).json()["positions"] == [None]
        assert server.get(f"{path}/positions?id=d1").status_code == 404
    assert "d1" not in lab.get(path).json()["ids"]


def test_a_damaged_map_is_computed_again(lab: Server) -> None:
    assert lab.get("/v1/collections/damaged/map").status_code == 202  # damaged: it is computed again
    assert len(wait_for_job(lab, "/v1/collections/damaged/map")["ids"]) == 40


def test_deleted_documents_are_not_among_the_duplicates(lab: Server) -> None:
    path = "/v1/collections/thinned/duplicates?threshold=0.99"
    found = wait_for_job(lab, path)
    assert {"a0", "a1", "a2", "b0"} <= {one["id"] for cluster in found["largest"] for one in cluster}
    lab.post("/v1/collections/thinned/documents/delete", {"ids": ["a1", "b0"]})
    left = lab.get(path).json()
    ids = {one["id"] for cluster in left["largest"] for one in cluster}
    assert {"a0", "a2"} <= ids and ids.isdisjoint({"a1", "b0"})
    assert all(one["representative"] in ids for cluster in left["largest"] for one in cluster)


def test_ever_new_options_of_duplicates_are_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "MAX_BUSY_SECONDS", 0.0)
    jobs = jobs_module.Jobs(folder.parent, seconds=600)
    with Collection(folder) as collection:
        first: dict[str, Any] = {"threshold": 0.5}
        while jobs.get("duplicates", collection, first).status == 202:
            time.sleep(0.05)
        with pytest.raises(ApiError, match=r"too many searches for duplicates: retry in \d+ s") as error:
            jobs.get("duplicates", collection, {"threshold": 0.6})
        assert error.value.status_code == 429 and int(error.value.headers["retry-after"]) >= 1
        assert jobs.get("duplicates", collection, first).status == 200  # a known result is still returned
    jobs.close()


def test_duplicates_are_found_by_a_separate_process(lab: Server) -> None:
    path = "/v1/collections/copied/duplicates"
    result = wait_for_job(lab, f"{path}?threshold=0.99")
    assert result["documents"] == 44 and result["left"] == 44 - result["duplicates"]
    cluster = next(c for c in result["largest"] if "copy-0" in [one["id"] for one in c])
    assert [one["action"] for one in cluster][:2] == ["keep", "drop"]
    assert {"T0", "T1", "T2"} <= {one["title"] for one in cluster}
    lab.get(f"{path}?group_by=nothing")
    response = lab.get(f"{path}?group_by=nothing")
    while response.status_code == 202:
        response = lab.get(f"{path}?group_by=nothing")
        time.sleep(0.1)
    assert response.status_code == 400 and 'no document has a field "nothing"' in response.json()["error"]


def test_an_empty_collection_has_an_empty_map(lab: Server) -> None:
    assert wait_for_job(lab, "/v1/collections/empty/map")["ids"] == []
    assert lab.get("/v1/collections/empty").json()["documents"] == 0
    assert lab.get("/v1/collections/empty/facets").json() == {"documents": 0, "total": 0, "facets": []}
    assert lab.post("/v1/collections/empty/search", {"text": "ship"}).json()["hits"] == []


@pytest.mark.parametrize("count", [0, 1, 2, 9, 30])
def test_any_number_of_codes_is_projected(count: int) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (count, 2), dtype=np.uint8)
    reports: list[float] = []
    points = project_codes(codes, report=reports.append)
    assert reports == sorted(reports) and reports[-1:] == ([1.0] if count == 30 else [])
    assert points.shape == (count, 2) and np.isfinite(points).all()
    assert np.abs(points).max(initial=0.0) <= 1.0
    assert np.array_equal(points, project_codes(codes))
    assert (project_codes(np.zeros((20, 2), dtype=np.uint8)) == 0).all()


def test_documents_beyond_the_projection_are_placed_at_their_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_runner, "MAX_TSNE_POINTS", 30)
    rng = np.random.default_rng(0)
    clusters = np.arange(120) % 2
    noise = np.packbits(rng.random((120, 64)) < 0.05, axis=1)
    points = job_runner.place_codes(np.where(clusters[:, None] == 1, 0xFF, 0).astype(np.uint8) ^ noise)
    centroids = np.array([points[clusters == cluster].mean(axis=0) for cluster in (0, 1)])
    nearest = np.linalg.norm(points[:, None] - centroids, axis=2).argmin(axis=1)
    assert (nearest == clusters).mean() > 0.95 and np.abs(points).max() <= 1.0


def test_regions_of_the_map_are_named_by_the_words_of_their_documents() -> None:
    texts = ["ship harbour fog"] * 80 + ["market price trade"] * 80
    features = TfidfFeatures(min_df=1, max_df=1.0, language=None).fit(texts)
    points = np.repeat([[-1.0, 0.0], [1.0, 0.0]], 80, axis=0)
    points += np.random.default_rng(0).normal(scale=0.05, size=points.shape)
    regions = job_runner.name_regions(points, features.transform(texts), features.words)
    assert {region["level"] for region in regions} == {0}  # too few documents for smaller ones
    for region in regions:
        assert {*region["words"]} == {*texts[0 if region["x"] < 0 else -1].split()}
    assert sum(region["documents"] for region in regions) <= 160


def test_two_clusters_of_codes_are_projected_apart() -> None:
    rng = np.random.default_rng(0)
    noise = np.packbits(rng.random((60, 64)) < 0.05, axis=1)
    clusters = np.repeat([0, 1], 30)
    points = project_codes(np.where(clusters[:, None] == 1, 0xFF, 0).astype(np.uint8) ^ noise)
    centroids = np.array([points[clusters == cluster].mean(axis=0) for cluster in (0, 1)])
    nearest = np.linalg.norm(points[:, None] - centroids, axis=2).argmin(axis=1)
    assert (nearest == clusters).mean() > 0.95


def test_bits_info_and_facets_describe_the_collection(shared: Server) -> None:
    result = shared.get("/v1/collections/c/bits?words=3").json()
    assert result["bits"] == len(result["meanings"]) == 16
    words = {word for side in ("on", "off") for theme in result["meanings"][0][side] for word in theme}
    assert words and words <= set(WORDS)
    info = shared.get("/v1/collections/c").json()
    assert (info["name"], info["documents"], info["searchable"]) == ("c", 41, 40)
    assert info["fields"] == ["desk", "year"] and info["health"]["bits"] == 16
    assert str(shared.root) not in json.dumps(info)
    facets = {facet["name"]: facet for facet in shared.get("/v1/collections/c/facets").json()["facets"]}
    assert (facets["year"]["min"], facets["year"]["max"]) == (2000, 2002)
    assert facets["desk.city"]["values"] == [{"value": "Bern", "documents": 40}]


def test_health_readiness_and_metrics(folder: Path) -> None:
    with serving(folder) as server:
        assert server.get("/health").json() == {"status": "ok"}
        server.wait_until_ready()
        assert server.get("/ready").json() == {"status": "ready"}
        server.post("/v1/collections/c/search", {"text": "ship"})
        server.post("/v1/collections/c/search", {"text": "ship", "k": 0})
        server.post("/v1/collections/c/documents", {"documents": [{"id": "x", "text": "ship"}]})
        server.get("/some/path")
        text = server.get("/metrics").text
        path = 'path="/v1/collections/{name}/search"'
        assert f'snuh_requests_total{{method="POST",{path},status="200"}} 1.0' in text
        assert f'snuh_requests_total{{method="POST",{path},status="400"}} 1.0' in text
        assert 'path="other",status="404"' in text and "/some/path" not in text
        assert 'snuh_documents_written_total{collection="c"} 1.0' in text
        assert "process_resident_memory_bytes" in text
        assert 'snuh_documents{collection="c"} 42.0' in text and "snuh_jobs_running 0.0" in text
        assert 'snuh_queue_length{collection="c"}' in text and "snuh_build_info{version=" in text
        server.post("/v1/collections/c/documents/delete", {"ids": ["x"]})
        for name in ("store.sqlite", "store.sqlite-wal"):
            (folder / name).write_bytes(b"nonsense" * 1_000)
        response = server.get("/ready")
        assert response.status_code == 503 and response.json()["kind"] == "unavailable"
        assert str(folder) not in response.text


def test_the_infinite_margin_of_a_constant_bit_is_null_in_json(lab: Server) -> None:
    response = lab.post("/v1/collections/stuck/explain", {"text": "ship", "id": "d1"})
    assert response.json()["bits"][3] == {
        "bit": 3,
        "query": False,
        "hit": False,
        "query_margin": None,
        "hit_margin": None,
    }
    with lab.client("stuck") as client:
        assert client.explain("ship", "d1").bits[3].hit_margin == -np.inf
