"""Plain text: one document a line."""

from __future__ import annotations

from pathlib import Path

from snuh.corpus.lines import Meter, text_lines
from snuh.corpus.records import Records


def read_plain(path: Path, meter: Meter) -> Records:
    """Yield each line that is not blank as a text, named by its line number."""
    for number, line in text_lines(path, meter):
        if not line.isspace() and line:
            yield number, number, {"text": line.rstrip("\r\n")}
