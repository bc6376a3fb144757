"""The two sides of an evaluation: codes and labels of the queries and of the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from snuh.cli.display import display
from snuh.cli.encoding import encode_source
from snuh.corpus import SPLITS, MatrixSource, TextSource
from snuh.errors import InputError, suggest
from snuh.metrics import CUTOFFS, HEADLINE_CUTOFF, Evaluation, evaluate_codes
from snuh.model import Model


@dataclass
class Part:
    """The codes and labels of one split."""

    split: str
    blocks: list[NDArray[np.uint8]] = field(default_factory=list)
    labels: list[tuple[str, ...]] = field(default_factory=list)

    def codes(self) -> NDArray[np.uint8]:
        """Return all codes, (documents, bytes)."""
        return np.concatenate(self.blocks)


@dataclass(frozen=True)
class Scored:
    """An evaluation, and what codes drawn at random would reach."""

    evaluation: Evaluation
    chance: float


def check_split(split: str) -> None:
    """Raise InputError where there is no such split."""
    if split not in SPLITS:
        raise InputError(f'a split is train, val or test, got "{split}"{suggest(split, SPLITS)}')


def read_parts(
    model: Model, source: TextSource | MatrixSource, query_split: str, database_split: str
) -> tuple[Part, Part]:
    """Encode the two splits of a source; InputError where one is missing or has no labels."""
    queries, database = Part(query_split), Part(database_split)
    with display() as shown:
        for batch in encode_source(model, source, progress=shown.stage("Encoding")):
            splits = np.array([document.split or "train" for document in batch.documents])
            for part in (queries, database):
                chosen = np.flatnonzero(splits == part.split)
                part.blocks.append(batch.codes[chosen])
                part.labels.extend(batch.documents[row].labels for row in chosen)
    for part in (queries, database):
        _check_part(part, source.name)
    return queries, database


def _check_part(part: Part, name: str) -> None:
    if not part.labels:
        raise InputError(
            f'{name} has no documents with the split {part.split}: give some "split": "{part.split}", '
            "or choose others with --query-split and --database-split"
        )
    if not any(part.labels):
        raise InputError(
            f'no {part.split} document of {name} has labels, which evaluation needs: add the field "labels"'
        )


def score_parts(queries: Part, database: Part, *, cutoffs: Sequence[int] | None) -> Scored:
    """Evaluate the codes; without `cutoffs`, at the usual ones that the database can fill."""
    documents = len(database.labels)
    usual = tuple(k for k in CUTOFFS if k <= documents or k == HEADLINE_CUTOFF)
    chosen = usual if cutoffs is None else tuple(cutoffs)
    # The precision of the whole database is what random codes reach at any cut-off.
    evaluation = evaluate_codes(
        queries.codes(), queries.labels, database.codes(), database.labels, cutoffs=(*chosen, documents)
    )
    precision = {k: evaluation.precision[k] for k in chosen}
    return Scored(replace(evaluation, precision=precision), evaluation.precision[documents])
