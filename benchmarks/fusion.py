"""Ways to add up words and codes in a hybrid search, with judged queries: nDCG@10, MAP, recall@100.

    python -m benchmarks.fusion ir/cranfield ir/npl ir/med ir/cisi > results/fusion.json

Every way scores all documents, with dense arrays and one matrix product for all queries, so that it is
independent of the index of a collection. "z-scores, feedback" is what a collection does, and the other ways
with feedback differ from it by what their names say; "best score" divides scores by that of the best. A
learnt weight of the codes needs no labels: it is the one with which the second halves of 200 documents are
found best by five words of the first. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.machine import facts
from benchmarks.retrieval import trained
from snuh.codes import unpack
from snuh.experiments.retrieval import DEFAULT_BITS, MEASURES, JudgedCorpus, averages, best
from snuh.metrics import ranking_quality
from snuh.model import Model

Scores = NDArray[np.float64]  # (queries, documents)
WEIGHTS = (0.0, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0)
PSEUDO_QUERIES, PSEUDO_WORDS = 200, 5


@dataclass(frozen=True)
class Way:
    """How scores are made and added up."""

    fusion: str = "z-scores"
    final: str | None = None  # of the second pass, if it is another
    k1: float = 1.2
    b: float = 0.75
    weight: float | None = 1.0  # of the codes; None to learn it
    first_weight: float = 0.7  # of the codes, to find the documents for feedback
    documents: int = 10  # for feedback; 0 for none
    terms: int = 30
    fraction: float = 0.5  # of feedback in the query


DEFAULT = Way()
WAYS = {
    "z-scores": replace(DEFAULT, documents=0),
    "best score": replace(DEFAULT, fusion="best score", documents=0),
    "RRF 60": replace(DEFAULT, fusion="RRF 60", documents=0),
    "learnt weight": replace(DEFAULT, weight=None, documents=0),
    "z-scores, feedback": DEFAULT,
    "best score, feedback": replace(DEFAULT, fusion="best score", first_weight=1.0),
    "RRF 60, feedback": replace(DEFAULT, fusion="RRF 60", first_weight=1.0),
    "learnt weight, feedback": replace(DEFAULT, weight=None),
    "b 0.5": replace(DEFAULT, b=0.5),
    "words alone": replace(DEFAULT, documents=0, weight=0.0),
    "words alone, b 0.5": replace(DEFAULT, b=0.5, documents=0, weight=0.0),
    "first weight 1": replace(DEFAULT, first_weight=1.0),
    "weight 0.7": replace(DEFAULT, weight=0.7),
    "weight 1.4": replace(DEFAULT, weight=1.4),
    "5 documents": replace(DEFAULT, documents=5),
    "30 documents": replace(DEFAULT, documents=30),
    "5 terms": replace(DEFAULT, terms=5),
    "50 terms": replace(DEFAULT, terms=50),
    "codes alone": replace(DEFAULT, fusion="codes", documents=0),
    "codes alone, feedback": replace(DEFAULT, final="codes"),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--bits", type=int, nargs="+", default=DEFAULT_BITS)
    parser.add_argument("--models", type=Path, help="folder in which models are kept for the next run")
    options = parser.parse_args()
    results = []
    for folder in options.folders:
        corpus = JudgedCorpus.read(folder)
        for bits in options.bits:
            model = trained(corpus, bits=bits, seed=0, models=options.models)
            world = World(corpus, model)
            for name, way in WAYS.items():
                chosen = replace(way, weight=world.learn_weight(way)) if way.weight is None else way
                row = {"corpus": corpus.name, "bits": bits, "way": name, "weight": chosen.weight}
                results.append(row | world.evaluate(world.rank(chosen)))
                print(*results[-1].values(), file=sys.stderr)
    json.dump(
        {
            "machine": facts(),
            "ways": {name: asdict(way) for name, way in WAYS.items()},
            "means": means(results),
            "results": results,
        },
        sys.stdout,
        indent=2,
    )
    print()


def means(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the means over corpora."""
    rows = []
    for bits, name in dict.fromkeys((row["bits"], row["way"]) for row in results):
        chosen = [row for row in results if (row["bits"], row["way"]) == (bits, name)]
        values = {measure: round(float(np.mean([row[measure] for row in chosen])), 4) for measure in MEASURES}
        rows.append({"way": name, "bits": bits, **values})
    return rows


