from __future__ import annotations

from pathlib import Path

from snuh.corpus import open_source
from snuh.corpus.document import TextSource
from snuh.corpus.reader import ProgressSource


def test_each_iteration_is_reported_to_its_own_callback(tmp_path: Path) -> None:
    (tmp_path / "docs.txt").write_text("one\ntwo\n")
    source = open_source(tmp_path / "docs.txt")
    assert isinstance(source, TextSource)
    first: list[float] = []
    second: list[float] = []
    fractions: list[float] = []
    watched = ProgressSource(source, first.append, second.append)
    assert watched.name == source.name
    assert list(watched) == list(source)
    assert (first[-1], second) == (1.0, [])
    assert list(watched.documents()) == list(source)
    assert second == first
    assert list(watched.documents(fractions.append)) == list(source)  # more readings than callbacks
    assert fractions == first == second
