"""A collection somewhere else: the same documents, codes, order and model, without encoding anything."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from snuh.collection.backend import NewDocument, ensure_absent, module_of
from snuh.urls import Address

BATCH_DOCUMENTS = 1_000
TIMEOUT = 30.0


def copy_collection(
    source: Address, target: Address, *, progress: Callable[[float], None] | None = None
) -> int:
    """Copy a collection to where none is yet, and return how many documents it has.

    The copy is of one state of the source, whatever others write meanwhile; from Milvus, which keeps no
    former states, each document is as it was when it was read, with the code of just that text. The copy is
    there once it is whole: a stop at any point leaves nothing at the target that could be taken for a
    collection. Lists for fast searches are not copied.
    """
    with closing(module_of(source).open_backend(str(source), timeout=TIMEOUT)) as origin:
        ensure_absent(target)
        with origin.reading() as state:
            count, done, last = origin.count(), 0, 0
            model = origin.load_model(state.model)
            with module_of(target).creating(str(target), model) as put:
                while batch := origin.documents(after=last, limit=BATCH_DOCUMENTS):
                    rows = origin.codes_of([seq for seq, _ in batch])
                    codes = dict(zip(rows.seqs.tolist(), map(bytes, rows.codes), strict=True))
                    put([NewDocument(document, codes.get(seq)) for seq, document in batch])
                    last, done = batch[-1][0], done + len(batch)
                    if progress is not None:
                        progress(min(1.0, done / count))
    return done