class World:
    """A corpus with counts of its terms, and its codes."""

    def __init__(self, corpus: JudgedCorpus, model: Model) -> None:
        assert model.features is not None
        self.corpus, self.model, self.features = corpus, model, model.features
        self.ids = corpus.ids
        self.tokens = [self.features.analyzer.terms(text) for text in corpus.texts]
        self.columns = {
            term: column for column, term in enumerate(sorted({t for words in self.tokens for t in words}))
        }
        self.counts = self.matrix(self.tokens)
        self.signs = self.signs_of(corpus.texts)
        self.queries = list(corpus.judged.texts)
        texts = [corpus.judged.texts[query] for query in self.queries]
        self.words = self.matrix([self.features.analyzer.terms(text) for text in texts])
        self.margins = self.margins_of(texts)
        self.bm25: dict[tuple[float, float], Any] = {}

    def matrix(self, tokens: Sequence[Sequence[str]]) -> Any:
        """Return counts of terms (texts, terms)."""
        rows, columns, values = [], [], []
        for row, words in enumerate(tokens):
            for term, count in Counter(words).items():
                if term in self.columns:
                    rows.append(row)
                    columns.append(self.columns[term])
                    values.append(float(count))
        return sparse.csr_matrix((values, (rows, columns)), shape=(len(tokens), len(self.columns)))

    def signs_of(self, texts: Sequence[str]) -> Scores:
        rows = self.features.transform(texts)
        signs = 2.0 * unpack(self.model.encoder.encode(rows)) - 1.0
        signs[np.diff(rows.indptr) == 0] = 0.0
        return signs

    def margins_of(self, texts: Sequence[str]) -> Scores:
        rows = self.features.transform(texts)
        margins = self.model.encoder.margins(rows)
        margins[~np.isfinite(margins)] = 0.0
        margins[np.diff(rows.indptr) == 0] = 0.0
        return unit(margins)

    def evaluate(self, totals: Scores) -> dict[str, float]:
        rankings = best(totals, self.ids)
        return averages(
            {
                query: ranking_quality(ranking, self.corpus.judged.judgments[query])
                for query, ranking in zip(self.queries, rankings, strict=True)
            }
        )

    def rank(self, way: Way) -> Scores:
        """Return the scores of all documents for the judged queries."""
        assert way.weight is not None
        if (way.k1, way.b) not in self.bm25:
            self.bm25[way.k1, way.b] = bm25(self.counts, way)
        weights, idf = self.bm25[way.k1, way.b]
        words, margins = sparse.csr_matrix(self.words), self.margins
        first = way.first_weight if way.documents else way.weight
        totals = fuse(way.fusion, dense(words @ weights.T), margins @ self.signs.T, first)
        if not way.documents:
            return totals
        fractions = normalized(self.counts)
        expanded, directions = [], []
        for index, row in enumerate(totals):
            documents = np.argsort(-row, kind="stable")[: way.documents]
            shares = 1.0 / np.arange(1, len(documents) + 1)
            related = dense(sparse.csr_matrix(shares) @ fractions[documents])[0] * idf
            related[np.argsort(-related, kind="stable")[way.terms :]] = 0.0
            total = related.sum() or 1.0
            own = dense(normalized(words[index]))[0]
            expanded.append((1.0 - way.fraction) * own + way.fraction * related / total)
            directions.append(shares @ self.signs[documents])
        margins = margins + unit(np.array(directions))
        by_words = dense(sparse.csr_matrix(np.array(expanded)) @ weights.T)
        return fuse(way.final or way.fusion, by_words, margins @ self.signs.T, way.weight)

    def learn_weight(self, way: Way) -> float:
        """Return the weight of codes with which halves of documents find the other half best."""
        rng = np.random.default_rng(0)
        long = [row for row, words in enumerate(self.tokens) if len(words) >= 4 * PSEUDO_WORDS]
        chosen = rng.choice(long, size=min(PSEUDO_QUERIES, len(long)), replace=False)
        texts = self.corpus.texts
        queries, halves = [], []
        for row in chosen.tolist():
            words = texts[row].split()
            middle = len(words) // 2
            queries.append(" ".join(rng.choice(words[:middle], size=PSEUDO_WORDS, replace=False)))
            halves.append(" ".join(words[middle:]))
        counts, signs = self.counts.tolil(), self.signs.copy()
        counts[chosen] = self.matrix([self.features.analyzer.terms(text) for text in halves]).tolil()
        signs[chosen] = self.signs_of(halves)
        weights, _ = bm25(counts.tocsr(), way)
        words = self.matrix([self.features.analyzer.terms(text) for text in queries])
        by_words, by_codes = dense(words @ weights.T), self.margins_of(queries) @ signs.T
        quality = []
        for weight in WEIGHTS:
            totals = fuse(way.fusion, by_words, by_codes, weight)
            own = totals[np.arange(len(chosen)), chosen]
            quality.append(float((1.0 / (1 + (totals > own[:, None]).sum(axis=1))).mean()))
        return WEIGHTS[int(np.argmax(quality))]


