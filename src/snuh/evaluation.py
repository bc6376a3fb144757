"""Evaluate codes, with the documents of one split as queries, and searches, with judged queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from snuh.corpus import SPLITS
from snuh.corpus.beir import JudgedQueries
from snuh.encoding import EncodedBatch
from snuh.errors import InputError, suggest
from snuh.metrics import Evaluation, RankingQuality, evaluate_codes, ranking_quality

QUERIES_AT_ONCE = 20


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


def evaluate_search(
    rank_many: Callable[[list[str]], Sequence[Sequence[str]]],
    judged: JudgedQueries,
    *,
    progress: Callable[[float], None] | None = None,
) -> dict[str, RankingQuality]:
    """Return the quality of the ranking of each judged query.

    Args:
        rank_many: returns the ids of the documents found for each text, the best first.
        judged: the queries.
        progress: called with the fraction that is done.
    """
    qualities: dict[str, RankingQuality] = {}
    queries = list(judged.texts)
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        part = queries[start : start + QUERIES_AT_ONCE]
        rankings = rank_many([judged.texts[query] for query in part])
        for query, ranking in zip(part, rankings, strict=True):
            qualities[query] = ranking_quality(ranking, judged.judgments[query])
        if progress is not None:
            progress(len(qualities) / len(queries))
    return qualities
