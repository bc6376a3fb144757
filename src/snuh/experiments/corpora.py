"""Corpora by name: feature rows by split, and a checksum of the documents."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from snuh.corpus import SPLITS, Document, MatrixSource, MatrixSplit, TextSource, open_source
from snuh.corpus.source import MATRIX_SUFFIX, SUFFIXES, find_corpus
from snuh.errors import InputError, check_arguments
from snuh.experiments.scores import CandidateScores
from snuh.features import TfidfFeatures
from snuh.io import dump_json


@dataclass(frozen=True)
class Corpus:
    """Rows and labels of the splits train, val and test."""

    name: str
    sha256: str  # of ids, texts (or rows), labels and splits, in their order
    all_features: Mapping[str, Any] | None  # None: the file holds feature rows
    splits: Mapping[str, MatrixSplit]

    def first(self, documents: int | None) -> Corpus:
        """Return the corpus with at most the first n training documents."""
        train = self.splits["train"]
        if documents is None or documents >= len(train.ids):
            return self
        part = MatrixSplit(train.X[:documents], train.ids[:documents], train.labels[:documents])
        return replace(self, splits={**self.splits, "train": part})

    @cached_property
    def candidates(self) -> CandidateScores:
        """The candidate scores of this corpus, prepared on first use."""
        return CandidateScores(self.splits["train"].X, self.splits["val"].X)


class Corpora:
    """A cache that reads each corpus once."""

    def __init__(self) -> None:
        self._read: dict[str, Corpus] = {}

    def get(
        self, name: str, features: Mapping[str, Any], *, progress: Callable[[float], None] | None = None
    ) -> Corpus:
        """Return a corpus with these feature settings."""
        key = dump_json([name, features])
        if key not in self._read:
            self._read[key] = read_corpus(name, features, progress=progress)
        return self._read[key]


def locate(name: str, features: Mapping[str, Any]) -> Path:
    """Return the file of a corpus; InputError if it is absent or does not take these settings."""
    path = find_corpus(name, SUFFIXES)
    if path.name.endswith(MATRIX_SUFFIX) and features:
        raise InputError(f"features.{next(iter(features))} is for texts, {path.name} holds feature rows")
    check_arguments(TfidfFeatures, features, what="the features' settings")
    TfidfFeatures(**features)
    return path


def read_corpus(
    name: str, features: Mapping[str, Any], *, progress: Callable[[float], None] | None = None
) -> Corpus:
    """Read a corpus of the folder SNUH_DATA: NAME as texts, NAME.tfidf as the rows of a .mat file."""
    source = open_source(locate(name, features))
    if isinstance(source, MatrixSource):
        _check_splits(name, source.splits)
        return Corpus(name, sha256_of_rows(source.splits), None, dict(source.splits))
    return _from_texts(name, source, TfidfFeatures(**features), progress)


def _from_texts(
    name: str, source: TextSource, features: TfidfFeatures, progress: Callable[[float], None] | None
) -> Corpus:
    by_split: dict[str, list[Document]] = defaultdict(list)
    checksum = DocumentsChecksum()
    for doc in source.documents(progress):
        by_split[doc.split or "train"].append(doc)
        checksum.add(doc)
    _check_splits(name, by_split)
    features.fit(doc.text for doc in by_split["train"])
    splits = {
        split: MatrixSplit(
            features.transform(doc.text for doc in docs),
            [doc.id for doc in docs],
            [doc.labels for doc in docs],
        )
        for split, docs in by_split.items()
    }
    return Corpus(name, checksum.sha256, features.parameters, splits)


def _check_splits(name: str, splits: Mapping[str, object]) -> None:
    missing = [split for split in SPLITS if split not in splits]
    if missing:
        raise InputError(
            f"{name} must have the splits {', '.join(SPLITS)}, got {', '.join(splits)}: "
            f"add {' and '.join(missing)}"
        )


def open_texts(name: str) -> TextSource:
    """Return the source of a corpus; InputError if it has no texts."""
    source = open_source(locate(name, {}))
    if isinstance(source, MatrixSource):
        raise InputError(f"{name} holds feature rows and no texts: choose a corpus of texts")
    return source


# Checksums of documents and feature rows, which depend on their content and order.


class DocumentsChecksum:
    """The SHA-256 of the ids, texts, labels and splits of a stream of documents."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, doc: Document) -> None:
        """Add a document."""
        self._digest.update(dump_json([doc.id, doc.text, doc.labels, doc.split]).encode() + b"\n")

    @property
    def sha256(self) -> str:
        """The checksum of the documents added so far."""
        return self._digest.hexdigest()


def sha256_of_rows(splits: Mapping[str, MatrixSplit]) -> str:
    """Return the SHA-256 of ids, labels and feature rows of all splits."""
    digest = hashlib.sha256()
    for split in SPLITS:
        if split not in splits:
            continue
        part = splits[split]
        digest.update(dump_json([split, part.ids, part.labels, part.X.shape]).encode() + b"\n")
        for array, dtype in ((part.X.indptr, "<i8"), (part.X.indices, "<i8"), (part.X.data, "<f4")):
            digest.update(array.astype(dtype).tobytes())
    return digest.hexdigest()
