from __future__ import annotations

from pathlib import Path

import pytest

from snuh.experiments.corpora import Corpus, read_corpus
from tests.experiments.worlds import data_folder


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that SNUH_DATA names, with one corpus, toy; the test's own folder is the current one."""
    monkeypatch.chdir(tmp_path)
    folder = data_folder(tmp_path)
    monkeypatch.setenv("SNUH_DATA", str(folder))
    return folder


@pytest.fixture
def toy(data: Path) -> Corpus:
    """The corpus toy, read."""
    return read_corpus("toy", {})
