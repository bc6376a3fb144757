from __future__ import annotations

import os
from pathlib import Path

import pytest

from snuh.corpus import Document, TextSource, open_source
from snuh.errors import InputError


def read(path: Path) -> list[Document]:
    source = open_source(path)
    assert isinstance(source, TextSource)
    return list(source)


def test_each_text_file_is_a_document_in_the_order_of_paths(tmp_path: Path) -> None:
    files = {
        "b.txt": "top",
        "a/deep/x.md": "\ufeffmarked",
        "a/UP.TXT": "",
        "a/skip.png": "no",
        ".git/config.txt": "hidden",
        "a/.hidden.txt": "hidden",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert read(tmp_path) == [
        Document("a/UP.TXT", "", metadata={"folder": "a"}),
        Document("a/deep/x.md", "marked", metadata={"folder": "a"}),
        Document("b.txt", "top"),
    ]


def test_pipes_and_devices_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    (tmp_path / "link.txt").symlink_to(tmp_path / "a.txt")
    assert [document.id for document in read(tmp_path)] == ["a.txt", "link.txt"]


def test_a_link_to_itself_is_reported(tmp_path: Path) -> None:
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    with pytest.raises(InputError, match=r"cannot read loop.txt: Too many levels of symbolic links"):
        read(tmp_path)


def test_a_huge_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snuh.corpus.text_files.MAX_RECORD_BYTES", 1 << 20)
    (tmp_path / "a.txt").write_bytes(b"x" * (1 << 20))
    assert len(read(tmp_path)) == 1
    (tmp_path / "a.txt").write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(InputError, match=r"a.txt has more than 1 MiB: split it"):
        read(tmp_path)


def test_progress_reaches_one(tmp_path: Path) -> None:
    for number in range(600):
        (tmp_path / f"{number}.txt").write_text("x")
    source = open_source(tmp_path)
    assert isinstance(source, TextSource)
    reports: list[float] = []
    list(source.documents(reports.append))
    assert reports == [0.0, 256 / 600, 512 / 600, 1.0]


def test_a_folder_without_texts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table.xlsx").write_text("")
    with pytest.raises(InputError, match=r"there are no text files in this folder \(looked for \.txt"):
        read(tmp_path)


def test_invalid_utf8_is_refused_with_file_line_and_byte(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "old.txt").write_bytes(b"fine\nline\ncaf\xe9\n")
    with pytest.raises(InputError, match=r"^sub/old\.txt line 3: byte 4 \(0xe9\) is not valid UTF-8"):
        read(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="only POSIX has file names of any bytes")
def test_a_file_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    try:
        Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9.txt")).write_text("x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    with pytest.raises(InputError, match="is not valid UTF-8: rename the file"):
        read(tmp_path)
