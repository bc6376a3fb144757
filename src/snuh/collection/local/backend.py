"""The backend of collections in a folder: a SQLite store, and a code table derived from it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import (
    Backend,
    Match,
    NewDocument,
    Put,
    Ranking,
    WordQuery,
    evenly_spaced,
    refuse_words,
)
from snuh.collection.local.code_table import CODES_FILE, CodeTable
from snuh.collection.local.folder import (
    HAS_WORDS,
    check_collection,
    creating_folder,
    drop_other_models,
    ensure_folder_absent,
    load_model,
    save_model,
)
from snuh.collection.local.store import STORE_FILE, LocalState, LocalWrite, Store
from snuh.collection.local.word_table import WORDS_FILE, WordTable
from snuh.collection.results import Added, CodeRows, IndexInfo
from snuh.corpus import Document
from snuh.encoding import encode_documents
from snuh.errors import CollectionError, ModelError, SnuhError
from snuh.features.analyzer import Analyzer
from snuh.filters import Filter
from snuh.io import is_collection_folder, resolve
from snuh.model import Model

BATCH_DOCUMENTS = 5_000  # of a rehash

logger = logging.getLogger(__name__)


# The functions of `snuh.collection.backend.BackendModule`


def open_backend(location: str, *, timeout: float) -> Backend:
    """Open the folder of a collection."""
    manifest = check_collection(Path(location))
    return LocalBackend(location, timeout=timeout, has_words=manifest.get(HAS_WORDS) is not False)


@contextmanager
def creating(location: str, model: Model, *, words: bool = True) -> Iterator[Put]:
    """Create a collection in a folder that is absent or empty."""
    with creating_folder(Path(location), model, words=words) as folder, closing(Store(folder)) as store:

        def put(new: Sequence[NewDocument]) -> Added:
            with store.writing() as write:
                return write.put(new)

        yield put


def ensure_absent(location: str) -> None:
    """Raise InputError unless the folder is absent or empty."""
    ensure_folder_absent(Path(location))


def is_collection(location: str) -> bool:
    """Tell whether a folder has the manifest of a collection."""
    return is_collection_folder(Path(location))


def short_name(location: str) -> str:
    """Return the name of the folder."""
    return resolve(location).name


class LocalBackend(Store):
    """The store with searches.

    Attributes:
        name: the folder as given.
        folder: its absolute path, so that a change of the working directory does not matter.
        has_words: whether there is an index of words.
    """

    def __init__(self, location: str, *, timeout: float, has_words: bool) -> None:
        self.name, self.has_words = location, has_words
        self.folder = Path(location).absolute()
        super().__init__(self.folder, timeout=timeout)
        self._table: CodeTable | None = None
        self._table_key: object = None  # store and model that the table belongs to
        self._word_table: WordTable | None = None
        self._word_table_key: object = None
        self._local = threading.local()  # the state of this thread's read transaction

    @contextmanager
    def reading(self) -> Iterator[LocalState]:
        """Begin a read transaction; at its end, an outdated code file is rewritten."""
        before = getattr(self._local, "state", None)
        with super().reading() as state:
            self._local.state = state
            try:
                yield state
            finally:
                self._local.state = before
            self._save_table(state)
            self._save_words(state)

    def warm_cache(self, analyzer: Analyzer) -> None:
        """Load the latest codes and words, so that their files are current for the next process."""
        try:
            with self.reading():
                self._codes()
                if self.has_words:
                    self._words(analyzer)
        except SnuhError as error:  # the write itself succeeded, and the next reader tries again
            logger.warning("the codes could not be loaded: %s", error)

    # The model

    def load_model(self, fingerprint: str) -> Model:
        """Load a model of the collection."""
        return load_model(self.folder, fingerprint)

    def rehash(self, model: Model, *, progress: Callable[[float], None] | None) -> None:
        """Encode every document with another model, then replace all codes at once."""
        # In one transaction, so that two processes cannot drop each other's models.
        with self.writing() as write:
            fingerprint = save_model(self.folder, model)
            drop_other_models(self.folder, {write.state.model, fingerprint})
            token = write.start_next_codes()
            start, end = write.number, write.state.next_seq
        start_token = self.token_of(start)
        last = 0
        while batch := self.documents(after=last, limit=BATCH_DOCUMENTS):
            with self.writing() as write:
                _check_not_superseded(write, token)
                _put_next_codes(write, batch, model)
            last = batch[-1][0]
            if progress is not None:
                progress(min(1.0, last / max(1, end - 1)))
        with self.writing() as write:
            _check_not_superseded(write, token)
            if not self.remembers(start, start_token):
                raise CollectionError(
                    f"{self.folder}: too many documents changed during the rehash; the old codes stay in use"
                )
            # Catch up with concurrent writes while holding the write lock.
            changed = self.changed_since(start)
            changed = changed[changed <= last]
            for first in range(0, len(changed), BATCH_DOCUMENTS):
                documents = self.documents_of(changed[first : first + BATCH_DOCUMENTS])
                _put_next_codes(write, sorted(documents.items(), key=lambda item: item[0]), model)
            while batch := self.documents(after=last, limit=BATCH_DOCUMENTS):
                _put_next_codes(write, batch, model)
                last = batch[-1][0]
            try:
                load_model(self.folder, fingerprint)
            except ModelError as error:
                raise CollectionError(
                    f"{self.folder}: the new model was removed during the rehash; the old codes stay in use"
                ) from error
            write.switch(model=fingerprint, bits=model.bits)

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
        """Scan all codes, or the lists that the approximate index selects."""
        table = self._codes()
        masks = None
        if where is not None:
            masks = table.masks(where, self)
        index = table.index() if approximate else None
        if approximate and index is None:
            logger.warning('there is no index, so all codes are scanned: build one with "snuh index"')
        return table.scan(queries, k=k, radius=radius, masks=masks, index=index)

    def rank(self, query: WordQuery, *, analyzer: Analyzer, k: int, where: Filter | None) -> Ranking:
        """Score every document by its words, and by its code if the query has margins."""
        with self.reading() as state:
            codes = self._codes()
            seqs = None if where is None else codes.matching(where, self)
            return self._words(analyzer).rank(query, codes, k=k, among=seqs, bits=state.bits)

    def word_scores(self, text: str, seqs: Sequence[int], *, analyzer: Analyzer) -> NDArray[np.float32]:
        """Return the BM25 scores of documents for the most telling words of a text."""
        with self.reading():
            return self._words(analyzer).scores(text, seqs)

    def check_words(self, analyzer: Analyzer) -> list[str]:
        """Compare the index of words with the documents."""
        if not self.has_words:
            return []
        with self.reading():
            if self._words(analyzer).is_correct(self):
                return []
        return [f"the index of words disagrees with the documents: delete {WORDS_FILE}, it is made again"]

    def codes_of(self, seqs: Sequence[int]) -> CodeRows:
        """Return the codes of these documents, ordered by seq."""
        return self._codes().codes_of(seqs)

    def sample_codes(self, limit: int) -> CodeRows:
        """Return up to `limit` evenly spaced codes, ordered by seq."""
        rows = self._codes().rows()
        indices = evenly_spaced(len(rows.seqs), limit)
        return CodeRows(rows.seqs[indices], rows.codes[indices])

    def searchable(self) -> int:
        """Return the number of documents that have a code."""
        return len(self._codes())

    def build_index(self, *, k: int, recall: float) -> IndexInfo:
        """Build an IVF index, and choose the number of probes that reaches the recall at k."""
        with self.reading():
            table = self._codes()
            table.save()
            return table.build_index(k=k, recall=recall).info()

    def index_info(self) -> IndexInfo | None:
        """Describe the IVF index; None if there is none."""
        index = self._codes().index()
        return None if index is None else index.info()

    def sizes(self) -> tuple[int, int]:
        """Return the size in bytes of the store, and of the files of codes and words."""
        store = _size(self.path) + _size(self.folder / f"{STORE_FILE}-wal")
        return store, _size(self.folder / CODES_FILE) + _size(self.folder / WORDS_FILE)

    def _codes(self) -> CodeTable:
        """Return the code table at the state of this thread's transaction, or at the latest state."""
        state: LocalState | None = getattr(self._local, "state", None)
        if state is None:
            with self.reading():
                return self._codes()
        key = self._connection.file_id, state.model
        if self._table is None or self._table_key != key:
            self._table, self._table_key = CodeTable(self.folder, bits=state.bits), key
        self._table.refresh(self, state)
        return self._table

    def _words(self, analyzer: Analyzer) -> WordTable:
        """Return the index of words at the state of this thread's transaction."""
        if not self.has_words:
            raise refuse_words()
        state: LocalState = self._local.state
        key = self._connection.file_id, state.model
        if self._word_table is None or self._word_table_key != key:
            self._word_table, self._word_table_key = WordTable(self.folder, analyzer), key
        self._word_table.refresh(self, state)
        return self._word_table

    def _save_words(self, state: LocalState) -> None:
        words = self._word_table
        if words is None or words.stamp is None or words.stamp.token != state.token:
            return
        if words.needs_saving and self.is_writable:
            try:
                words.save()
            except SnuhError as error:  # searches continue from memory
                logger.warning("the index of words could not be written: %s", error)

    def _save_table(self, state: LocalState) -> None:
        table = self._table
        if table is None or table.stamp is None or table.stamp.token != state.token:
            return
        if not table.needs_saving or not self.is_writable:
            return
        try:
            table.adopt(self, state)
            if table.needs_saving:
                table.save()
        except SnuhError as error:  # searches continue from memory
            logger.warning("the code file could not be written: %s", error)


def _put_next_codes(write: LocalWrite, batch: Sequence[tuple[int, Document]], model: Model) -> None:
    seqs = iter([seq for seq, _ in batch])
    for encoded in encode_documents(model, [document for _, document in batch]):
        codes = encoded.packed()
        write.put_next_codes([next(seqs) for _ in codes], codes)


def _check_not_superseded(write: LocalWrite, token: str) -> None:
    if write.state.rehash != token:
        raise CollectionError(
            "another rehash of this collection has started, or it was replaced: this rehash stops"
        )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
