"""What comes out of a collection goes into another one, and is the same there."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import snuh
from snuh.corpus import Document
from tests.cli.running import Ran, contents, run, run_process
from tests.worlds import files_limited_to

ODD_TEXTS = [
    "t1word1 \r\n two\nlines\r",
    "quotes \" and '",
    "tab\tand, comma; semicolon",
    "ünï 👩‍👩‍👧 שלום",
    " ",
    "",
]


def export(collection: Path, out: Path, *options: object) -> Ran:
    ran = run("export", collection, "--out", out, *options)
    assert ran.code == 0, ran.stderr
    return ran


def documents(folder: Path) -> list[Document]:
    with snuh.Collection(folder) as collection:
        return list(collection.documents())


def refilled(source: Path, fitted: Path, folder: Path, *options: object) -> list[Document]:
    ran = run("create", folder, "--model", fitted, "--from", source, *options)
    assert ran.code == 0, ran.stderr
    return documents(folder)


def put(folder: Path, *new: Document) -> None:
    with snuh.Collection(folder) as collection:
        collection.add(new)


def odd_documents() -> list[Document]:
    """Documents whose metadata are equal in kind, as a table wants them."""
    return [
        Document(
            f"\N{WAVING HAND SIGN} {number}\n", text, ("a", "ß c"), "val", {"name": text, "place": "שלום"}
        )
        for number, text in enumerate(ODD_TEXTS)
    ]


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_json_lines_round_trip(name: str, collection: Path, fitted: Path, tmp_path: Path) -> None:
    nested = {"deep": [{"a": [1, 2.5, None, True]}, "ü"], "label": "no label", "big": 2**70, "": "unnamed"}
    put(collection, Document("nested", "t1word1", (), None, nested), *odd_documents())
    export(collection, tmp_path / name)
    assert refilled(tmp_path / name, fitted, tmp_path / "back") == documents(collection)


@pytest.mark.parametrize("name", ["all.csv", "all.parquet"])
def test_a_table_of_scalar_metadata_round_trips(name: str, fitted: Path, tmp_path: Path) -> None:
    run("create", tmp_path / "odd", "--model", fitted)
    put(tmp_path / "odd", *odd_documents())
    export(tmp_path / "odd", tmp_path / name)
    assert refilled(tmp_path / name, fitted, tmp_path / "back") == odd_documents()


def test_parquet_keeps_numbers_and_writes_the_rest_as_json(
    collection: Path, fitted: Path, tmp_path: Path
) -> None:
    put(
        collection,
        Document("mixed", "t1word1", (), None, {"year": None, "x": 0.5, "seen": True, "id64": 2**60}),
    )
    put(collection, Document("more", "t1word1", (), None, {"x": 3, "city": 7}))
    export(collection, tmp_path / "all.parquet")
    schema = pq.read_schema(tmp_path / "all.parquet")
    kinds = {name: schema.field(name).type for name in ("year", "x", "seen", "id64", "origin", "city")}
    assert list(kinds.values()) == [
        pa.int64(),
        pa.float64(),
        pa.bool_(),
        pa.int64(),
        pa.string(),
        pa.string(),
    ]
    back = {
        document.id: document for document in refilled(tmp_path / "all.parquet", fitted, tmp_path / "back")
    }
    first = back["doc-0"].metadata
    assert (first["year"], json.loads(str(first["origin"]))) == (2015, {"desk": 0, "tags": ["new", "näïve"]})
    assert (back["mixed"].metadata["x"], back["more"].metadata["x"]) == (0.5, 3.0)
    assert (back["mixed"].metadata["id64"], back["more"].metadata["city"]) == (2**60, "7")


def test_a_model_can_be_fitted_on_an_export(shared_collection: Path, tmp_path: Path) -> None:
    export(shared_collection, tmp_path / "all.csv")
    ran = run(
        "fit", tmp_path / "all.csv", "--out", tmp_path / "m", "--bits", 16, "--set", "epochs=1", "--json"
    )
    assert json.loads(ran.stdout)["documents"] == 96


def test_codes_and_filter(shared_collection: Path, fitted: Path, tmp_path: Path) -> None:
    out = tmp_path / "some.csv"
    ran = run_process(
        "export", shared_collection, "--out", out, "--codes", "--where", "year = 2020", "--json"
    )
    assert json.loads(ran.stdout)["documents"] == 12
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    codes = snuh.load(fitted).encode([row["text"] for row in rows])
    assert [row["code"] for row in rows] == [code.tobytes().hex() for code in codes]
    assert {row["year"] for row in rows} == {"2020"}


def test_a_document_without_known_words_has_no_code(collection: Path, tmp_path: Path) -> None:
    put(collection, Document("strange", "unheard"))
    export(collection, tmp_path / "all.jsonl", "--codes")
    last = json.loads((tmp_path / "all.jsonl").read_text().splitlines()[-1])
    assert (last["id"], last["code"]) == ("strange", None)


def test_a_metadata_field_called_text_requires_another_text_field(
    collection: Path, fitted: Path, tmp_path: Path
) -> None:
    put(collection, Document("two texts", "t1word1", metadata={"text": "the other"}))
    before = contents(tmp_path)
    ran = run("export", collection, "--out", tmp_path / "all.jsonl")
    assert ran.code == 2
    assert '"two texts" has a metadata field "text": choose another name' in ran.complaints[0]
    assert contents(tmp_path) == before
    export(collection, tmp_path / "all.jsonl", "--text-field", "body")
    back = refilled(tmp_path / "all.jsonl", fitted, tmp_path / "back", "--text-field", "body")
    assert back == documents(collection)


def test_a_refused_export_keeps_the_old_file(collection: Path, tmp_path: Path) -> None:
    put(collection, Document("l", "t1word1", ("a;b",)))
    (tmp_path / "all.csv").write_text("from before")
    for out, options, expected in (
        (
            "all.csv",
            (),
            'the label "a;b" contains ; or |, which separate labels in .csv: write .jsonl or .parquet',
        ),
        ("all.cvs", (), '.jsonl, .jsonl.gz, .csv, .parquet (did you mean ".csv"?)'),
        ("all.csv", ("--where", "yeer = 3"), 'no document has a field "yeer" (did you mean "year"?)'),
        ("tickets/all.csv", (), "is a collection and must not contain other files: choose another path"),
    ):
        ran = run("export", collection, "--out", tmp_path / out, *options)
        assert ran.code == 2 and expected in ran.complaints[0], ran
    (tmp_path / "all.jsonl").write_text("from before")
    with files_limited_to(33_000):  # SQLite needs a file of 32 KiB to read
        ran = run("export", collection, "--out", tmp_path / "all.jsonl", "--codes")
    assert ran.code == 2 and "File too large" in ran.complaints[0], ran
    assert (tmp_path / "all.csv").read_text() == (tmp_path / "all.jsonl").read_text() == "from before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.csv", "all.jsonl", "tickets"]
