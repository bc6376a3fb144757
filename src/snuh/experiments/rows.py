"""Reading a file of finished runs; needs no lock, as a line that is being written is not whole yet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from snuh.errors import InputError
from snuh.experiments.run import KEY, Row, Run, Select, run_key


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file; what follows the last end of a line was cut, and is left out."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    whole = content.removesuffix(cut_end(content))
    return [_row(line, f"{path} line {number}") for number, line in enumerate(whole.splitlines(), start=1)]


def unfinished(runs: Sequence[Run], rows: Sequence[Row], *, retry: bool) -> list[Run]:
    """Return the runs that have no row; with `retry` a row with an error does not count."""
    finished = {run_key(row) for row in rows if row["error"] is None or not retry}
    return [run for run in runs if run.key not in finished]


def cut_end(content: bytes) -> bytes:
    """Return what follows the last end of a line: a row is written together with its end."""
    return content[content.rfind(b"\n") + 1 :]


def _row(line: bytes, place: str) -> Row:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    needed = (*KEY, "corpus_sha256", "precision", "seconds", "error")
    if not isinstance(row, dict) or any(name not in row for name in needed):
        raise InputError(f"{place} is no row of a run: take the line away, or choose another file")
    if row["select"] not in get_args(Select):
        raise InputError(
            f'{place} is of the protocol "{row["select"]}", expected one of {", ".join(get_args(Select))}: '
            "the row is of another version of snuh, choose another file"
        )
    return row
