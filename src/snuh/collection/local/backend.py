"""A collection in a folder: the store, and the table of codes that is kept up with it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import Backend, Match, NewDocument, Put, evenly_spaced
from snuh.collection.local.code_table import CODES_FILE, CodeTable
from snuh.collection.local.folder import (
    check_collection,
    drop_other_models,
    ensure_folder_absent,
    keep_model,
    load_model,
    making_folder,
)
from snuh.collection.local.store import STORE_FILE, State, Store, Write
from snuh.collection.results import Added, CodeRows, IndexInfo
from snuh.corpus import Document
from snuh.encoding import encode_documents
from snuh.errors import CollectionError, ModelError, SnuhError
from snuh.filters import Filter
from snuh.io import is_collection_folder
from snuh.model import Model

# Codes of another model for all documents, made beside those in use.

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
    while batch := store.documents(after=last, limit=BATCH_DOCUMENTS):
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
        while batch := store.documents(after=last, limit=BATCH_DOCUMENTS):
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


logger = logging.getLogger(__name__)


class LocalBackend(Store):
    """The store, with searches."""

    def __init__(self, folder: Path, *, timeout: float) -> None:
        super().__init__(folder, timeout=timeout)
        self.folder = folder
        self._codes: CodeTable | None = None
        self._codes_of = ""  # the model of the table
        self._mine = threading.local()  # the state that this thread sees

    @property
    def name(self) -> str:
        """The folder as it was given."""
        return str(self.folder)

    @contextmanager
    def reading(self) -> Iterator[State]:
        """See one state until the block ends; codes that were read in it are written beside the store."""
        before = getattr(self._mine, "state", None)
        with super().reading() as state:
            self._mine.state = state
            try:
                yield state
            finally:
                self._mine.state = before
            self._save(state)

    def warm_cache(self) -> None:
        """Read what was written, so that the code file is there for the next process that opens it."""
        try:
            with self.reading():
                self._table()
        except SnuhError as error:  # what was written is written, and the next reader tries again
            logger.warning("the codes could not be read back: %s", error)

    def load_model(self, fingerprint: str) -> Model:
        """Load a model that the folder keeps."""
        return load_model(self.folder, fingerprint)

    def rehash(self, model: Model, *, progress: Callable[[float], None] | None) -> None:
        """Encode all documents with another model, beside the codes in use, and switch at once."""
        rehash(self.folder, self, model, progress=progress)

    # Codes

    def find(
        self,
        queries: NDArray[np.uint8],
        *,
        k: int,
        radius: int | None,
        where: Filter | None,
        approximate: bool,
    ) -> list[list[Match]]:
        """Scan the codes, or the lists of them that are near."""
        table = self._table()
        masks = None
        if where is not None:
            masks = table.masks(str(where), lambda: self.seqs_where(where))
        lists = table.lists() if approximate else None
        if approximate and lists is None:
            logger.warning('all codes are read, there are no lists: make them with "snuh index"')
        return table.scan(queries, k=k, radius=radius, masks=masks, lists=lists)

    def codes_of(self, seqs: Sequence[int]) -> CodeRows:
        """Return the codes that these documents have, by seq."""
        return self._table().codes_of(seqs)

    def sample_codes(self, limit: int) -> CodeRows:
        """Return codes evenly from all over the collection."""
        rows = self._table().rows()
        places = evenly_spaced(len(rows.seqs), limit)
        return CodeRows(rows.seqs[places], rows.codes[places])

    def searchable(self) -> int:
        """Return the number of documents that have a code."""
        return len(self._table())

    def build_index(self, *, k: int, recall: float) -> IndexInfo:
        """Cluster the codes, and read as many lists as the recall at k needs."""
        with self.reading():
            table = self._table()
            table.save()
            return table.build_index(k=k, recall=recall).facts()

    def index_info(self) -> IndexInfo | None:
        """Tell of the lists."""
        lists = self._table().lists()
        return None if lists is None else lists.facts()

    def sizes(self) -> tuple[int, int]:
        """Return the bytes of the store and of the code file."""
        store = _size(self.path) + _size(self.folder / f"{STORE_FILE}-wal")
        return store, _size(self.folder / CODES_FILE)

    def _table(self) -> CodeTable:
        """Return the codes of the state that this thread sees, or of the newest."""
        state: State | None = getattr(self._mine, "state", None)
        if state is None:
            with self.reading():
                return self._table()
        if self._codes is None or self._codes_of != state.model:
            self._codes, self._codes_of = CodeTable(self.folder, bits=state.bits), state.model
        self._codes.refresh(self, state)
        return self._codes

    def _save(self, state: State) -> None:
        table = self._codes
        if table is None or table.stamp is None or table.stamp.token != state.token:
            return
        if not table.needs_saving or not self.is_writable:
            return
        try:
            table.adopt(self, state)
            if table.needs_saving:
                table.save()
        except SnuhError as error:  # searches go on from memory
            logger.warning("the codes could not be written beside the store: %s", error)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


# What `snuh.collection.backend.BackendModule` asks of a module that opens collections.


def open_backend(address: str, *, timeout: float) -> Backend:
    """Open the folder of a collection."""
    check_collection(Path(address))
    return LocalBackend(Path(address), timeout=timeout)


@contextmanager
def creating(address: str, model: Model) -> Iterator[Put]:
    """Make a collection; the folder must be absent or empty."""
    with making_folder(Path(address), model) as place, closing(Store(place)) as store:

        def put(new: Sequence[NewDocument]) -> Added:
            with store.writing() as write:
                return write.put(new)

        yield put


def ensure_absent(address: str) -> None:
    """Raise InputError unless a collection can be made in a folder: absent, or empty."""
    ensure_folder_absent(Path(address))


def is_collection(address: str) -> bool:
    """Tell whether a folder says that it is a collection."""
    return is_collection_folder(Path(address))


def short_name(address: str) -> str:
    """Return the name of the folder."""
    return Path(address).resolve().name
