"""Codes of another model for all documents, made beside those in use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from snuh.collection.local.folder import drop_other_models, keep_model, load_model
from snuh.collection.local.store import Store, Write
from snuh.corpus import Document
from snuh.encoding import encode_documents
from snuh.errors import CollectionError, ModelError
from snuh.model import Model

BATCH_DOCUMENTS = 5_000


def rehash(
    folder: Path, store: Store, model: Model, *, progress: Callable[[float], None] | None = None
) -> None:
    """Encode every document with `model`, then let these codes take the place of the old ones, all at once.

    Others may search and write meanwhile. A stop at any point leaves the old codes in use.
    """
    # In one write: nobody can begin to use a model that is dropped here, or drop the one that is kept.
    with store.writing() as write:
        fingerprint = keep_model(folder, model)
        drop_other_models(folder, {write.state.model, fingerprint})
        token = write.start_next_codes()
        start, end = write.number, write.state.next_seq
    started = store.token_of(start)
    last = 0
    while batch := store.documents(after=last, most=BATCH_DOCUMENTS):
        with store.writing() as write:
            _check_turn(write, token)
            _put(write, batch, model)
        last = batch[-1][0]
        if progress is not None:
            progress(min(1.0, last / max(1, end - 1)))
    with store.writing() as write:
        _check_turn(write, token)
        if not store.remembers(start, started):
            raise CollectionError(f"{folder}: too much was written meanwhile; the old codes stay in use")
        # What others wrote meanwhile is encoded here, where nobody else can write.
        changed = store.changed_since(start)
        changed = changed[changed <= last]
        for first in range(0, len(changed), BATCH_DOCUMENTS):
            documents = store.documents_of(changed[first : first + BATCH_DOCUMENTS])
            _put(write, sorted(documents.items(), key=lambda item: item[0]), model)
        while batch := store.documents(after=last, most=BATCH_DOCUMENTS):
            _put(write, batch, model)
            last = batch[-1][0]
        try:
            load_model(folder, fingerprint)
        except ModelError as error:
            raise CollectionError(
                f"{folder}: the new model was removed meanwhile; the old codes stay in use"
            ) from error
        write.switch(model=fingerprint, bits=model.bits)


def _put(write: Write, batch: Sequence[tuple[int, Document]], model: Model) -> None:
    seqs = iter([seq for seq, _ in batch])
    for part in encode_documents(model, [document for _, document in batch]):
        codes = part.packed()
        write.put_next_codes([next(seqs) for _ in codes], codes)


def _check_turn(write: Write, token: str) -> None:
    if write.state.rehash != token:
        raise CollectionError("another rehash of this collection has started: this one stops")
