"""A run is one fit of one method on one corpus; a row is its line in a results file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast, get_args

from snuh.errors import InputError, suggest

Select = Literal["label-free", "labels"]
"""What selects the epoch: a held-out score without labels or, as in the paper, the validation labels."""

Artifact = Literal["codes", "examples", "map"]
"""What a run stores beside its metrics: nothing, the documents of the case study, or the points of a map."""

Row: TypeAlias = dict[str, Any]  # a line of a results file, decoded

KEY_FIELDS = ("corpus", "method", "bits", "seed", "select", "parameters", "features", "observe", "documents")
REQUIRED_FIELDS = (*KEY_FIELDS, "corpus_sha256", "precision", "seconds", "error")


@dataclass(frozen=True)
class Run:
    """A run to do; `parameters` and `features` hold only the settings that differ from the defaults."""

    corpus: str
    method: str
    bits: int
    seed: int
    select: Select
    parameters: Mapping[str, Any]
    features: Mapping[str, Any]
    observe: Artifact = "codes"
    documents: int | None = None  # train on the first n documents of the corpus; None: all

    def __str__(self) -> str:
        settings = "".join(f" {name}={value}" for name, value in self.parameters.items())
        docs = f" {self.documents} documents" if self.documents else ""
        return f"{self.corpus} {self.method} {self.bits} bits seed {self.seed}{settings}{docs}"

    @property
    def key(self) -> str:
        """The key that identifies this run."""
        return run_key(asdict(self))


def run_key(row: Mapping[str, Any]) -> str:
    """Return the key of the run that a row belongs to."""
    return json.dumps([_normalize(row[name]) for name in KEY_FIELDS], sort_keys=True)


def check_select(value: str) -> Select:
    """Return `value` as a protocol, or raise InputError."""
    names = get_args(Select)
    if value not in names:
        raise InputError(f'select must be one of {", ".join(names)}, got "{value}"{suggest(value, names)}')
    return cast(Select, value)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a results file.

    An incomplete last line is ignored, so reading needs no lock while other processes append.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    complete = content.removesuffix(incomplete_line(content))
    return [
        _parse_row(line, f"{path} line {number}")
        for number, line in enumerate(complete.splitlines(), start=1)
    ]


def latest_rows(rows: Sequence[Row]) -> dict[str, Row]:
    """Return rows by the key of their run; of several rows of a run the last one counts."""
    return {run_key(row): row for row in rows}


def pending_runs(runs: Sequence[Run], rows: Sequence[Row], *, retry: bool) -> list[Run]:
    """Return the runs without a row; with `retry`, also those whose rows all have an error."""
    finished = {run_key(row) for row in rows if row["error"] is None or not retry}
    return [run for run in runs if run.key not in finished]


def incomplete_line(content: bytes) -> bytes:
    """Return what follows the last newline: a complete row ends with one."""
    return content[content.rfind(b"\n") + 1 :]


def _parse_row(line: bytes, location: str) -> Row:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict) or any(name not in row for name in REQUIRED_FIELDS):
        raise InputError(f"{location} is not a row of a run: remove the line, or choose another file")
    if row["select"] not in get_args(Select):
        raise InputError(
            f'{location} has the protocol "{row["select"]}", expected one of {", ".join(get_args(Select))}: '
            "it was written by another version of snuh, choose another file"
        )
    return row


def _normalize(value: Any) -> Any:  # any JSON value
    """Make 1.0 and 1 the same setting."""
    if isinstance(value, Mapping):
        return {name: _normalize(item) for name, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value
