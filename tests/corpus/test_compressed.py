"""Arrays of JSON, and compressed files."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from snuh.corpus import Document, open_source
from snuh.errors import InputError

LINES = '{"id": "a", "text": "first", "stars": 4}\n{"id": "b", "text": "second", "stars": null}\n'
DOCUMENTS = [Document("a", "first", metadata={"stars": 4}), Document("b", "second", metadata={"stars": None})]


def compress(path: Path, content: bytes, *, member: str = "") -> Path:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(content))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(member or path.stem, content)
    elif path.suffix == ".zst":
        with pa.output_stream(str(path), compression="zstd") as file:
            file.write(content)
    else:
        path.write_bytes(content)
    return path


def error_message(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        list(open_source(path))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("compression", ["", ".gz", ".zst", ".zip"])
@pytest.mark.parametrize(
    ("suffix", "content"),
    [
        (".jsonl", LINES),
        (".json", LINES),
        (".json", json.dumps([json.loads(line) for line in LINES.splitlines()], indent=2)),
    ],
)
def test_every_format_may_be_compressed(suffix: str, content: str, compression: str, tmp_path: Path) -> None:
    path = compress(tmp_path / f"docs{suffix}{compression}", content.encode())
    fractions: list[float] = []
    assert list(open_source(path).documents(fractions.append)) == DOCUMENTS
    assert fractions[-1] == 1.0


def test_the_format_of_an_archive_is_that_of_its_file(tmp_path: Path) -> None:
    path = compress(tmp_path / "export.zip", b"id;text\na;first\n", member="2024/export.csv")
    assert list(open_source(path)) == [Document("a", "first")]


def test_an_archive_must_hold_one_readable_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", "text\nx\n")
        archive.writestr("b.csv", "text\ny\n")
        archive.writestr("__MACOSX/._a.csv", "")
    assert "expected an archive of one file, got 2: unpack it" in error_message(tmp_path / "two.zip")
    path = compress(tmp_path / "page.zip", b"x", member="page.html")
    assert 'holds "page.html": expected a file ending in .jsonl' in error_message(path)
    (tmp_path / "no.zip").write_bytes(b"nothing")
    assert "not a zip archive, or a damaged one" in error_message(tmp_path / "no.zip")


@pytest.mark.parametrize("compression", [".gz", ".zst", ".zip"])
def test_a_damaged_file_is_one_sentence(compression: str, tmp_path: Path) -> None:
    path = compress(tmp_path / f"docs.jsonl{compression}", LINES.encode() * 500)
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[: middle - 4] + b"damage" + whole[middle + 2 :])
    assert "docs.jsonl" in error_message(path)
    path.write_bytes(whole[:middle])
    assert "truncated or damaged" in error_message(path) or "not a zip archive" in error_message(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"text": "t"}, 5]', "docs.json record 2: expected a JSON object, got a number"),
        ('[{"text": "t"}, {"id": "x"}]', 'docs.json record 2: there is no field "text"'),
        ('[{"text": "t"}', "docs.json: not valid JSON"),
        ('[{"text": "\\ud83d"}]', "docs.json record 1: holds half a character"),
        ("[]", "docs.json: there are no documents in it"),
        ('{"text": \n"t"}', "docs.json line 1: not valid JSON"),
    ],
)
def test_an_array_must_hold_objects_with_texts(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "docs.json").write_text(content)
    assert message in error_message(tmp_path / "docs.json")
