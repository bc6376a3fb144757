"""TF-IDF rows of texts: the project's analyzer with scikit-learn's weights."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from snuh._numba import usable_processors
from snuh.errors import InputError, ModelError
from snuh.features.analyzer import Analyzer, check_languages, fold
from snuh.features.languages import recognize, stop_words
from snuh.features.vocabulary import AUTO, Frequency, Vocabulary, WordCounts, choose_terms, frequent_words
from snuh.features.weighting import SparseRows, TermCounter, tfidf_weights

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FORMAT = "snuh-tfidf"
FORMAT_VERSION = 2
BATCH_CHARACTERS = 2_000_000
BATCH_TEXTS = 100_000  # limits batches of empty texts
MAX_THREADS = 4

Batch = list[str]
Result = TypeVar("Result")


class _Rows(NamedTuple):
    sizes: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float32]


class TfidfFeatures:
    """Learns a vocabulary from texts and transforms texts to TF-IDF rows of unit length.

    Vocabulary and rows equal those of scikit-learn's `TfidfVectorizer(analyzer=features.analyzer.terms)`, but
    for single letters. Ties between equally frequent terms, whose order scikit-learn leaves open, are broken
    alphabetically.

    Args:
        max_terms: the size of the vocabulary.
        min_df: in how many documents (int), or in which fraction of them (float), a term must occur.
        max_df: in how many, or in which fraction of them, it may occur.
        sublinear_tf: 1 + log(tf) instead of tf, which was better on every corpus tested.
        language: "auto" recognizes the languages of the texts; or a code such as "en", several, or None.
        stop_words: "auto" takes those of the languages; otherwise a list, or None.
        stemming: whether words are reduced to their stems, for languages with a Snowball stemmer.
        identifiers: whether the parts of identifiers such as `read_csv` are terms as well.
        fold_numbers: whether all numbers become one term, and all hexadecimal ids another.

    Attributes:
        analyzer: Turns texts into terms; known after `fit`.
        terms: The vocabulary in ascending order, one term per column; empty before `fit`.
        words: For each term the most frequent word that has it, for people to read.
        idf: The inverse document frequency of each term.
        documents: The number of documents that the vocabulary was learnt from.
    """

    def __init__(
        self,
        *,
        max_terms: int = 30_000,
        min_df: int | float = 2,
        max_df: int | float = 0.5,
        sublinear_tf: bool = True,
        language: str | Sequence[str] | None = AUTO,
        stop_words: str | Sequence[str] | None = AUTO,
        stemming: bool = True,
        identifiers: bool = False,
        fold_numbers: bool = False,
    ) -> None:
        self.settings = Settings(
            max_terms=max_terms,
            min_df=min_df,
            max_df=max_df,
            sublinear_tf=sublinear_tf,
            language=language if isinstance(language, str | None) else tuple(language),
            stop_words=stop_words if isinstance(stop_words, str | None) else tuple(stop_words),
            stemming=stemming,
            identifiers=identifiers,
            fold_numbers=fold_numbers,
        )
        self.analyzer = Analyzer()
        self.terms: list[str] = []
        self.words: list[str] = []
        self.idf: NDArray[np.float64] = np.zeros(0)
        self.documents = 0
        self._counter: TermCounter | None = None

    def fit(self, texts: Iterable[str]) -> TfidfFeatures:
        """Learn the vocabulary in one pass; the distinct words of each text are kept until the end."""
        from snuh.features.tokenizer_numba import CorpusWords

        words = CorpusWords()
        for batch in text_batches(texts):
            words.add(batch)
        literal = words.counts()
        analyzer = self.choose_analyzer(literal)
        counts = words.term_counts(analyzer)
        counts.words = frequent_words(literal, analyzer)
        return self.fit_counts(counts, analyzer)

    def choose_analyzer(self, words: Mapping[str, int]) -> Analyzer:
        """Return the analyzer for texts that have these words, in lower case, with their numbers."""
        return self.settings.analyzer(recognize(words) if self.settings.language == AUTO else ())

    def fit_counts(self, counts: WordCounts, analyzer: Analyzer) -> TfidfFeatures:
        """Choose the vocabulary from given counts of an analyzer's terms."""
        settings = self.settings
        vocabulary = choose_terms(
            counts, min_df=settings.min_df, max_df=settings.max_df, max_terms=settings.max_terms
        )
        self._set(analyzer, vocabulary, counts.documents)
        return self

    def transform(self, texts: Iterable[str], *, threads: int | None = None) -> csr_matrix:
        """Return one float32 row of unit length per text; a text without known terms gets an empty row.

        Texts are read as a stream, and only the rows are held in memory. The rows do not depend on `threads`
        (by default the available processors, at most four).
        """
        return self.rows(texts, threads=threads).tocsr()

    def rows(self, texts: Iterable[str], *, threads: int | None = None) -> SparseRows:
        """Return what `transform` returns, without importing SciPy."""
        if not self.terms:
            raise InputError("these features have no vocabulary yet: call fit(texts) first")
        if threads is not None and threads < 1:
            raise InputError(f"threads must be at least 1, got {threads}")
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
        return SparseRows(indptr, np.concatenate(indices), np.concatenate(data), len(self.terms))

    def to_json(self) -> dict[str, Any]:
        """Return everything that `transform` needs, ready for JSON."""
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "parameters": self.parameters,
            "documents": self.documents,
            "analyzer": self.analyzer.to_json(),
            "terms": list(self.terms),
            "words": list(self.words),
            "idf": self.idf.tolist(),
        }

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> TfidfFeatures:
        """Restore features from `to_json`; raise ModelError if the state is invalid."""
        parameters, analyzer, vocabulary, documents = check_state(state)
        try:
            features = cls(**parameters)
        except (InputError, TypeError) as error:
            raise ModelError(f"the vocabulary has unusable parameters: {error}") from error
        features._set(analyzer, vocabulary, documents)
        return features

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, ready for JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self.settings).items()
        }

    def _set(self, analyzer: Analyzer, vocabulary: Vocabulary, documents: int) -> None:
        self.analyzer, self.documents = analyzer, documents
        self.terms, self.words, self.idf = vocabulary
        self._counter = None

    def _rows(self, texts: list[str]) -> _Rows:
        if self._counter is None:
            self._counter = TermCounter(self.terms, self.analyzer)
        counts = self._counter.count(texts)
        data = tfidf_weights(counts, self.idf, sublinear_tf=self.settings.sublinear_tf)
        return _Rows(np.diff(counts.indptr), counts.indices, data)


