"""One run: a method learns codes of a corpus, once; and what tells runs apart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

from snuh.errors import InputError, suggest

Select = Literal["label-free", "labels"]
"""What chooses: a held-out score that sees no labels, or, as in the paper, precision by validation labels."""

Observe = Literal["codes", "examples", "map"]
"""What is looked at beside the figures of the codes, which every run has."""

Row: TypeAlias = dict[str, Any]  # a line of a results file, as JSON has it

KEY = ("corpus", "method", "bits", "seed", "select", "parameters", "features", "observe", "documents")


@dataclass(frozen=True)
class Run:
    """What to do; `parameters` and `features` hold only what is not left at its default."""

    corpus: str
    method: str
    bits: int
    seed: int
    select: Select
    parameters: Mapping[str, Any]
    features: Mapping[str, Any]
    observe: Observe = "codes"
    documents: int | None = None  # to train on at most, the first of the corpus; None: all

    def __str__(self) -> str:
        given = "".join(f" {name}={value}" for name, value in self.parameters.items())
        docs = f" {self.documents} documents" if self.documents else ""
        return f"{self.corpus} {self.method} {self.bits} bits seed {self.seed}{given}{docs}"

    @property
    def key(self) -> str:
        """What tells this run from others."""
        return run_key(asdict(self))


def run_key(row: Mapping[str, Any]) -> str:
    """Return the key of the run that a row is of."""
    return json.dumps([_plain(row[name]) for name in KEY], sort_keys=True)


def check_select(value: str) -> Select:
    """Return the protocol of that name, or raise InputError."""
    for known in get_args(Select):
        if value == known:
            select: Select = known
            return select
    names = get_args(Select)
    raise InputError(f'select must be one of {", ".join(names)}, got "{value}"{suggest(value, names)}')


def _plain(value: Any) -> Any:  # whatever JSON can say
    """Let 1.0 and 1 be the same setting."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value
