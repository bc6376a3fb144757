"""The files of the page; these tests need no browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.server.serving import ROOT

PAGE = ROOT / "src/snuh/server/page"
FILES = sorted(path for path in PAGE.iterdir() if path.is_file())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_loads_from_other_sites_or_inserts_html(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|@import|url\(", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", text)
    assert not re.search(r"\beval\(|new Function", text)
    assert not re.search(r"<script>|<style| style=| on\w+=\"", text)