def bm25(counts: Any, way: Way) -> tuple[Any, Scores]:
    """Return BM25's weights of terms in documents (documents, terms), and the idf of terms."""
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    frequencies = np.diff(counts.tocsc().indptr)
    idf = np.log1p((len(lengths) - frequencies + 0.5) / (frequencies + 0.5))
    entries = counts.tocoo()
    norm = way.k1 * (1 - way.b + way.b * lengths[entries.row] / max(1.0, lengths.mean()))
    values = entries.data * (way.k1 + 1) / (entries.data + norm) * idf[entries.col]
    return sparse.csr_matrix((values, (entries.row, entries.col)), shape=counts.shape), idf


def fuse(fusion: str, words: Scores, codes: Scores, weight: float) -> Scores:
    """Add up the scores of words and codes."""
    if fusion == "z-scores":
        return standardized(words) + weight * standardized(codes)
    if fusion == "codes":
        return codes
    if fusion == "best score":
        return normalized_to_best(words) + weight * normalized_to_best(codes)
    constant = float(fusion.removeprefix("RRF "))
    return 1.0 / (constant + ranks(words)) + weight / (constant + ranks(codes))


def standardized(scores: Scores) -> Scores:
    deviations = scores.std(axis=1, keepdims=True)
    return (scores - scores.mean(axis=1, keepdims=True)) / np.where(deviations > 1e-9, deviations, np.inf)


def normalized_to_best(scores: Scores) -> Scores:
    return scores / np.maximum(scores.max(axis=1, keepdims=True), 1e-9)


def ranks(scores: Scores) -> Scores:
    order = np.argsort(-scores, axis=1, kind="stable")
    result = np.empty(scores.shape)
    np.put_along_axis(result, order, np.arange(1.0, scores.shape[1] + 1)[None, :], axis=1)
    return result


def normalized(counts: Any) -> Any:
    """Divide the rows of counts by their sums."""
    sums = np.asarray(counts.sum(axis=1)).ravel()
    return sparse.csr_matrix(sparse.diags(1.0 / np.maximum(sums, 1.0)) @ counts)


def unit(vectors: Scores) -> Scores:
    result: Scores = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return result


def dense(matrix: Any) -> Scores:
    return np.asarray(matrix.todense())


if __name__ == "__main__":
    main()
