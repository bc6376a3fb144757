"""Closed and full streams, other encodings, loops of links, huge numbers, and systems that lack modules."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from snuh.collection import Collection
from snuh.errors import InputError
from tests.cli.running import environment, run
from tests.collection.worlds import documents, toy_model

WITHOUT_FCNTL = """
import sys
sys.modules["fcntl"] = None
sys.argv = {arguments!r}
from snuh.cli import main
main()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("manners") / "c"
    with Collection.create(path, toy_model()) as collection:
        collection.add(documents(12))
        collection.add([{"id": "boat", "text": "ship \N{SHIP}"}])
    yield path


def shell(command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which "snuh" is the command."""
    script = f'snuh() {{ "{sys.executable}" -m snuh.cli "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", script],
        env=environment() | variables,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=120,
    )


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("snuh search {c} ship > /dev/full", 74, "done, but the results could not be written"),
        ("snuh info {c} --json > /dev/full", 74, "done, but the results could not be written"),
        ("snuh search {c} ship >&-", 0, ""),
        ("snuh add {c} - <&-", 2, "standard input is closed"),
        ("snuh info nothing 2>&-", 2, ""),
        ("ln -s loop loop; snuh info loop", 2, "symbolic links"),
        ("ln -s loop loop; snuh fit x --out loop", 2, "loop of symbolic links"),
        ("ln -s loop loop; snuh serve loop", 2, "loop of symbolic links"),
        ("snuh search {c} ship -k 99999999999999999999999", 0, ""),
    ],
)
def test_no_traceback(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = shell(command.format(c=folder))
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr and "Exception ignored" not in ran.stderr
    assert message in ran.stderr and len(ran.stderr.splitlines()) <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--seed", "99999999999999999999999"), "seed must be below"),
        (("--set", "batch_size=99999999999999999999"), "batch_size"),
    ],
)
def test_huge_numbers_are_refused_in_one_line(tmp_path: Path, options: tuple[str, str], message: str) -> None:
    (tmp_path / "x.txt").write_text("ship\n")
    ran = run("fit", tmp_path / "x.txt", "--out", tmp_path / "m", *options)
    assert ran.code == 2 and message in ran.stderr and len(ran.stderr.splitlines()) == 1


def test_a_write_is_done_although_its_summary_cannot_be_printed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "new.jsonl").write_text('{"id": "full", "text": "ship"}')
    ran = shell(f"snuh add {folder} {tmp_path}/new.jsonl > /dev/full")
    assert ran.returncode == 74
    with Collection(folder) as collection:
        assert "full" in collection
        collection.delete(["full"])


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_characters_that_an_encoding_lacks_are_replaced_or_escaped(folder: Path, encoding: str) -> None:
    ran = shell(f"snuh search {folder} ship -k 50", PYTHONIOENCODING=encoding)
    assert ran.returncode == 0 and "boat" in ran.stdout and "Traceback" not in ran.stderr
    ran = shell(f"snuh search {folder} ship -k 50 --json", PYTHONIOENCODING=encoding)
    hits = {hit["id"]: hit["text"] for hit in json.loads(ran.stdout)["hits"]}
    assert hits["boat"] == "ship \N{SHIP}"


def test_python_callers_get_one_sentence(folder: Path) -> None:
    with Collection(folder) as collection:
        with pytest.raises(InputError, match="a query must be a text, got NoneType"):
            collection.search(None)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="where must be a filter"):
            collection.search("ship", where=5)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="where must be a filter"):
            list(collection.documents(where=5))  # type: ignore[arg-type]
        assert len(collection.search_many(text for text in ("ship", "fog"))) == 2


@pytest.mark.parametrize("command", [["serve"], ["tune", "x.txt", "--out", "t", "--bits", "16"]])
def test_what_needs_posix_says_so(folder: Path, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "x.txt").write_text("ship fog\n" * 30)
    arguments = [*command, str(folder)] if command == ["serve"] else command
    program = WITHOUT_FCNTL.format(arguments=["snuh", *arguments])
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment(), cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 2 and ran.stderr.startswith(f'snuh: "snuh {command[0]}" needs Linux or macOS')
    assert len(ran.stderr.splitlines()) == 1


def test_collections_work_without_locks(folder: Path) -> None:
    arguments = ["snuh", "search", str(folder), "ship", "--json"]
    program = WITHOUT_FCNTL.format(arguments=arguments)
    ran = subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, text=True)
    assert ran.returncode == 0 and json.loads(ran.stdout)["hits"]
