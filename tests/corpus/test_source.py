from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from snuh.corpus import Document, MatrixSource, TextSource, open_source
from snuh.corpus.source import source_path
from snuh.errors import InputError


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("ng20", "reuters"):
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(b'{"text": "from %s"}' % name.encode()))
    (folder / "ng20.csv").write_text("text\nnot this one\n")
    (folder / "README.md").write_text("about")
    monkeypatch.setenv("SNUH_DATA", str(folder))
    return folder


def texts(spec: str | Path) -> list[str]:
    source = open_source(spec)
    assert isinstance(source, TextSource)
    return [document.text for document in source]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_plain_text_has_one_document_per_line(tmp_path: Path, name: str) -> None:
    content = b"first line \r\n\nthird"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    source = open_source(tmp_path / name)
    assert isinstance(source, TextSource)
    assert list(source) == [Document("1", "first line "), Document("3", "third")]


def test_fields_of_a_source_without_fields_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "a.mat").write_text("")
    for name in ("a.txt", "a.mat", ""):
        with pytest.raises(InputError, match='has no fields, so none is called "body": leave --text-field'):
            open_source(tmp_path / name, text_field="body")
    with pytest.raises(InputError, match='has no fields, so none is called "key": leave --id-field out'):
        open_source(tmp_path / "a.txt", id_field="key")


def test_a_corpus_is_found_by_its_name(data: Path) -> None:
    assert texts("ng20") == ["from ng20"]
    assert texts("ng20.csv") == ["not this one"]
    assert texts("reuters.jsonl.gz") == ["from reuters"]
    assert open_source("ng20").name == "ng20"


def test_a_local_file_takes_precedence_over_a_dataset(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ng20").mkdir()
    Path("ng20/a.txt").write_text("mine")
    assert texts("ng20") == ["mine"]


def test_an_unknown_name_lists_the_datasets(data: Path) -> None:
    with pytest.raises(InputError) as caught:
        open_source("ng2o")
    assert str(caught.value) == (
        'there is no file, folder or corpus "ng2o" (did you mean "ng20"?); SNUH_DATA holds: ng20, reuters'
    )


def test_a_name_without_snuh_data_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SNUH_DATA", raising=False)
    with pytest.raises(InputError, match=r'no file or folder "ng20"; .* set SNUH_DATA to the folder'):
        open_source("ng20")


def test_the_message_names_the_source_of_a_known_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SNUH_DATA", str(tmp_path))
    with pytest.raises(
        InputError, match=r"ng20 is 20 Newsgroups, from .*, saved as ng20\.jsonl\.gz with id, text"
    ):
        open_source("ng20")
    with pytest.raises(
        InputError, match=r"reuters\.tfidf\.mat has rows as in the paper's files, from github"
    ):
        open_source("reuters.tfidf")


def test_snuh_data_must_be_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SNUH_DATA", str(tmp_path / "gone"))
    with pytest.raises(InputError, match=r"SNUH_DATA must be an existing folder, got .*gone"):
        open_source("ng20")


def test_a_missing_file_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SNUH_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("tickets.jsonl").write_text("")
    with pytest.raises(
        InputError, match=r'^ticket.jsonl: no such file or folder \(did you mean "tickets.jsonl"\?\)'
    ):
        open_source("ticket.jsonl")
    with pytest.raises(InputError, match=r"^gone/a.csv: no such file or folder$"):
        open_source("gone/a.csv")


def test_a_text_given_as_a_source_is_refused_with_a_short_message(data: Path) -> None:
    with pytest.raises(InputError, match="there is no file, folder or corpus") as caught:
        open_source("many words " * 100)
    assert len(str(caught.value)) < 200


def test_an_empty_source_is_refused() -> None:
    with pytest.raises(InputError, match="the source is empty: give a file"):
        open_source("")


def test_an_unknown_kind_of_file_lists_the_formats(tmp_path: Path) -> None:
    (tmp_path / "a.jsnl").write_text("[]")
    with pytest.raises(InputError) as caught:
        open_source(tmp_path / "a.jsnl")
    assert 'unknown kind of file (did you mean ".jsonl"?)' in str(caught.value)
    for suffix in (".jsonl", ".gz", ".csv", ".tsv", ".txt", ".parquet", ".mat"):
        assert suffix in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(InputError, match='not a regular file: pipe it in and give "-"'):
        open_source(tmp_path / "pipe.jsonl")


def test_the_corpus_package_imports_nothing_heavy() -> None:
    program = "import sys, snuh.corpus; print({'numpy', 'scipy', 'pyarrow', 'torch'} & set(sys.modules))"
    root = str(Path(str(sys.modules["snuh"].__file__)).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONPATH": root}
    )
    assert run.stdout == "set()\n"


def test_real_corpora_have_the_documented_sizes() -> None:
    if not os.environ.get("SNUH_DATA"):
        pytest.skip("SNUH_DATA is not set")
    source = open_source("tmc")
    assert isinstance(source, TextSource)
    splits = [document.split for document in source]
    assert [splits.count(split) for split in ("train", "val", "test")] == [6021, 1000, 1000]
    matrix = open_source("tmc.tfidf")
    assert isinstance(matrix, MatrixSource)
    assert matrix.name == "tmc.tfidf"
    assert {split: part.X.shape for split, part in matrix.splits.items()} == {
        "train": (6021, 10000),
        "val": (1000, 10000),
        "test": (1000, 10000),
    }


def test_files_folders_and_datasets_have_a_path(data: Path, tmp_path: Path) -> None:
    assert source_path(str(tmp_path)) == tmp_path
    assert source_path("reuters") == data / "reuters.jsonl.gz"
    assert source_path("absent") is None
    assert source_path("postgresql://host/tickets") is None
