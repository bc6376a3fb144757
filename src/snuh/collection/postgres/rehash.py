"""Codes of another model for all documents, in a table beside the one in use."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from snuh.collection.modelfiles import files_of
from snuh.collection.postgres.connections import Connections
from snuh.collection.postgres.schema import codes_table
from snuh.collection.postgres.write import PgWrite
from snuh.corpus import Document
from snuh.encoding import encode_documents
from snuh.errors import CollectionError, SnuhError
from snuh.model import Model

if TYPE_CHECKING:
    from snuh.collection.postgres.backend import PgBackend

logger = logging.getLogger(__name__)

BATCH_DOCUMENTS = 5_000


def rehash(
    backend: PgBackend, connections: Connections, model: Model, *, progress: Callable[[float], None] | None
) -> None:
    """Encode every document with `model`, then let the table of these codes be the one in use.

    Whoever still reads the old table is in a transaction that sees the old state; it is dropped afterwards.
    """
    files, token = files_of(model), secrets.token_hex(8)
    with backend.writing() as write:
        start, end, table = write.number, write.state.next_seq, codes_table(write.number)
        write.start_next(table, model.bits, files, token)
    last = 0
    while batch := backend.documents(after=last, most=BATCH_DOCUMENTS):
        with backend.writing() as write:
            _check_turn(write, token, name=backend.name)
            write.copy_codes(table, _encoded(batch, model))
        last = batch[-1][0]
        if progress is not None:
            progress(min(1.0, last / max(1, end - 1)))
    with backend.writing() as write:
        _check_turn(write, token, name=backend.name)
        # What others wrote meanwhile is encoded here, where nobody else can write.
        changed = [seq for seq in backend.changed_since(start).tolist() if seq <= last]
        write.drop_next(table, changed)
        for first in range(0, len(changed), BATCH_DOCUMENTS):
            documents = backend.documents_of(changed[first : first + BATCH_DOCUMENTS])
            write.copy_codes(table, _encoded(list(documents.items()), model))
        while batch := backend.documents(after=last, most=BATCH_DOCUMENTS):
            write.copy_codes(table, _encoded(batch, model))
            last = batch[-1][0]
        write.switch(table, model=files.fingerprint, bits=model.bits)
        old = write.state.codes
    try:
        with connections.writing() as connection:
            connection.execute(f"DROP TABLE IF EXISTS {old}")
    except SnuhError as error:  # it only takes space, until the next rehash
        logger.warning("the table of the old codes could not be dropped: %s", error)


def _encoded(batch: Sequence[tuple[int, Document]], model: Model) -> Iterator[tuple[int, bytes | None]]:
    seqs = iter([seq for seq, _ in batch])
    for part in encode_documents(model, [document for _, document in batch]):
        for code in part.packed():
            yield next(seqs), code


def _check_turn(write: PgWrite, token: str, *, name: str) -> None:
    if write.state.rehash != token:
        raise CollectionError(f"{name}: another rehash of it has started: this one stops")
