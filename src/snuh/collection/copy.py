"""Copy a collection to another location, with its documents, order, codes and model."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from snuh.collection.backend import NewDocument, ensure_absent, module_of
from snuh.io import Location

BATCH_DOCUMENTS = 1_000
TIMEOUT_SECONDS = 30.0


def copy_collection(
    source: Location, target: Location, *, progress: Callable[[float], None] | None = None
) -> int:
    """Copy a collection to an unused location and return the number of documents.

    Nothing is encoded again. The copy is a snapshot of the source; Milvus has no snapshots, so from there
    each document is copied as it was when read, with the code of that text. The target becomes a collection
    only once the copy is complete: an interrupted copy leaves none. The approximate index is not copied.
    """
    with closing(module_of(source).open_backend(str(source), timeout=TIMEOUT_SECONDS)) as origin:
        ensure_absent(target)
        with origin.reading() as state:
            count, done, last = origin.count(), 0, 0
            model = origin.load_model(state.model)
            with module_of(target).creating(str(target), model, words=origin.has_words) as put:
                while batch := origin.documents(after=last, limit=BATCH_DOCUMENTS):
                    rows = origin.codes_of([seq for seq, _ in batch])
                    codes = dict(zip(rows.seqs.tolist(), map(bytes, rows.codes), strict=True))
                    put([NewDocument(document, codes.get(seq)) for seq, document in batch])
                    last, done = batch[-1][0], done + len(batch)
                    if progress is not None:
                        progress(min(1.0, done / count))
    return done
