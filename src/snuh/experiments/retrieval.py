"""Searches by judged queries: the modes of a collection beside TF-IDF and LSA, at several code lengths.

A corpus is a folder in the layout of BEIR. Models are trained on its documents alone; neither queries nor
judgments take part. LSA has as many dimensions as codes have bits.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.collection import Collection
from snuh.collection.query import SearchOptions
from snuh.corpus import Document
from snuh.corpus.beir import BeirSource, JudgedQueries, is_beir_folder, read_judged
from snuh.corpus.source import VARIABLE
from snuh.errors import InputError
from snuh.evaluation import evaluate_search
from snuh.hasher import TextHasher
from snuh.metrics import RankingQuality
from snuh.model import Model

DEFAULT_BITS = (16, 32, 64, 128)
RANKED = 1_000  # documents of each ranking that are compared with the judgments
MEASURES = {"ndcg_at_10": "nDCG@10", "average_precision": "MAP", "recall_at_100": "recall@100"}
SEARCHES = ("BM25", "TF-IDF", "LSA", "codes, Hamming", "codes, asymmetric", "hybrid")
WITHOUT_BITS = ("BM25", "TF-IDF")

RankMany: TypeAlias = Callable[[list[str]], Sequence[Sequence[str]]]
Found: TypeAlias = dict[str, RankingQuality]  # by query


@dataclass(frozen=True, slots=True)
class JudgedCorpus:
    """A corpus with its queries."""

    name: str
    documents: list[Document]
    judged: JudgedQueries

    @classmethod
    def read(cls, folder: Path) -> JudgedCorpus:
        """Read a folder."""
        if not is_beir_folder(folder):
            raise InputError(
                f"{folder} is not in the layout of BEIR: expected corpus.jsonl, queries.jsonl and qrels/"
            )
        return cls(folder.name, list(BeirSource(folder)), read_judged(folder))

    @property
    def ids(self) -> list[str]:
        """The ids of the documents."""
        return [document.id for document in self.documents]

    @property
    def texts(self) -> list[str]:
        """The texts of the documents."""
        return [document.text for document in self.documents]


def default_folders() -> list[Path]:
    """Return the folders of judged corpora in SNUH_DATA."""
    data = Path(os.environ.get(VARIABLE, ".")) / "ir"
    folders = sorted(folder for folder in data.glob("*") if is_beir_folder(folder))
    if not folders:
        raise InputError(f"{VARIABLE} has no folders ir/NAME in the layout of BEIR: name some with --corpus")
    return folders


def train(corpus: JudgedCorpus, *, bits: int, seed: int) -> Model:
    """Train the default method on the documents of a corpus."""
    model = TextHasher(bits=bits, seed=seed).fit(corpus.texts).model_
    assert model is not None
    return model


def searches(corpus: JudgedCorpus, model: Model) -> Iterator[tuple[str, Found]]:
    """Evaluate every search with a model."""
    yield from _collection_searches(corpus, model)
    yield from _cosine_searches(corpus, model)


def _collection_searches(corpus: JudgedCorpus, model: Model) -> Iterator[tuple[str, Found]]:
    options: dict[str, SearchOptions] = {
        "BM25": {"mode": "words"},
        "codes, Hamming": {"mode": "codes"},
        "codes, asymmetric": {"rerank": "asymmetric", "shortlist": len(corpus.documents)},
        "hybrid": {"mode": "hybrid"},
    }
    with (
        TemporaryDirectory() as folder,
        Collection.create(Path(folder) / "collection", model) as collection,
    ):
        collection.add(corpus.documents)
        for name, chosen in options.items():
            chosen |= {"k": RANKED, "characters": 1}
            yield name, evaluate_search(_rank_by(collection, chosen), corpus.judged)


def _rank_by(collection: Collection, options: SearchOptions) -> RankMany:
    def rank_many(queries: list[str]) -> list[list[str]]:
        hits = collection.search_many(queries, **options)
        return [[hit.document.id for hit in one] for one in hits]

    return rank_many


def _cosine_searches(corpus: JudgedCorpus, model: Model) -> Iterator[tuple[str, Found]]:
    """Rank by the cosine of the model's own TF-IDF rows, and of their LSA vectors."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    assert model.features is not None
    features, ids = model.features, corpus.ids
    rows = features.transform(corpus.texts)
    svd = TruncatedSVD(model.bits, random_state=0).fit(rows)
    vectors = normalize(svd.transform(rows))

    def by_tfidf(queries: list[str]) -> list[list[str]]:
        return best(np.asarray((features.transform(queries) @ rows.T).todense()), ids)

    def by_lsa(queries: list[str]) -> list[list[str]]:
        return best(normalize(svd.transform(features.transform(queries))) @ vectors.T, ids)

    yield "TF-IDF", evaluate_search(by_tfidf, corpus.judged)
    yield "LSA", evaluate_search(by_lsa, corpus.judged)


