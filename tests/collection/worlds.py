"""Small models without training, and a plain model of what a collection should hold and answer."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from snuh import encoding
from snuh.codes import unpack
from snuh.collection import Collection
from snuh.collection.local import code_table, word_table
from snuh.corpus import Document
from snuh.encoder import Encoder, Layer
from snuh.features import TfidfFeatures
from snuh.filters import matches, parse
from snuh.model import Model, load
from snuh.search import Hit
from tests.reference.ranking import bm25, hybrid

WORDS = ["harbour", "ship", "dawn", "market", "price", "ice", "fog", "sail", "coin", "trade", "wind", "rope"]
UNKNOWN = "zzz qqq"  # no model knows these


@cache
def toy_model(seed: int = 0, *, bits: int = 16) -> Model:
    """Return a model with random weights: few bits, so that many documents are equally far."""
    features = TfidfFeatures(min_df=1, max_df=1.0, language=None).fit(WORDS)
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(len(features.terms), bits))
    encoder = Encoder((Layer(weight, np.zeros(bits), "sigmoid"),), np.full(bits, 0.5))
    return Model(encoder, features, f"toy{seed}")


def document(number: int, *words: str, **metadata: Any) -> Document:
    """Return a document with a text of these words, or of some that the number chooses."""
    rng = np.random.default_rng(number)
    text = " ".join(words or rng.choice(WORDS, size=rng.integers(1, 6)))
    return Document(f"d{number}", text, metadata=metadata)


def documents(count: int, **metadata: Any) -> list[Document]:
    return [document(number, **metadata) for number in range(count)]


@contextmanager
def tiny_thresholds(*, changes: int = 3, batch: int = 4) -> Iterator[None]:
    """Write the files of codes and words every few changes, and documents a few at a time."""
    with (
        patch.object(code_table, "MIN_CHANGES", changes),
        patch.object(code_table, "CHANGED_FRACTION", 0.0),
        patch.object(word_table, "MIN_CHANGES", changes),
        patch.object(word_table, "CHANGED_FRACTION", 0.0),
        patch.object(encoding, "BATCH_DOCUMENTS", batch),
    ):
        yield


@lru_cache(maxsize=20_000)
def code_of(model: Model, text: str) -> bytes | None:
    (code,) = codes_of(model, [text])
    return code


def codes_of(model: Model, texts: list[str]) -> list[bytes | None]:
    """Return the code of each text; None where the model knows none of its words."""
    assert model.features is not None
    known = np.diff(model.features.transform(texts).indptr) > 0
    return [code.tobytes() if one else None for code, one in zip(model.encode(texts), known, strict=True)]


@lru_cache(maxsize=20_000)
def rerank_score(model: Model, query: str, text: str, rerank: str) -> float:
    """Return the score of a text: its cosine, or what the bits in which it differs cost by their margins."""
    assert model.features is not None
    rows = model.features.transform([query, text])
    if rerank == "cosine":
        left, right = rows.toarray().astype(np.float64)
        return float(left @ right)
    query_bits, text_bits = unpack(model.encoder.encode(rows))
    margins = np.abs(model.encoder.margins(rows)[0])
    return -sum(margin for margin, a, b in zip(margins, query_bits, text_bits, strict=True) if a != b)


def temporary_folder() -> Path:
    """Make a folder in memory where there is one: what is tested does not depend on the disk."""
    memory = Path("/dev/shm")
    workspace = Path(
        tempfile.mkdtemp(prefix="snuh-test-", dir=memory if os.access(memory, os.W_OK) else None)
    )
    workspace.chmod(0o755)
    return workspace


def distance(left: bytes, right: bytes) -> int:
    return (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).bit_count()


def record(one: Document) -> dict[str, Any]:
    """Return what a filter sees of a document."""
    return {**one.metadata, "id": one.id, "split": one.split, "labels": list(one.labels)}


@dataclass
class Mirror:
    """What a collection should hold: documents in order of insertion, and the model of their codes."""

    model: Model
    documents: dict[str, Document] = field(default_factory=dict)  # by id; a replaced key keeps its position
    has_words: bool = True  # whether words order what is equally near

    def add(self, new: Iterable[Document]) -> None:
        self.documents.update({one.id: one for one in new})

    def delete(self, ids: Iterable[str]) -> None:
        for doc_id in set(ids):
            del self.documents[doc_id]

    def copy(self) -> Mirror:
        return Mirror(self.model, dict(self.documents), self.has_words)

    def chosen(self, where: str | None) -> list[Document]:
        every = self.documents.values()
        return [one for one in every if where is None or matches(parse(where), record(one))]

    def search(
        self, text: str, *, k: int = 10, where: str | None = None, radius: int | None = None, but: str = ""
    ) -> list[Hit]:
        query = code_of(self.model, text)
        assert query is not None
        hits = []
        for one in self.chosen(where):
            code = code_of(self.model, one.text)
            if code is not None and one.id != but:
                hits.append(Hit(distance(query, code), one))
        hits = [hit for hit in hits if radius is None or hit.distance <= radius]
        words = self.word_scores(text) if self.has_words else {}
        return sorted(hits, key=lambda hit: (hit.distance, -words.get(hit.document.id, 0.0)))[:k]

    def word_scores(self, text: str) -> dict[str, float]:
        """Return BM25 scores by id, without the digits that depend on rounding."""
        assert self.model.features is not None
        terms = self.model.features.analyzer.terms
        scores = bm25([terms(one.text) for one in self.documents.values()], Counter(terms(text)))
        return {doc_id: round(score, 5) for doc_id, score in zip(self.documents, scores, strict=True)}

    def hybrid_scores(self, text: str, *, where: str | None = None) -> dict[str, float] | None:
        """Return the scores of a search by words and codes, by the ids of the documents that match.

        None if they depend on rounding.
        """
        every = list(self.documents.values())
        ids = {one.id for one in self.chosen(where)}
        chosen = [index for index, one in enumerate(every) if one.id in ids]
        scores = hybrid(self.model, [one.text for one in every], text, chosen=chosen)
        if scores is None:
            return None
        return {every[index].id: scores[index] for index in chosen if np.isfinite(scores[index])}


def stored(folder: Path) -> Mirror:
    """Read a collection's store without the package, and check that it agrees with itself."""
    connection = sqlite3.connect(folder / "store.sqlite")
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (fingerprint, bits) = connection.execute("SELECT model, bits FROM state").fetchone()
        rows = connection.execute(
            "SELECT seq, id, split, labels, metadata, text FROM documents ORDER BY seq"
        ).fetchall()
        codes = dict(connection.execute("SELECT seq, code FROM codes").fetchall())
    finally:
        connection.close()
    model = load(folder / "models" / fingerprint)
    assert model.bits == bits
    by_id = {}
    for _, doc_id, split, labels, metadata, text in rows:
        by_id[doc_id] = Document(doc_id, text, tuple(json.loads(labels)), split, json.loads(metadata))
    expected = dict(zip([row[0] for row in rows], codes_of(model, [row[-1] for row in rows]), strict=True))
    assert codes == {seq: code for seq, code in expected.items() if code is not None}
    return Mirror(model, by_id)


