from __future__ import annotations

from pathlib import Path

import pytest

from snuh.explain import BitMeaning, Explanation
from tests.docs.test_snippets import ROOT, run_snippets, tickets

__all__ = ["tickets"]  # the fixture


@pytest.mark.slow
def test_the_snippets_of_the_page_run(tickets: Path) -> None:
    namespace = run_snippets(ROOT / "docs" / "explain.md")
    found = namespace["found"]
    assert isinstance(found, Explanation)
    assert {word.word for word in found.hit_words} >= {"printer", "paper"}
    assert isinstance(namespace["meaning"], BitMeaning)