def best(scores: NDArray[np.floating], ids: Sequence[str]) -> list[list[str]]:
    """Return the ids with the highest scores of each row, ties in order."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :RANKED]
    return [[ids[index] for index in row] for row in order.tolist()]


def averages(found: Found) -> dict[str, float]:
    """Return the mean of every measure over the queries."""
    values = np.array([astuple(quality) for quality in found.values()]).mean(axis=0)
    names = [field.name for field in fields(RankingQuality)]
    return {name: round(float(value), 4) for name, value in zip(names, values, strict=True)}


# The table, from a file with a line for each corpus, seed and code length

Row: TypeAlias = dict[str, Any]


def run(folders: Iterable[Path], *, bits: Sequence[int], seeds: Sequence[int], path: Path) -> Iterator[Row]:
    """Evaluate what a file has not got yet; yield each row once it is in the file."""
    done = {_key(row) for row in read_rows(path)}
    for folder in folders:
        corpus: JudgedCorpus | None = None
        for length in bits:
            for seed in seeds:
                if (folder.name, length, seed) in done:
                    continue
                corpus = corpus or JudgedCorpus.read(folder)
                measured = searches(corpus, train(corpus, bits=length, seed=seed))
                row: Row = {
                    "corpus": corpus.name,
                    "bits": length,
                    "seed": seed,
                    "searches": {name: averages(found) for name, found in measured},
                }
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                yield row


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file; none if it is missing."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _key(row: Mapping[str, Any]) -> tuple[str, int, int]:
    return row["corpus"], row["bits"], row["seed"]


def markdown(rows: Sequence[Row], corpora: Sequence[str], bits: Sequence[int]) -> str:
    """Return a table of all searches: the mean over seeds for each corpus, and the mean over corpora."""
    chosen = [row for row in rows if row["corpus"] in corpora and row["bits"] in bits]
    names = [name for name in corpora if any(row["corpus"] == name for row in chosen)]
    if not names:
        return "No search was evaluated yet."
    lines = [
        f"{' / '.join(MEASURES.values())} of judged queries",
        "",
        "| search | bits | " + " | ".join([*names, "mean"]) + " |",
        "|---|---|" + "---|" * (len(names) + 1),
    ]
    for search in SEARCHES:
        for length in (None,) if search in WITHOUT_BITS else bits:
            means = [
                _mean(row for row in chosen if row["corpus"] == name and length in (None, row["bits"])).get(
                    search
                )
                for name in names
            ]
            known = [values for values in means if values is not None]
            if not known:
                continue
            cells = ["" if values is None else _cell(values) for values in means]
            overall = _cell(np.mean(known, axis=0)) if len(known) == len(names) else ""
            lines.append(f"| {search} | {length or ''} | " + " | ".join([*cells, overall]) + " |")
    return "\n".join(lines)


def _mean(rows: Iterable[Row]) -> dict[str, NDArray[np.float64]]:
    """Return the mean measures of each search over rows."""
    values: dict[str, list[list[float]]] = {}
    for row in rows:
        for search, measured in row["searches"].items():
            values.setdefault(search, []).append([measured[measure] for measure in MEASURES])
    return {search: np.mean(listed, axis=0) for search, listed in values.items()}


def _cell(values: NDArray[np.float64]) -> str:
    return " / ".join(f"{value:.3f}".lstrip("0") for value in values)
