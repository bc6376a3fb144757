"""Train a model on texts in one step: TF-IDF features, then a method."""

from __future__ import annotations

import logging
import platform
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh import __version__
from snuh.corpus import MatrixSource, TextSource
from snuh.corpus.document import FractionCallback
from snuh.corpus.rows import RowSource, VectorSource
from snuh.errors import InputError, check_arguments
from snuh.features import TfidfFeatures
from snuh.features.vectors import EMBED_BATCH, Embed, VectorInfo, complete_vectors, join_rows, name_of
from snuh.features.vocabulary import AUTO
from snuh.methods import DEFAULT, make
from snuh.model import Model
from snuh.progress import OnProgress, stage_callback
from snuh.training import VECTOR_METHODS

logger = logging.getLogger(__name__)


class TextHasher:
    """Learns binary codes for texts: `TextHasher(bits=64).fit(texts).encode(texts)`.

    Args:
        method: a method name, as listed by `snuh methods`.
        bits: code length, a multiple of 8.
        seed: random seed.
        features: parameters of `TfidfFeatures`, such as `{"max_terms": 20_000}`.
        parameters: parameters of the method, such as `{"neighbors": 20}`.
        embed: makes vectors (texts, dims) of a list of texts, read beside the words (docs/vectors.md).

    Attributes:
        model_: the fitted `Model`, with features and encoder.
    """

    def __init__(
        self,
        method: str = DEFAULT,
        bits: int = 64,
        *,
        seed: int = 0,
        features: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        embed: Embed | None = None,
    ) -> None:
        self.method = method
        self.bits = bits
        self.seed = seed
        self.features = dict(features or {})
        self.parameters = dict(parameters or {})
        self.embed = embed
        self.model_: Model | None = None

    def fit(
        self, texts: Iterable[Any], *, vectors: Any = None, on_progress: OnProgress | None = None
    ) -> Self:
        """Train on texts, or on documents of any kind that `open_source` takes.

        They are read twice: a generator is read into a list first. `vectors` (documents, dims), such as
        sentence embeddings, are read beside the words.
        """
        source: TextSource = RowSource(texts)
        return self.fit_source(
            source if vectors is None else VectorSource(source, vectors), on_progress=on_progress
        )

    def fit_source(self, source: TextSource | MatrixSource, *, on_progress: OnProgress | None = None) -> Self:
        """Train on the documents of a source whose split is `train` or missing.

        The split `val`, if present, is held out to select the epoch; `test` is not used.
        """
        estimator = make(self.method, bits=self.bits, seed=self.seed, parameters=self.parameters)
        estimator.check_parameters()
        features = None
        vectors = None
        if isinstance(source, MatrixSource):
            X, X_val = _matrix_rows(source)
        else:
            check_arguments(TfidfFeatures, self.features, what="the features' settings")
            features = TfidfFeatures(**self.features)
            X, X_val, vectors = joined_rows(source, features, on_progress, embed=self.embed)
            if vectors is not None and not estimator.reads_vectors:
                raise InputError(f"{self.method} reads words alone: {VECTOR_METHODS} read vectors too")
        versions = training_versions()
        vector_dims = 0 if vectors is None else vectors.dims
        estimator.fit(X, X_val=X_val, vector_dims=vector_dims, on_progress=on_progress)
        self.model_ = Model(
            # TF-IDF rows have unit length already.
            encoder=replace(estimator.encoder_, unit_rows=features is None),
            features=features,
            method=self.method,
            parameters=estimator.get_params(),
            training={**estimator.training_, "source": source.name, "versions": versions},
            decoder=estimator.decoder_,
            vectors=vectors,
            embed=None if vectors is None else self.embed,
        )
        return self

    def encode(self, texts: Iterable[Any], *, vectors: Any = None) -> NDArray[np.uint8]:
        """Return packed codes (documents, bits / 8); `vectors` as for `fit`."""
        return self._fitted().encode(texts, vectors=vectors)

    def save(self, folder: Path | str) -> None:
        """Write the model folder that `snuh.load` reads."""
        self._fitted().save(folder)

    def _fitted(self) -> Model:
        if self.model_ is None:
            raise InputError("this hasher is not fitted: call fit(texts) first")
        return self.model_


def text_rows(
    source: TextSource, features: TfidfFeatures, on_progress: OnProgress | None
) -> tuple[sparse.csr_matrix, sparse.csr_matrix | None]:
    """Return TF-IDF rows for training and validation; the source is read twice, and texts are not stored."""
    X, X_val, vectors = joined_rows(source, features, on_progress)
    if vectors is not None:
        raise InputError(f"{source.name} has vectors: only words are expected here, leave the vectors out")
    return X, X_val