def assert_answers_like(collection: Collection, mirror: Mirror, *, texts: Iterable[str] = WORDS[:3]) -> None:
    """Compare everything that a collection says with the plain model."""
    assert list(collection.documents()) == list(mirror.documents.values())
    assert len(collection) == len(mirror.documents)
    mirror = replace(mirror, has_words=collection.info().has_words)
    for text in texts:
        for k in (1, 5, len(mirror.documents) + 1):
            assert_nearest(collection.search(text, k=k, mode="codes"), mirror, text, k=k)
            if mirror.has_words:
                assert_best(collection.search(text, k=k), mirror.hybrid_scores(text), k=k)


def assert_nearest(hits: Sequence[Hit], mirror: Mirror, text: str, *, k: int) -> None:
    """Check that hits are the k nearest, ties ordered by words, up to rounding: word scores may be equal."""
    expected = mirror.search(text, k=k)
    if hits == expected:
        return
    assert all(hit in mirror.search(text, k=len(mirror.documents)) for hit in hits)
    assert len({hit.document.id for hit in hits}) == len(hits)
    assert [hit.distance for hit in hits] == [hit.distance for hit in expected]
    scores = mirror.word_scores(text) if mirror.has_words else {}
    found, best = ([scores.get(hit.document.id, 0.0) for hit in ranked] for ranked in (hits, expected))
    assert mirror.has_words and found == pytest.approx(best, abs=1e-4)


def assert_best(hits: Sequence[Hit], scores: dict[str, float] | None, *, k: int) -> None:
    """Check that hits are the k best, the best first, up to rounding."""
    if scores is None:
        return
    assert len(hits) == min(k, len(scores))
    assert len({hit.document.id for hit in hits}) == len(hits)
    best = sorted(scores.values(), reverse=True)[:k]
    for hit, expected in zip(hits, best, strict=True):
        assert hit.score == pytest.approx(expected, abs=1e-3)
        assert hit.score == pytest.approx(scores[hit.document.id], abs=1e-3)
