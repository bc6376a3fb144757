"""Documents, their codes and the model in one place that answers searches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from snuh.codes import check_codes
from snuh.collection.backend import NewDocument, State, module_of, retry_once
from snuh.collection.model_files import check_takes_texts
from snuh.collection.query import QueryEngine, SearchOptions, check_fields, checked
from snuh.collection.results import Added, IndexInfo, Info, Sample
from snuh.collection.validation import checked_documents
from snuh.corpus import Document
from snuh.encoding import document_batches, encode_documents
from snuh.errors import (
    CollectionError,
    InputError,
    ModelError,
    UnknownDocumentError,
    suggest,
)
from snuh.explain import Explanation, explain
from snuh.filters import Filter
from snuh.metrics import code_health
from snuh.model import Model
from snuh.search import Hit, unknown_words
from snuh.urls import Address

MAX_SUGGESTED, IDS_LOOKED_AT = 100, 25
MAX_FIELDS = 1_000
MAX_CHARACTERS = 10_000_000  # of one document
BATCH_DOCUMENTS = 1_000  # read from the store at a time
HEALTH_SAMPLE = 100_000


class Collection:
    """Opens a collection: `Collection("tickets").search("printer is on fire")`.

    Several processes may read while one writes; what another process wrote is seen by the next call.

    Args:
        address: its folder, or "postgresql://..." or "milvus://..."; made by `Collection.create`.
        timeout: seconds to wait for another writer.
    """

    def __init__(self, address: Address, *, timeout: float = 30.0) -> None:
        self.address = address  # with its password, where it has one: to be shown is `name`
        self._backend = module_of(address).open_backend(str(address), timeout=timeout)
        try:
            self._open_current()
        except BaseException:
            self._backend.close()
            raise

    @classmethod
    def create(cls, address: Address, model: Model) -> Self:
        """Make an empty collection that encodes with a model; nothing may be there yet."""
        with module_of(address).creating(str(address), model):
            pass
        return cls(address)

    def close(self) -> None:
        """Let go of it."""
        self._backend.close()

    def __repr__(self) -> str:
        return f"Collection({self.name!r})"

    @property
    def name(self) -> str:
        """Its address, without any secret."""
        return self._backend.name

    @property
    def folder(self) -> Path | None:
        """Its folder; None where it is on a server."""
        return self._backend.folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @retry_once
    def __len__(self) -> int:
        """Count the documents."""
        return self._backend.count()

    @retry_once
    def __contains__(self, doc_id: object) -> bool:
        """Tell whether there is a document of that id."""
        return isinstance(doc_id, str) and self._backend.seq_of(doc_id) is not None

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
            self._backend.warm_cache()
        return added

    @retry_once
    def _put(self, documents: list[Document]) -> Added:
        opened = self._engine
        (batch,) = encode_documents(opened.model, documents)
        with self._backend.writing() as write:
            if write.state.model != opened.fingerprint:
                # The model was changed since this batch was encoded.
                opened = self._open(write.state)
                (batch,) = encode_documents(opened.model, documents)
            put = write.put(list(map(NewDocument, batch.documents, batch.packed())))
        return put

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents; InputError, and nothing deleted, where an id is unknown."""
        if isinstance(ids, str):
            raise InputError("expected a list of ids, got a single one: put it into a list")
        return self._delete(list(ids))

    @retry_once
    def _delete(self, ids: Sequence[str]) -> int:
        with self._backend.writing() as write:
            seqs = {self._seq_of(doc_id) for doc_id in ids}
            write.delete(seqs)
        return len(seqs)

    @retry_once
    def delete_where(self, where: str | Filter) -> int:
        """Delete the documents that a filter lets through, and return how many they were."""
        with self._backend.writing() as write:
            seqs = self._backend.seqs_where(check_fields(where, self._backend))
            write.delete(seqs)
        return len(seqs)

    def rehash(self, model: Model, *, progress: Callable[[float], None] | None = None) -> None:
        """Encode all documents with another model, beside the codes in use, and switch at once."""
        check_takes_texts(model)
        self._backend.rehash(model, progress=progress)
        self._backend.warm_cache()

    def build_index(self, *, k: int = 10, recall: float = 0.99) -> IndexInfo:
        """Prepare searches with `approximate`: index the codes so that the wanted recall at k is reached."""
        if k < 1 or not 0 < recall <= 1:
            raise InputError(
                f"expected k of at least 1 and a recall above 0 and at most 1, got {k} and {recall}"
            )
        return self._backend.build_index(k=k, recall=recall)

    # Reading

    @property
    @retry_once
    def model(self) -> Model:
        """The model that the codes come from, also where another process has changed it."""
        if self._state().model != self._engine.fingerprint:
            self._open_current()
        return self._engine.model

    @retry_once
    def version(self) -> str:
        """Return what is another text after every write, whoever wrote."""
        return self._state().token

    @retry_once
    def get(self, doc_id: str) -> Document:
        """Return a document; UnknownDocumentError where there is none of that id."""
        with self._backend.reading():
            seq = self._seq_of(doc_id)
            return self._backend.documents_of([seq])[seq]

    def documents(self, *, where: str | Filter | None = None) -> Iterator[Document]:
        """Yield the documents in order of insertion; those that come meanwhile are left out."""
        condition = None if where is None else check_fields(where, self._backend)
        read = retry_once(self._backend.documents)
        last, end = 0, self._state().next_seq
        while batch := read(after=last, before=end, limit=BATCH_DOCUMENTS, where=condition):
            yield from (document for _, document in batch)
            last = batch[-1][0]

    @retry_once
    def sample(self, limit: int) -> Sample:
        """Return up to `most` documents that have a code, from all over the collection, and their codes."""
        with self._current() as opened:
            rows = opened.backend.sample_codes(limit)
            documents = opened.backend.documents_of(rows.seqs.tolist())
            return Sample([documents[seq] for seq in rows.seqs.tolist()], rows.codes)

    def search(self, text: str, **options: Unpack[SearchOptions]) -> list[Hit]:
        """Find the documents nearest to a text, ordered by (distance, order of insertion).

        Example: `search("printer is on fire", k=5, where="year >= 2020", rerank="cosine")`; `SearchOptions`
        has them all. UnknownWordsError where the model knows no word of the text.
        """
        (hits,) = self.search_many([text], **options)
        if hits is None:
            raise unknown_words(text)
        return hits

    @retry_once
    def search_many(self, texts: Sequence[str], **options: Unpack[SearchOptions]) -> list[list[Hit] | None]:
        """Search for many texts at once; None for one of which the model knows no word."""
        how = checked(options)
        with self._current() as opened:
            rows = opened.query_rows(texts)
            known = np.flatnonzero(np.diff(rows.indptr) > 0)
            some = rows if len(known) == len(texts) else rows[known]
            found = opened.find(opened.model.encoder.encode(some), how, limit=how.limit)
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

    @retry_once
    def search_codes(self, codes: NDArray[np.uint8], **options: Unpack[SearchOptions]) -> list[list[Hit]]:
        """Find the documents nearest to each code (queries, bytes) made by the collection's model."""
        how = checked(options)
        if how.rerank is not None:
            raise InputError("codes alone cannot be reranked: search for their texts")
        with self._current() as opened:
            found = opened.find(check_codes(codes, bits=opened.model.bits), how, limit=how.limit)
            return opened.plain_hits(found, k=how.k)

    @retry_once
    def similar(self, doc_id: str, **options: Unpack[SearchOptions]) -> list[Hit]:
        """Find the documents nearest to one of the collection, itself left out; options as for `search`."""
        how = checked(options)
        with self._current() as opened:
            seq = self._seq_of(doc_id)
            codes = opened.backend.codes_of([seq]).codes
            text = opened.backend.documents_of([seq])[seq].text
            if not len(codes):
                raise unknown_words(text)
            (places,) = opened.find(codes, how, limit=how.limit + 1)
            others = [place for place in places if place.seq != seq][: how.limit]
            return opened.hits(others, opened.features.transform([text]), how)

    @retry_once
    def explain(self, text: str, doc_id: str) -> Explanation:
        """Say which words of a query and of a document made their bits agree or differ."""
        with self._current() as opened:
            return explain(opened.model, text, self.get(doc_id).text)

    @retry_once
    def info(self) -> Info:
        """Describe the collection."""
        with self._current() as opened:
            backend = opened.backend
            sample = backend.sample_codes(HEALTH_SAMPLE).codes
            store_bytes, code_bytes = backend.sizes()
            return Info(
                address=self.name,
                documents=backend.count(),
                searchable=backend.searchable(),
                bits=opened.model.bits,
                method=opened.model.method,
                model=opened.fingerprint,
                fields=tuple(backend.fields(limit=MAX_FIELDS)),
                store_bytes=store_bytes,
                code_bytes=code_bytes,
                index=backend.index_info(),
                health=code_health(sample) if len(sample) else None,
            )

    # Within

    def _open(self, state: State) -> QueryEngine:
        """Load the model of a state."""
        self._engine = QueryEngine(self._backend.load_model(state.model), state.model, self._backend)
        return self._engine

    def _open_current(self) -> None:
        """Load the model in use; again, where another process replaced and removed it meanwhile."""
        while True:
            state = self._state()
            try:
                self._open(state)
                return
            except ModelError:
                if self._state().token == state.token:
                    raise

    @retry_once
    def _state(self) -> State:
        with self._backend.reading() as state:
            return state

    @contextmanager
    def _current(self) -> Iterator[QueryEngine]:
        """See the collection as it is now, and as it stays until the block ends."""
        with ExitStack() as stack:
            state = stack.enter_context(self._backend.reading())
            while state.model != self._engine.fingerprint:
                stack.close()
                self._open_current()
                state = stack.enter_context(self._backend.reading())
            yield self._engine

    def _seq_of(self, doc_id: str) -> int:
        if not isinstance(doc_id, str):
            raise InputError(f"an id must be a string, got {doc_id!r}")
        seq = self._backend.seq_of(doc_id)
        if seq is None:
            near = ""
            if len(doc_id) <= MAX_SUGGESTED:
                near = suggest(doc_id, self._backend.ids_near(doc_id, limit=IDS_LOOKED_AT))
            raise UnknownDocumentError(f"{self.name} has no document {doc_id!r}{near}")
        return seq