def text_batches(texts: Iterable[str], *, limit: int = BATCH_CHARACTERS) -> Iterator[Batch]:
    """Yield the texts in lists of about `limit` characters; raise InputError for anything but a text."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InputError(
            f"expected several texts, such as a list of str, got one {type(texts).__name__}: put it in a list"
        )
    batch: Batch = []
    characters = 0
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"document {number}: expected a text (str), got {type(text).__name__}")
        batch.append(text)
        characters += len(text)
        if characters >= limit or len(batch) >= BATCH_TEXTS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def usable_threads() -> int:
    """Return the number of processors this process may use, at most four."""
    return min(usable_processors(), MAX_THREADS)


def map_in_order(
    work: Callable[[Batch], Result], batches: Iterable[Batch], *, threads: int
) -> Iterator[Result]:
    """Yield the results of the batches in order, holding at most `threads` + 1 batches at a time."""
    if threads == 1:
        yield from map(work, batches)
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[Result]] = deque()
        for batch in batches:
            pending.append(pool.submit(work, batch))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


class VocabularyState(NamedTuple):
    """The validated parts of a saved vocabulary."""

    parameters: dict[str, Any]  # validated by the constructor
    analyzer: Analyzer
    vocabulary: Vocabulary
    documents: int


def check_state(state: Mapping[str, Any]) -> VocabularyState:
    """Validate the output of `TfidfFeatures.to_json`; raise ModelError for the first problem."""
    if not isinstance(state, Mapping):
        raise ModelError(f"the vocabulary must be a JSON object, got {type(state).__name__}")
    if state.get("format") != FORMAT:
        raise ModelError(f'the vocabulary must have the format "{FORMAT}", got {state.get("format")!r}')
    version = state.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelError(f"the vocabulary's format_version must be an integer of at least 1, got {version!r}")
    if version > FORMAT_VERSION:
        raise ModelError(
            f"the vocabulary has format version {version}, this snuh reads up to {FORMAT_VERSION}: update it"
        )
    if version < FORMAT_VERSION:
        raise ModelError(
            "this model was fitted by an older snuh, which split texts into words in another way: "
            "fit it again with this version"
        )
    parameters, documents = state.get("parameters"), state.get("documents")
    if not isinstance(parameters, dict) or not all(isinstance(name, str) for name in parameters):
        raise ModelError(f"the vocabulary's parameters must be an object, got {type(parameters).__name__}")
    if type(documents) is not int or documents < 0:
        raise ModelError(f"the vocabulary's documents must be a non-negative integer, got {documents!r}")
    analyzer = Analyzer.from_json(state.get("analyzer"))
    terms = _check_terms(state.get("terms"))
    words = state.get("words")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ModelError("the vocabulary's words must be a list of strings")
    if len(words) != len(terms):
        raise ModelError(f"the vocabulary has {len(terms)} terms, but {len(words)} words")
    idf = _check_idf(state.get("idf"), len(terms))
    return VocabularyState(parameters, analyzer, Vocabulary(terms, words, idf), documents)


def _check_terms(terms: object) -> list[str]:
    if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms):
        raise ModelError("the vocabulary's terms must be a list of strings")
    if not terms:
        raise ModelError("the vocabulary has no terms: it was saved before fit(texts)")
    for before, after in pairwise(terms):
        if before >= after:
            raise ModelError(
                f"the vocabulary's terms must be in ascending order, got {after!r} after {before!r}"
            )
    return terms


def _check_idf(idf: object, expected: int) -> NDArray[np.float64]:
    if not isinstance(idf, list) or not all(type(value) in (int, float) for value in idf):
        raise ModelError("the vocabulary's idf must be a list of numbers")
    if len(idf) != expected:
        raise ModelError(f"the vocabulary has {expected} terms, but {len(idf)} idf values")
    try:
        values = np.array(idf, dtype=np.float64)
    except OverflowError as error:
        raise ModelError("the vocabulary's idf must be finite numbers above 0") from error
    if not (np.isfinite(values) & (values > 0)).all():
        raise ModelError("the vocabulary's idf must be finite numbers above 0")
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The parameters of `TfidfFeatures`; invalid values raise InputError."""

    max_terms: int
    min_df: Frequency
    max_df: Frequency
    sublinear_tf: bool
    language: str | tuple[str, ...] | None
    stop_words: str | tuple[str, ...] | None
    stemming: bool
    identifiers: bool
    fold_numbers: bool

    def __post_init__(self) -> None:
        if type(self.max_terms) is not int or self.max_terms < 1:
            raise InputError(f"max_terms must be an integer of at least 1, got {self.max_terms!r}")
        _check_frequency("min_df", self.min_df)
        _check_frequency("max_df", self.max_df)
        if type(self.min_df) is type(self.max_df) and self.min_df > self.max_df:
            raise InputError(f"min_df must not be above max_df, got {self.min_df} and {self.max_df}")
        if self.language not in (AUTO, None):
            check_languages((self.language,) if isinstance(self.language, str) else self.language or ())
        if self.stop_words not in (AUTO, None) and not (
            isinstance(self.stop_words, tuple) and all(isinstance(word, str) for word in self.stop_words)
        ):
            raise InputError(f'stop_words must be "auto", None or a list of words, got {self.stop_words!r}')
        for name in ("sublinear_tf", "stemming", "identifiers", "fold_numbers"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise InputError(f"{name} must be True or False, got {value!r}")

    def analyzer(self, recognized: Sequence[str]) -> Analyzer:
        """Return the analyzer of a corpus in which some languages were recognized."""
        if self.language == AUTO:
            languages = tuple(recognized)
        else:
            languages = (self.language,) if isinstance(self.language, str) else self.language or ()
        words = stop_words(languages) if self.stop_words == AUTO else self.stop_words or ()
        return Analyzer(
            languages=languages,
            stop_words=map(fold, words),
            stemming=self.stemming,
            identifiers=self.identifiers,
            fold_numbers=self.fold_numbers,
        )


def _check_frequency(name: str, value: object) -> None:
    if type(value) is int and value >= 1:
        return
    if type(value) is float and 0.0 <= value <= 1.0:
        return
    raise InputError(
        f"{name} must be a number of documents (an integer of at least 1) or a fraction of them "
        f"(0.0 to 1.0), got {value!r}"
    )
