"""Evaluate codes: the documents of one split are queries against those of another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from snuh.corpus import SPLITS
from snuh.encoding import EncodedBatch
from snuh.errors import InputError, suggest
from snuh.metrics import Evaluation, evaluate_codes


@dataclass
class _Part:
    """The codes and labels of one split."""

    split: str
    blocks: list[NDArray[np.uint8]] = field(default_factory=list)
    labels: list[tuple[str, ...]] = field(default_factory=list)

    def codes(self) -> NDArray[np.uint8]:
        return np.concatenate(self.blocks)  # (documents, bytes)


def evaluate_splits(
    batches: Iterable[EncodedBatch],
    *,
    name: str,
    query_split: str = "test",
    database_split: str = "train",
    cutoffs: Sequence[int] | None = None,
) -> Evaluation:
    """Evaluate the codes of a source; documents without a split belong to train.

    InputError, with the `name` of the source, if a split is missing or has no labels.
    """
    _check_splits(query_split, database_split)
    queries, database = _Part(query_split), _Part(database_split)
    for batch in batches:
        splits = np.array([document.split or "train" for document in batch.documents])
        for part in (queries, database):
            rows = np.flatnonzero(splits == part.split)
            part.blocks.append(batch.codes[rows])
            part.labels.extend(batch.documents[row].labels for row in rows)
    for part in (queries, database):
        _check_part(part, name)
    return evaluate_codes(queries.codes(), queries.labels, database.codes(), database.labels, cutoffs=cutoffs)


def _check_splits(query_split: str, database_split: str) -> None:
    for split in (query_split, database_split):
        if split not in SPLITS:
            raise InputError(f'a split must be train, val or test, got "{split}"{suggest(split, SPLITS)}')
    if query_split == database_split:
        raise InputError(
            f"the queries and the database are both {query_split}, so each document would find itself: "
            "choose two different splits"
        )


def _check_part(part: _Part, name: str) -> None:
    if not part.labels:
        raise InputError(
            f'{name} has no documents with the split {part.split}: add "split": "{part.split}" to some, '
            "or choose other splits with --query-split and --database-split"
        )
    if not any(part.labels):
        raise InputError(
            f'no {part.split} document of {name} has labels, which evaluation needs: add the field "labels"'
        )
