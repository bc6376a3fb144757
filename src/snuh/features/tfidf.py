"""TF-IDF rows of texts, with scikit-learn's definitions and a faster way to count."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError, ModelError
from snuh.features.batches import BATCH_CHARACTERS, map_in_order, text_batches, usable_threads
from snuh.features.counts import TermCounts, TermReader, weigh
from snuh.features.settings import Settings
from snuh.features.state import FORMAT, FORMAT_VERSION, check_state
from snuh.features.vocabulary import choose_terms
from snuh.features.words import DEFAULT_PATTERN, WordCounts, word_splitter

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class _Counter(Protocol):
    def count(self, texts: Sequence[str]) -> TermCounts: ...


class _Rows(NamedTuple):
    sizes: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float32]


class TfidfFeatures:
    """A vocabulary learnt from texts, and the TF-IDF rows of unit length that it makes of texts.

    With equal settings, vocabulary and rows are those of scikit-learn's `TfidfVectorizer`; where that leaves
    the choice among equally frequent terms open, the alphabet decides.

    Attributes:
        terms: The vocabulary in ascending order, one column each; empty before `fit`.
        idf: The inverse document frequency of each term.
        documents: The number of documents that the vocabulary was learnt from.
    """

    def __init__(
        self,
        *,
        max_terms: int = 10_000,
        min_df: int | float = 2,  # int: documents, float: fraction of the documents
        max_df: int | float = 0.5,
        stop_words: str | list[str] | tuple[str, ...] | None = "english",
        token_pattern: str = DEFAULT_PATTERN,
        lowercase: bool = True,
        sublinear_tf: bool = True,  # 1 + log(tf) instead of tf: a better start on every corpus tried
    ) -> None:
        self.settings = Settings(
            max_terms=max_terms,
            min_df=min_df,
            max_df=max_df,
            stop_words=tuple(stop_words) if isinstance(stop_words, list) else stop_words,
            token_pattern=token_pattern,
            lowercase=lowercase,
            sublinear_tf=sublinear_tf,
        )
        self.terms: list[str] = []
        self.idf: NDArray[np.float64] = np.zeros(0)
        self.documents = 0
        self._reader: _Counter | None = None
        self._scanner: _Counter | None = None

    def fit(self, texts: Iterable[str]) -> TfidfFeatures:
        """Learn the vocabulary in one pass; memory grows with the distinct words, not with the texts.

        Beyond five million distinct words the rarest are forgotten, see `WordCounts`.
        """
        settings = self.settings
        split = word_splitter(settings.token_pattern, lowercase=settings.lowercase)
        counts = WordCounts()
        for batch in text_batches(texts):
            for text in batch:
                counts.add(split(text))
        return self.fit_counts(counts)

    def fit_counts(self, counts: WordCounts) -> TfidfFeatures:
        """Choose the vocabulary from words that are counted already."""
        settings = self.settings
        vocabulary = choose_terms(
            counts,
            min_df=settings.min_df,
            max_df=settings.max_df,
            max_terms=settings.max_terms,
            stop_words=settings.stop_list(),
        )
        self._set(vocabulary.terms, vocabulary.idf, counts.documents)
        return self

    def transform(self, texts: Iterable[str], *, threads: int | None = None) -> csr_matrix:
        """Return one float32 row of unit length per text; a text without known terms gets an empty row.

        Texts are read as a stream, and only the rows are kept. The rows do not depend on `threads`
        (default: the processors at hand, four at most).
        """
        from scipy.sparse import csr_matrix

        if not self.terms:
            raise InputError("these features have no vocabulary yet: call fit(texts) first")
        if threads is not None and threads < 1:
            raise InputError(f"threads must be at least 1, got {threads}")
        if not self._is_scannable:
            threads = 1  # Python's own tools hold the interpreter's lock
        sizes = [np.zeros(1, dtype=np.int64)]
        indices = [np.zeros(0, dtype=np.int32)]
        data = [np.zeros(0, dtype=np.float32)]
        for part in map_in_order(self._rows, text_batches(texts), threads=threads or usable_threads()):
            sizes.append(part.sizes)
            indices.append(part.indices)
            data.append(part.data)
        indptr = np.cumsum(np.concatenate(sizes))
        if indptr[-1] <= np.iinfo(np.int32).max:
            indptr = indptr.astype(np.int32)
        shape = (len(indptr) - 1, len(self.terms))
        rows = csr_matrix((np.concatenate(data), np.concatenate(indices), indptr), shape=shape)
        rows.has_canonical_format = True  # by construction; spares SciPy a look at every row
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return everything that `transform` needs, ready for JSON."""
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "parameters": self.parameters,
            "documents": self.documents,
            "terms": list(self.terms),
            "idf": self.idf.tolist(),
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> TfidfFeatures:
        """Return the features that `to_json` described; ModelError where the description is not sound."""
        parameters, terms, idf, documents = check_state(state)
        try:
            features = cls(**parameters)
        except (InputError, TypeError) as error:
            raise ModelError(f"the vocabulary has unusable parameters: {error}") from error
        features._set(terms, idf, documents)
        return features

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, ready for JSON."""
        settings = asdict(self.settings)
        if isinstance(self.settings.stop_words, tuple):
            settings["stop_words"] = list(self.settings.stop_words)
        return settings

    def _set(self, terms: list[str], idf: NDArray[np.float64], documents: int) -> None:
        self.terms, self.idf, self.documents = terms, idf, documents
        self._reader = self._scanner = None

    @property
    def _is_scannable(self) -> bool:
        return self.settings.token_pattern == DEFAULT_PATTERN

    def _rows(self, texts: list[str]) -> _Rows:
        counts = self._counter(sum(map(len, texts))).count(texts)
        data = weigh(counts, self.idf, sublinear_tf=self.settings.sublinear_tf)
        return _Rows(np.diff(counts.indptr), counts.indices, data)

    def _counter(self, characters: int) -> _Counter:
        """Choose how to count; both ways give the same numbers."""
        lowercase = self.settings.lowercase
        if self._is_scannable and is_scanner_worthwhile(characters):
            if self._scanner is None:
                from snuh.features.scanner import TermScanner

                self._scanner = TermScanner(self.terms, lowercase=lowercase)
            return self._scanner
        if self._reader is None:
            split = word_splitter(self.settings.token_pattern, lowercase=lowercase)
            self._reader = TermReader(self.terms, split=split)
        return self._reader


def is_scanner_worthwhile(characters: int) -> bool:
    """Return whether so many characters repay the half second that importing the scanner takes."""
    return characters >= BATCH_CHARACTERS or "snuh.features.scanner" in sys.modules
