"""Encode the documents of a source in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snuh.corpus import Document, MatrixSource, TextSource
from snuh.corpus.document import FractionCallback
from snuh.errors import InputError
from snuh.model import Model

BATCH_CHARACTERS = 8_000_000  # enough to keep all processors busy
BATCH_DOCUMENTS = 20_000
EMBEDDED_DOCUMENTS = 1_000  # which takes longer


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """Documents with their codes, and whether each contains a known word."""

    documents: list[Document]
    codes: NDArray[np.uint8]  # (documents, bytes)
    known: NDArray[np.bool_]  # (documents,)

    def packed(self) -> list[bytes | None]:
        """Return each document's code as bytes; None for documents without known words."""
        pairs = zip(self.codes, self.known, strict=True)
        return [code.tobytes() if known else None for code, known in pairs]


def encode_source(
    model: Model, source: TextSource | MatrixSource, *, progress: FractionCallback | None = None
) -> Iterator[EncodedBatch]:
    """Yield the documents in order with their codes; documents of a matrix have no text."""
    if progress is not None:
        progress(0.0)
    if isinstance(source, MatrixSource):
        yield from _encode_matrix(model, source, progress)
        return
    if model.features is None:
        raise InputError(
            f"this model takes feature rows, {source.name} contains texts: it was trained on a .mat file"
        )
    yield from encode_documents(model, source.documents(progress))


def encode_documents(model: Model, documents: Iterable[Document]) -> Iterator[EncodedBatch]:
    """Yield documents in order with their codes, made from words and vectors as the model reads them."""
    for batch in document_batches(documents, limit=None if model.embed is None else EMBEDDED_DOCUMENTS):
        rows = model.document_rows(batch)
        yield EncodedBatch(batch, model.encoder.encode(rows), np.diff(rows.indptr) > 0)


def _encode_matrix(
    model: Model, source: MatrixSource, progress: FractionCallback | None
) -> Iterator[EncodedBatch]:
    if model.features is not None:
        raise InputError(
            f"this model takes texts, {source.name} contains feature rows: it was trained on texts"
        )
    if source.features != model.encoder.inputs:
        raise InputError(
            f"this model takes {model.encoder.inputs} features, {source.name} has {source.features}: "
            "it was trained on another matrix"
        )
    for number, (split, part) in enumerate(source.splits.items(), start=1):
        named = zip(part.ids, part.labels, strict=True)
        documents = [Document(doc_id, "", labels, split) for doc_id, labels in named]
        yield EncodedBatch(documents, model.encoder.encode(part.X), np.diff(part.X.indptr) > 0)
        if progress is not None:
            progress(number / len(source.splits))


def document_batches(documents: Iterable[Document], *, limit: int | None = None) -> Iterator[list[Document]]:
    """Yield documents in lists of bounded size, of at most `limit` documents."""
    limit = BATCH_DOCUMENTS if limit is None else limit
    batch: list[Document] = []
    characters = 0
    for document in documents:
        batch.append(document)
        characters += len(document.text)
        if characters >= BATCH_CHARACTERS or len(batch) >= limit:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
