"""Vectors on the command line: fields, .npy files, and one clear line for each problem."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import snuh
from tests.cli.running import run
from tests.worlds import planted_topics

DIMS, DOCS = 3, 90


@pytest.fixture(scope="module")
def records() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    rows = planted_topics(docs=DOCS, topics=3, seed=0)
    vectors = rng.normal(size=(DOCS, DIMS)) * 0.1 + [np.eye(DIMS)[int(row["labels"][0][-1])] for row in rows]
    return [{**row, "emb": vector.round(4).tolist()} for row, vector in zip(rows, vectors, strict=True)]


@pytest.fixture(scope="module")
def folder(records: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the same documents in three formats, and a model."""
    folder = tmp_path_factory.mktemp("vectors")
    write(folder / "docs.jsonl", records)
    vectors = np.array([row["emb"] for row in records], dtype=np.float32)
    np.save(folder / "docs.npy", vectors)
    write(folder / "words.jsonl", [{k: v for k, v in row.items() if k != "emb"} for row in records])
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMS)
    table = pa.table({name: [row[name] for row in records] for name in ("id", "text")})
    pq.write_table(table.append_column("emb", column), folder / "docs.parquet")
    ran = run(*fit(folder / "docs.jsonl", folder / "model", "emb"), "--json")
    assert ran.code == 0, ran.stderr
    assert json.loads(ran.stdout)["vectors"]["dims"] == DIMS
    return folder


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def fit(source: Path, out: Path, vectors: object) -> list[object]:
    return ["fit", source, "--out", out, "--method", "itq", "--bits", 16, "--vectors", vectors]


@pytest.mark.parametrize(
    ("source", "vectors"), [("docs.parquet", "emb"), ("words.jsonl", "docs.npy"), ("docs.jsonl", "emb")]
)
def test_vectors_of_all_sources_make_the_same_codes(
    source: str, vectors: str, folder: Path, tmp_path: Path
) -> None:
    given = folder / vectors if vectors.endswith(".npy") else vectors
    out = tmp_path / "codes.npy"
    ran = run("encode", folder / "model", folder / source, "--out", out, "--vectors", given)
    assert ran.code == 0, ran.stderr
    texts = [json.loads(line)["text"] for line in (folder / "words.jsonl").read_text().splitlines()]
    model = snuh.load(folder / "model")
    codes = np.load(out)
    np.testing.assert_array_equal(codes, model.encode(texts, vectors=np.load(folder / "docs.npy")))
    assert (codes != model.encode(texts)).any()


def test_a_collection_is_made_of_documents_with_vectors(folder: Path, tmp_path: Path) -> None:
    location, source = tmp_path / "c", folder / "docs.jsonl"
    ran = run("create", location, "--model", folder / "model", "--from", source, "--vectors", "emb")
    assert ran.code == 0, ran.stderr
    with snuh.Collection(location) as created:
        assert "emb" not in created.info().fields
    about = json.loads(run("info", location, "--json").stdout)["vectors"]
    assert about["dims"] == DIMS and about["fraction"] > 0.5 and about["embedding"] is None
    assert "not compared" in run("check", location).stdout
    exported = tmp_path / "out.jsonl"
    assert run("export", location, "--out", exported, "--codes").code == 0
    codes = [json.loads(line)["code"] for line in exported.read_text().splitlines()]
    model = snuh.load(folder / "model")
    assert codes == [bytes(code).hex() for code in model.encode(source_documents(source))]
    ran = run("rehash", location, "--model", folder / "model")
    assert ran.code == 0 and "words alone are encoded" in ran.stderr
    assert run("search", location, "t0word1").code == 0


def source_documents(path: Path) -> list[Any]:
    return list(snuh.open_source(path, vectors="emb").documents())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"emb": [1.0, 2.0]}, "3 dimensions, got 2"),
        ({"emb": [float("nan"), 1.0, 1.0]}, "NaN"),
        ({"emb": [0.0, 0.0, 0.0]}, "all zeros"),
        ({"emb": "abc"}, '"emb" must be a list of numbers, got a string'),
        ({"emb": ["a", "b", "c"]}, "must be a list of numbers"),
        ({"emb": ...}, 'no field "emb"'),
    ],
)
def test_unusable_vectors_are_one_line_and_nothing_is_written(
    change: dict[str, Any], problem: str, records: list[dict[str, Any]], tmp_path: Path
) -> None:
    row = {name: value for name, value in {**records[5], **change}.items() if value is not ...}
    write(tmp_path / "bad.jsonl", [*records[:5], row, *records[6:]])
    refuse(tmp_path, fit(tmp_path / "bad.jsonl", tmp_path / "model", "emb"), problem)


@pytest.mark.parametrize(
    ("array", "problem"),
    [
        (np.ones((DOCS - 1, DIMS)), "a row for each document"),
        (np.ones(DOCS), "a row per document"),
        (np.full((DOCS, DIMS), "a"), "array of numbers"),
    ],
)
def test_unusable_files_are_one_line_and_nothing_is_written(
    array: Any, problem: str, folder: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "bad.npy", array)
    refuse(tmp_path, fit(folder / "words.jsonl", tmp_path / "model", tmp_path / "bad.npy"), problem)
    (tmp_path / "text.npy").write_text("no array")
    refuse(
        tmp_path, fit(folder / "words.jsonl", tmp_path / "model", tmp_path / "text.npy"), "not a NumPy file"
    )
    refuse(tmp_path, fit(folder / "words.jsonl", tmp_path / "model", tmp_path / "no.npy"), "no such file")


def test_options_that_cannot_be_used_together_are_refused(folder: Path, tmp_path: Path) -> None:
    arguments = fit(folder / "docs.jsonl", tmp_path / "model", "emb")
    refuse(tmp_path, [*arguments, "--embed-with", tmp_path], "omit one of them")
    arguments[arguments.index("itq")] = "vdsh"
    refuse(tmp_path, arguments, "words alone")


def refuse(folder: Path, arguments: list[object], problem: str) -> None:
    ran = run(*arguments)
    assert ran.code == 2 and len(ran.complaints) == 1 and problem in ran.complaints[0], ran.stderr
    assert not (folder / "model").exists()
