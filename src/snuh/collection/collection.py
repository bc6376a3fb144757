"""Documents, their codes and the model in one folder that answers searches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from snuh.codes import check_codes
from snuh.collection.answers import Opened
from snuh.collection.codefile import CODES_FILE
from snuh.collection.fast import FastLists
from snuh.collection.folder import check_collection, load_model, make_folder
from snuh.collection.incoming import checked_documents
from snuh.collection.rehash import rehash
from snuh.collection.results import Added, Info, Sample
from snuh.collection.searching import SearchOptions, check_fields, checked
from snuh.collection.store import STORE_FILE, NewDocument, State, Store
from snuh.collection.table import CodeTable
from snuh.corpus import Document
from snuh.encoding import document_batches, encode_documents
from snuh.errors import (
    CollectionError,
    InputError,
    ModelError,
    SnuhError,
    UnknownDocumentError,
    suggest,
)
from snuh.explain import Explanation, explain
from snuh.filters import Filter
from snuh.metrics import code_health
from snuh.model import Model
from snuh.search import Hit, unknown_words

logger = logging.getLogger(__name__)

LONGEST_SUGGESTED, IDS_LOOKED_AT = 100, 25
MOST_FIELDS = 1_000
MAX_CHARACTERS = 10_000_000  # of one document
BATCH_DOCUMENTS = 1_000  # read from the store at a time
HEALTH_SAMPLE = 100_000


class Collection:
    """Opens the folder of a collection: `Collection("tickets").search("printer is on fire")`.

    Several processes may read while one writes; what another process wrote is seen by the next call.

    Args:
        folder: made by `Collection.create`.
        timeout: seconds to wait for another writer.
    """

    def __init__(self, folder: Path | str, *, timeout: float = 30.0) -> None:
        self.folder = Path(folder)
        check_collection(self.folder)
        self._store = Store(self.folder, timeout=timeout)
        try:
            self._open_current()
        except BaseException:
            self._store.close()
            raise

    @classmethod
    def create(cls, folder: Path | str, model: Model) -> Self:
        """Make an empty collection that encodes with a model; the folder must be absent or empty."""
        make_folder(Path(folder), model)
        return cls(folder)

    def close(self) -> None:
        """Let go of the folder."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Count the documents."""
        return self._store.count()

    def __contains__(self, identity: object) -> bool:
        """Tell whether there is a document of that id."""
        return isinstance(identity, str) and self._store.seq_of(identity) is not None

    # Writing

    def add(
        self,
        documents: Iterable[Document | Mapping[str, Any]],
        *,
        max_characters: int = MAX_CHARACTERS,
    ) -> Added:
        """Insert documents, or replace those with the same id, which keep their place.

        They are read and written in batches; each batch is there for good once it is written, also if a later
        one fails.

        Args:
            documents: a source, Documents, or mappings with "text" and perhaps "id", "labels", "split" and
                metadata.
            max_characters: the longest text to take.
        """
        added = Added(0, 0, 0)
        try:
            for batch in document_batches(checked_documents(documents, max_characters)):
                added = added + self._put(batch)
        except (InputError, CollectionError) as error:
            done = added.inserted + added.replaced
            if not done:
                raise
            raise type(error)(f"{error}; the first {done:,} documents were added") from error
        finally:
            self._catch_up()
        return added

    def _put(self, documents: list[Document]) -> Added:
        opened = self._opened
        (batch,) = encode_documents(opened.model, documents)
        with self._store.writing() as write:
            if write.state.model != opened.fingerprint:
                # The model was changed since this batch was encoded.
                opened = self._open(write.state)
                (batch,) = encode_documents(opened.model, documents)
            codes = [
                row.tobytes() if known else None for row, known in zip(batch.codes, batch.known, strict=True)
            ]
            put = write.put(list(map(NewDocument, batch.documents, codes)))
        return put

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents; InputError, and nothing deleted, where an id is unknown."""
        if isinstance(ids, str):
            raise InputError("expected a list of ids, got a single one: put it into a list")
        with self._store.writing() as write:
            seqs = {self._seq_of(identity) for identity in ids}
            write.delete(seqs)
        return len(seqs)

    def delete_where(self, where: str | Filter) -> int:
        """Delete the documents that a filter lets through, and return how many they were."""
        with self._store.writing() as write:
            seqs = self._store.seqs_where(check_fields(where, self._store))
            write.delete(seqs)
        return len(seqs)

    def rehash(self, model: Model, *, progress: Callable[[float], None] | None = None) -> None:
        """Encode all documents with another model, beside the codes in use, and switch at once."""
        rehash(self.folder, self._store, model, progress=progress)
        self._catch_up()

    def make_lists(self, *, k: int = 10, recall: float = 0.99) -> FastLists:
        """Prepare searches with `fast`: cluster the codes, and read as many as the recall at k needs."""
        with self._current() as opened:
            opened.table.save()
            return opened.table.make_lists(k=k, recall=recall)

    # Reading

    @property
    def model(self) -> Model:
        """The model that the codes come from, also where another process has changed it."""
        if self._store.state().model != self._opened.fingerprint:
            self._open_current()
        return self._opened.model

    def version(self) -> str:
        """Return what is another text after every write, whoever wrote."""
        return self._store.state().token

    def get(self, identity: str) -> Document:
        """Return a document; UnknownDocumentError where there is none of that id."""
        with self._store.reading():
            seq = self._seq_of(identity)
            return self._store.documents_of([seq])[seq]

    def documents(self, *, where: str | Filter | None = None) -> Iterator[Document]:
        """Yield the documents in order of insertion; those that come meanwhile are left out."""
        condition = None if where is None else check_fields(where, self._store)
        last, end = 0, self._store.state().next_seq
        while batch := self._store.documents(after=last, before=end, most=BATCH_DOCUMENTS, where=condition):
            yield from (document for _, document in batch)
            last = batch[-1][0]

    def sample(self, most: int) -> Sample:
        """Return up to `most` documents that have a code, from all over the collection, and their codes."""
        with self._current() as opened:
            rows = opened.table.rows()
            places = np.unique(np.linspace(0, len(rows.seqs) - 1, min(most, len(rows.seqs))).astype(np.int64))
            seqs = rows.seqs[places]
            documents = self._store.documents_of(seqs)
            return Sample([documents[seq] for seq in seqs.tolist()], rows.codes[places])

    def search(self, text: str, **options: Unpack[SearchOptions]) -> list[Hit]:
        """Find the documents nearest to a text, ordered by (distance, order of insertion).

        Example: `search("printer is on fire", k=5, where="year >= 2020", rerank="cosine")`; `SearchOptions`
        has them all. UnknownWordsError where the model knows no word of the text.
        """
        (hits,) = self.search_many([text], **options)
        if hits is None:
            raise unknown_words(text)
        return hits

    def search_many(self, texts: Sequence[str], **options: Unpack[SearchOptions]) -> list[list[Hit] | None]:
        """Search for many texts at once; None for one of which the model knows no word."""
        how = checked(options)
        with self._current() as opened:
            rows = opened.query_rows(texts)
            known = np.flatnonzero(np.diff(rows.indptr) > 0)
            some = rows if len(known) == len(texts) else rows[known]
            found = opened.find(opened.model.encoder.encode(some), how, most=how.most)
            if how.rerank is None:
                answers = opened.plain_hits(found, k=how.k)
            else:
                queries = (rows[[number]] for number in known)
                answers = [
                    opened.hits(places, query, how) for places, query in zip(found, queries, strict=True)
                ]
        hits: list[list[Hit] | None] = [None] * len(texts)
        for number, answer in zip(known.tolist(), answers, strict=True):
            hits[number] = answer
        return hits

    def search_codes(self, codes: NDArray[np.uint8], **options: Unpack[SearchOptions]) -> list[list[Hit]]:
        """Find the documents nearest to each code (queries, bytes) made by the collection's model."""
        how = checked(options)
        if how.rerank is not None:
            raise InputError("codes alone cannot be reranked: search for their texts")
        with self._current() as opened:
            found = opened.find(check_codes(codes), how, most=how.most)
            return opened.plain_hits(found, k=how.k)

    def similar(self, identity: str, **options: Unpack[SearchOptions]) -> list[Hit]:
        """Find the documents nearest to one of the collection, itself left out; options as for `search`."""
        how = checked(options)
        with self._current() as opened:
            seq = self._seq_of(identity)
            code = opened.table.code_of(seq)
            text = self._store.documents_of([seq])[seq].text
            if code is None:
                raise unknown_words(text)
            (places,) = opened.find(code[None], how, most=how.most + 1)
            others = [place for place in places if place.seq != seq][: how.most]
            return opened.hits(others, opened.features.transform([text]), how)

    def explain(self, text: str, identity: str) -> Explanation:
        """Say which words of a query and of a document made their bits agree or differ."""
        with self._current() as opened:
            return explain(opened.model, text, self.get(identity).text)

    def info(self) -> Info:
        """Describe the collection."""
        with self._current() as opened:
            table, sample = opened.table, opened.table.sample(HEALTH_SAMPLE)
            return Info(
                folder=self.folder,
                documents=len(self),
                searchable=len(table),
                bits=opened.model.bits,
                method=opened.model.method,
                model=opened.fingerprint,
                fields=tuple(self._store.fields(most=MOST_FIELDS)),
                store_bytes=_size(self.folder / STORE_FILE) + _size(self.folder / f"{STORE_FILE}-wal"),
                code_bytes=_size(self.folder / CODES_FILE),
                fast=table.lists(),
                health=code_health(sample) if len(sample) else None,
            )

    # Within

    def _open(self, state: State) -> Opened:
        """Load the model of a state and the codes that it made."""
        model = load_model(self.folder, state.model)
        table = CodeTable(self.folder, bits=state.bits)
        self._opened = Opened(model, state.model, table, self._store)
        return self._opened

    def _open_current(self) -> None:
        """Load the model in use; again, where another process replaced and removed it meanwhile."""
        while True:
            state = self._store.state()
            try:
                self._open(state)
                return
            except ModelError:
                if self._store.state().token == state.token:
                    raise

    @contextmanager
    def _current(self) -> Iterator[Opened]:
        """See the collection as it is now, and as it stays until the block ends."""
        with ExitStack() as stack:
            state = stack.enter_context(self._store.reading())
            while state.model != self._opened.fingerprint:
                stack.close()
                self._open_current()
                state = stack.enter_context(self._store.reading())
            opened = self._opened
            opened.table.refresh(self._store, state)
            yield opened
            self._save(opened.table, state)

    def _catch_up(self) -> None:
        """Read what was written, so that the code file is there for the next process that opens it."""
        try:
            with self._current():
                pass
        except SnuhError as error:  # what was written is written, and the next reader tries again
            logger.warning("the codes could not be read back: %s", error)

    def _save(self, table: CodeTable, state: State) -> None:
        if not table.needs_saving or not self._store.is_writable:
            return
        try:
            table.adopt(self._store, state)
            if table.needs_saving:
                table.save()
        except SnuhError as error:  # searches go on from memory
            logger.warning("the codes could not be written beside the store: %s", error)

    def _seq_of(self, identity: str) -> int:
        if not isinstance(identity, str):
            raise InputError(f"an id must be a string, got {identity!r}")
        seq = self._store.seq_of(identity)
        if seq is None:
            near = ""
            if len(identity) <= LONGEST_SUGGESTED:
                near = suggest(identity, self._store.ids_near(identity, most=IDS_LOOKED_AT))
            raise UnknownDocumentError(f"{self.folder} has no document {identity!r}{near}")
        return seq


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