class JoinedRows(NamedTuple):
    """Rows for training and validation; with vectors, joined with them."""

    X: sparse.csr_matrix
    X_val: sparse.csr_matrix | None
    vectors: VectorInfo | None


def joined_rows(
    source: TextSource, features: TfidfFeatures, on_progress: OnProgress | None, *, embed: Embed | None = None
) -> JoinedRows:
    """Return the rows of a source; its documents have vectors, or `embed` makes them."""
    words, rows = stage_callback(on_progress, "words"), stage_callback(on_progress, "rows")
    counts: Counter[str] = Counter()

    def training_texts() -> Iterator[str]:
        for doc in source.documents(words):
            counts[doc.split or "train"] += 1
            if doc.split in (None, "train"):
                yield doc.text
        if counts and not counts["train"]:
            splits = ", ".join(f"{count} {split}" for split, count in counts.items())
            raise InputError(
                f"{source.name} has no training documents: expected the split train, got {splits}"
            )

    training = training_texts()
    first = list(islice(training, 1))  # a wrong field is reported before kernels are compiled
    features.fit(chain(first, training))
    val_flags: list[bool] = []
    vector_flags: list[bool] = []

    def texts() -> Iterator[str]:
        for doc in source.documents(rows):
            if doc.split != "test":
                val_flags.append(doc.split == "val")
                vector_flags.append(doc.vector is not None)
                yield doc.text

    X = features.transform(texts())
    check_known(X, features)
    info = None
    if embed is not None or any(vector_flags):
        vectors = _source_vectors(source, embed, stage_callback(on_progress, "vectors"))
        name = source.name if embed is None else name_of(embed)
        info = VectorInfo(name, vectors.shape[1], sha256=getattr(embed, "sha256", None))
        X = join_rows(X, vectors, weight=info.weight)
    is_val = np.array(val_flags)
    return JoinedRows(X[~is_val], X[is_val], info) if is_val.any() else JoinedRows(X, None, info)


def _source_vectors(
    source: TextSource, embed: Embed | None, progress: FractionCallback | None
) -> NDArray[np.float32]:
    """Return the vectors (documents, dims) of the documents outside the split test."""
    used = (doc for doc in source.documents(progress) if doc.split != "test")
    parts: list[NDArray[np.float32]] = []
    without: list[int] = []  # documents of parts that came before the first vector
    while batch := list(islice(used, EMBED_BATCH)):
        has_vectors = embed is not None or any(doc.vector is not None for doc in batch)
        if not has_vectors and not parts:
            without.append(len(batch))
            continue
        parts.append(
            complete_vectors(
                [doc.vector for doc in batch],
                ids=[doc.id for doc in batch],
                texts=[doc.text for doc in batch],
                embed=embed,
                dims=parts[0].shape[1] if parts else None,
            )
        )
    return np.concatenate([np.zeros((sum(without), parts[0].shape[1]), dtype=np.float32), *parts])


def check_known(X: sparse.csr_matrix, features: TfidfFeatures) -> None:
    """Warn of documents without a known word; raise InputError if they are more than half."""
    empty, total = int((np.diff(X.indptr) == 0).sum()), X.shape[0]
    if 2 * empty > total:
        if features.settings.language == AUTO and features.analyzer.languages:
            reason = "the documents have few words in common"
        else:
            reason = "the language or the stop words may be wrong, or the documents have few words in common"
        raise InputError(
            f"{empty} of {total} documents have no word in the vocabulary of {len(features.terms)} terms, so "
            f"their codes would be meaningless: {reason}. Look at the words with `snuh analyze`, and set "
            "features.language, features.stop_words or features.min_df"
        )
    if empty:
        logger.warning("%d of %d documents have no known word: all of them get the same code", empty, total)


def _matrix_rows(source: MatrixSource) -> tuple[sparse.csr_matrix, sparse.csr_matrix | None]:
    val = source.splits.get("val")
    return source.splits["train"].X, None if val is None else val.X


def training_versions() -> dict[str, str]:
    """Return the versions of Python and the packages used for training."""
    packages = ["numpy", "scipy", "scikit-learn"]
    if "torch" in sys.modules:  # not all methods need it
        packages.append("torch")
    versions = {name: version(name) for name in packages}
    return {"snuh": __version__, "python": platform.python_version(), **versions}
