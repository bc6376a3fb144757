"""What the backends of collections promise: every test of the contract says which promise it needs."""

from __future__ import annotations

from enum import Enum

import pytest


class Promise(Enum):
    """A row of the table in docs/collections.md."""

    EXACT_SEARCH = "a search returns exactly the nearest documents"
    STABLE_TIES = "equally near documents are in the same order everywhere"
    WORDS = "searches by words, and by words and codes, have the same scores"
    FILTERS = "filters mean the same"
    LOSSLESS_DOCUMENTS = "documents come back as they were given"
    UPSERTS = "an id exists once; adding it again replaces the document"
    APPROXIMATE_SEARCH = "approximate searches with a measured recall"
    READ_AFTER_WRITE = "a completed write is seen by every later read, in any process"
    VERSIONS = "the version changes with every write"
    CLEAR_ERRORS = "wrong input is refused in one line, with a suggestion"
    CHECKED_BATCHES = "a batch with a document that cannot be stored is refused as a whole"
    ATOMIC_CREATE = "a collection appears complete or not at all"
    ATOMIC_REHASH = "a rehash switches all codes at once"
    ROW_CONSISTENCY = "a document is read with its own code"
    CONCURRENCY = "several threads and processes may read and write"
    RECOVERY = "open collections go on after the server was restarted"
    EVERY_WAY_IN = "all commands, copies and the HTTP server work"
    ATOMIC_BATCHES = "a batch is written as a whole or not at all"
    SERIALIZED_WRITERS = "writers take turns"
    SNAPSHOT_READS = "a long read sees one state"
    WRITES_DURING_REHASH = "others may write during a rehash"


FOLDER = frozenset(Promise)
POSTGRESQL = frozenset(Promise)
MILVUS = frozenset(Promise) - {  # it has no transactions and no locks, and does not order ties
    Promise.STABLE_TIES,
    Promise.WORDS,
    Promise.ATOMIC_BATCHES,
    Promise.SERIALIZED_WRITERS,
    Promise.SNAPSHOT_READS,
    Promise.WRITES_DURING_REHASH,
}


def needs(promise: Promise) -> pytest.MarkDecorator:
    """Run a test only where the promise is made: in files whose PROMISES have it."""
    return pytest.mark.needs(promise)
