"""The paper's case study: a query, and documents at increasing Hamming distance from it.

The query is not hand-picked: with seed 0 it is the first test document, with seed 1 the second.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from textwrap import shorten
from typing import Any

import numpy as np

from snuh.codes import hamming_blocks
from snuh.encoder import Encoder
from snuh.experiments.corpora import Corpus, open_texts
from snuh.experiments.run import Row, Run
from snuh.experiments.target import Aggregate, Choice, DescribedTables, Table, Target, Variant

DISTANCES = (1, 10, 20, 50, 70, 90)  # as in the paper, for 128 bits
TITLE_WIDTH = 90

DEFAULT = Choice(corpora=("ng20",), methods=("snuh",), bits=(128,), seeds=(0, 1, 2))
QUICK = replace(DEFAULT, seeds=(0,))

DESCRIPTION = (
    "Training documents at increasing Hamming distance from a query, the first test document for seed 0."
)


def examples(run: Run, encoder: Encoder, corpus: Corpus) -> dict[str, Any]:
    """Return the query of a run, and training documents at increasing distance from it."""
    train, test = corpus.splits["train"], corpus.splits["test"]
    query = run.seed % len(test.ids)
    [(_, distances)] = hamming_blocks(encoder.encode(test.X[[query]]), encoder.encode(train.X))
    rows = []
    for distance in DISTANCES:
        wanted = round(distance * run.bits / 128)
        nearest = int(np.argmin(abs(distances[0].astype(np.int64) - wanted)))
        if nearest not in rows:
            rows.append(nearest)
    titles = read_titles(run.corpus, {test.ids[query], *(train.ids[row] for row in rows)})
    return {
        "query": {"labels": list(test.labels[query]), "title": titles[test.ids[query]]},
        "documents": [
            {
                "distance": int(distances[0][row]),
                "labels": list(train.labels[row]),
                "title": titles[train.ids[row]],
            }
            for row in rows
        ],
    }


def read_titles(corpus: str, ids: Collection[str]) -> dict[str, str]:
    """Return the titles of documents by id."""
    return {doc.id: title(doc.text) for doc in open_texts(corpus).documents() if doc.id in ids}


def title(text: str) -> str:
    """Return the subject line of a message, or the first line of any other text, shortened."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    subjects = [line.removeprefix("Subject:").strip() for line in lines if line.startswith("Subject:")]
    return shorten((subjects or lines or [""])[0], TITLE_WIDTH, placeholder=" …")


def variants(choice: Choice) -> list[Variant]:
    """Return each method, with documents to show."""
    return [Variant(method, method, artifact="examples") for method in choice.methods]


def table(choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> DescribedTables:
    """Return one table per query."""
    return DescribedTables(
        DESCRIPTION, [query_table(row) for row in Aggregate(choice, rows).all_rows(variants)]
    )


def query_table(row: Row) -> Table:
    """Return the table of one run: the query, then the documents."""
    query, documents = row["artifact_data"]["query"], row["artifact_data"]["documents"]
    lines = [_line("query", query), *(_line(str(document["distance"]), document) for document in documents)]
    caption = f"{row['corpus']}, {row['method']}, {row['bits']} bits, seed {row['seed']}"
    return Table(("distance", "labels", "title"), lines, caption)


def _line(distance: str, document: Mapping[str, Any]) -> tuple[str, ...]:
    return distance, ", ".join(document["labels"]), document["title"]


CASE_STUDY = Target("case-study", DEFAULT, QUICK, variants, table)
