from __future__ import annotations

import gc
import io
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from snuh.corpus import Document, open_source
from snuh.corpus.document import FieldNames
from snuh.corpus.text_files import StdinSource
from snuh.errors import InputError


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def source(content: bytes) -> StdinSource:
    return StdinSource(stream=io.BytesIO(content))


def test_objects_are_read_as_json_lines() -> None:
    assert list(source(b'\n {"id": "a", "text": "one"}\n')) == [Document("a", "one")]


def test_other_lines_are_texts() -> None:
    assert list(source(b"\none text\n\n[two]\r\n")) == [Document("2", "one text"), Document("4", "[two]")]


def test_fields_of_plain_texts_are_refused() -> None:
    texts = StdinSource(stream=io.BytesIO(b"one text\n"), fields=FieldNames(text="body"))
    with pytest.raises(InputError, match="standard input has no fields"):
        list(texts)


def test_it_can_be_read_twice_and_leaves_nothing_behind(spool: Path) -> None:
    stdin = source(b"one\ntwo\n")
    reports: list[float] = []
    assert list(stdin.documents(reports.append)) == list(stdin) != []
    assert reports[-1] == 1.0
    assert len(list(spool.iterdir())) == 1
    del stdin
    gc.collect()
    assert list(spool.iterdir()) == []


def test_messages_name_standard_input() -> None:
    with pytest.raises(InputError, match=r"^standard input line 2: not valid JSON"):
        list(source(b'{"text": "fine"}\nbroken\n'))
    with pytest.raises(InputError, match=r"^standard input line 1: byte 1 \(0xff\) is not valid UTF-8"):
        list(source(b"\xff\xfet\x00"))
    with pytest.raises(InputError, match=r"^standard input: there are no documents in it"):
        list(source(b""))


def test_a_dash_reads_the_standard_input_of_the_process(spool: Path) -> None:
    program = (
        "import tempfile; from snuh.corpus import open_source\n"
        f"tempfile.tempdir = {str(spool)!r}\n"
        "source = open_source('-', text_field='body')\n"
        "print([d.text for d in source], [d.id for d in source])"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        input='{"body": "piped"}',
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(str(sys.modules["snuh"].__file__)).parents[1])},
    )
    assert (run.stdout, run.stderr) == ("['piped'] ['1']\n", "")
    assert list(spool.iterdir()) == []


def test_opening_does_not_read_yet() -> None:
    assert open_source("-").name == "standard input"
