from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import snuh
from snuh.corpus.beir import read_judged
from snuh.errors import InputError

DOCUMENTS = [
    {"_id": "a", "title": "Ships", "text": "that pass in the night", "metadata": {}},
    {"_id": "b", "title": "", "text": "fog", "metadata": {"year": 1890}},
]
QUERIES = [{"_id": "1", "text": "ship"}, {"_id": "2", "text": "fog"}, {"_id": "3", "text": "not judged"}]
QRELS = "query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n2\tb\t1\n9\ta\t1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with gzip.open(tmp_path / "corpus.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(document) + "\n" for document in DOCUMENTS)
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in QUERIES))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text(QRELS)
    return tmp_path


def test_a_folder_of_beir_is_a_source(folder: Path) -> None:
    first, second = snuh.open_source(folder)
    assert (first.id, first.text) == ("a", "Ships\nthat pass in the night")
    assert (second.text, second.metadata["year"]) == ("fog", 1890)


def test_judged_queries_are_those_with_a_relevant_document(folder: Path) -> None:
    judged = read_judged(folder)
    assert judged.texts == {"1": "ship", "2": "fog"}
    assert judged.judgments["1"] == {"a": 2, "b": 0}
    trec = folder / "qrels.txt"
    trec.write_text("1 0 a 2\n1 0 b 0\n2 0 b 1\n")
    judged = read_judged(folder / "queries.jsonl", trec)
    assert judged.judgments == {"1": {"a": 2, "b": 0}, "2": {"b": 1}}


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ("1\ta\tvery\n2\tb\t1\n3\ta\tgood\n", "line 3: expected a query id, a document id and an integer"),
        ("7\ta\t1\n", "no query of queries.jsonl has a relevant document in qrels.tsv"),
        ("1\ta\t0\n", "no query of queries.jsonl has a relevant document in qrels.tsv"),
    ],
)
def test_bad_judgments_are_refused(folder: Path, qrels: str, message: str) -> None:
    (folder / "qrels.tsv").write_text(qrels)
    with pytest.raises(InputError, match=message):
        read_judged(folder / "queries.jsonl", folder / "qrels.tsv")


def test_judgments_are_needed(folder: Path) -> None:
    with pytest.raises(InputError, match="needs judgments"):
        read_judged(folder / "queries.jsonl")
