"""`Collection`: documents, their codes and a model, with search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from snuh.codes import check_codes
from snuh.collection.backend import NewDocument, State, module_of, retry_once
from snuh.collection.model_files import check_takes_texts
from snuh.collection.query import (
    QueryEngine,
    SearchOptions,
    check_filter,
    check_texts,
    resolve_options,
)
from snuh.collection.results import Added, IndexInfo, Info, Page, Sample
from snuh.corpus import Document
from snuh.corpus.document import updated_record
from snuh.corpus.rows import VECTOR_FIELD, checked_documents
from snuh.encoding import EMBEDDED_DOCUMENTS, document_batches
from snuh.errors import (
    CollectionError,
    InputError,
    ModelError,
    SnuhError,
    UnknownDocumentError,
    suggest,
)
from snuh.explain import Explanation, explain
from snuh.features.vectors import Embed, name_of
from snuh.filters import Filter
from snuh.io import Location
from snuh.metrics import code_health
from snuh.model import Model
from snuh.search import Hits
from snuh.text import html_table

MAX_SUGGESTED_ID, SUGGESTION_POOL = 100, 25  # characters of an unknown id; neighbouring ids compared
MAX_FIELDS = 1_000
MAX_CHARACTERS = 10_000_000  # per document
BATCH_DOCUMENTS = 1_000  # per read
HEALTH_SAMPLE = 100_000  # codes


class Collection:
    """An open collection: `Collection("tickets").search("printer is on fire")`.

    Several processes may read while one writes; each call sees what other processes have written.

    Args:
        location: a folder, "postgresql://..." or "milvus://...", created by `Collection.create`.
        timeout: seconds to wait for another writer.
        embed: makes the vectors of documents and queries that have none, if the model reads vectors.
    """

    def __init__(self, location: Location, *, timeout: float = 30.0, embed: Embed | None = None) -> None:
        self.location = location  # may contain a password: show `name` instead
        self._embed = embed
        self._backend = module_of(location).open_backend(str(location), timeout=timeout)
        try:
            self._open_current()
        except BaseException:
            self._backend.close()
            raise

    @classmethod
    def create(cls, location: Location, model: Model, *, words: bool = True) -> Self:
        """Create an empty collection that encodes with a model; InputError if the location is taken.

        Without `words` there is no index of words: a document takes less space, and searches rank the nearest
        codes only.
        """
        with module_of(location).creating(str(location), model, words=words):
            pass
        return cls(location)

    def close(self) -> None:
        """Close all files and connections."""
        self._backend.close()

    def __repr__(self) -> str:
        return f"Collection({self.name!r})"

    def _repr_html_(self) -> str:
        info = self.info()
        facts = [
            ("collection", info.name),
            ("documents", f"{info.documents:,}, {info.searchable:,} searchable"),
            ("codes", f"{info.bits} bits, {info.method}"),
            ("fields", ", ".join(info.fields[:20]) or "none"),
        ]
        return html_table(facts)

    @property
    def name(self) -> str:
        """The location, with secrets redacted."""
        return self._backend.name

    @property
    def folder(self) -> Path | None:
        """The folder of a local collection; None on a server."""
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
    def count(self, *, where: str | Filter | None = None) -> int:
        """Count the documents that match a filter; all by default."""
        if where is None:
            return self._backend.count()
        return len(self._backend.seqs_where(check_filter(where, self._backend)))

    @retry_once
    def __contains__(self, doc_id: object) -> bool:
        """Tell whether there is a document with this id."""
        return isinstance(doc_id, str) and bool(self._backend.seqs_of([doc_id]))

    # Writing

    def add(
        self,
        documents: Iterable[Any],
        *,
        max_characters: int = MAX_CHARACTERS,
    ) -> Added:
        """Insert documents, or replace those with the same id, which keep their position.

        Documents are written in batches, each in one transaction: if a batch fails, the ones before it stay.

        Args:
            documents: a source, Documents, or mappings with "id" and "text", optionally "labels" and "split",
                other keys are metadata; or a DataFrame, an Arrow table or a dataset with such columns. If the
                model reads vectors, the key "vector" holds that of the document; it is not stored.
            max_characters: maximum length of a text.
        """
        added = Added(0, 0, 0)
        try:
            checked = checked_documents(documents, max_characters, vectors=self._vector_field)
            limit = None if self._embed is None else EMBEDDED_DOCUMENTS
            for batch in document_batches(checked, limit=limit):
                added = added + self._put(batch)
        except (InputError, CollectionError) as error:
            done = added.inserted + added.replaced
            if not done:
                raise
            raise type(error)(f"{error}; the first {done:,} documents were added") from error
        finally:
            self._warm_cache()
        return added

    @retry_once
    def _put(self, documents: list[Document]) -> Added:
        engine = self._engine
        new = engine.new_documents(documents)
        with self._backend.writing() as write:
            current = self._engine_of(write.state)
            if current is not engine:  # the model was replaced after this batch was encoded
                new = current.new_documents(documents)
            added = write.put(new)
        return added

    @retry_once
    def update(self, doc_id: str, changes: Mapping[str, Any]) -> Document:
        """Change fields of a document, and return it; None removes a field.

        Example: `update("ticket-7", {"year": 2025, "desk": None})`. Raises UnknownDocumentError if there is
        no such document. A code made with a vector stays as it is unless the text or the vector changes.
        """
        changes = dict(changes)
        with self._backend.writing() as write:
            seq = self._seq_of(doc_id)
            engine = self._engine_of(write.state)
            stored = self._backend.documents_of([seq])[seq]
            vector = None if engine.model.vectors is None else changes.pop(VECTOR_FIELD, None)
            record = updated_record(stored, changes) | ({} if vector is None else {VECTOR_FIELD: vector})
            (document,) = checked_documents([record], MAX_CHARACTERS, vectors=self._vector_field)
            if engine.model.vectors is not None and document.text == stored.text and vector is None:
                codes = [bytes(code) for code in self._backend.codes_of([seq]).codes]
                write.put([NewDocument(document, codes[0] if codes else None)])
            else:
                write.put(engine.new_documents([document]))
        self._warm_cache()
        return document

    def delete(self, ids: Iterable[str]) -> int:
        """Delete documents by id; InputError, and nothing is deleted, if an id is unknown."""
        if isinstance(ids, str):
            raise InputError("expected a list of ids, got a string: put it into a list")
        return self._delete(list(ids))

    @retry_once
    def _delete(self, ids: Sequence[str]) -> int:
        with self._backend.writing() as write:
            seqs = {self._seq_of(doc_id) for doc_id in ids}
            write.delete(seqs)
        return len(seqs)

    @retry_once
    def delete_where(self, where: str | Filter) -> int:
        """Delete the documents that match a filter and return their number."""
        with self._backend.writing() as write:
            seqs = self._backend.seqs_where(check_filter(where, self._backend))
            write.delete(seqs)
        return len(seqs)

    def rehash(self, model: Model, *, progress: Callable[[float], None] | None = None) -> None:
        """Encode all documents with another model, then replace all codes at once.

        Vectors are not stored: a model that reads them encodes words alone, unless it has an embedding.
        """
        check_takes_texts(model)
        if model.vectors is not None and model.embed is None and self._embed is not None:
            model.use_embedding(self._embed)
        self._backend.rehash(model, progress=progress)
        self._warm_cache()

    def build_index(self, *, k: int = 10, recall: float = 0.99) -> IndexInfo:
        """Build the index for approximate searches, tuned to reach the given recall at k."""
        if k < 1 or not 0 < recall <= 1:
            raise InputError(
                f"expected k of at least 1 and a recall above 0 and at most 1, got {k} and {recall}"
            )
        return self._backend.build_index(k=k, recall=recall)

    def check(self, *, progress: Callable[[float], None] | None = None) -> list[str]:
        """Verify all that is stored, and return the problems, each as a sentence; empty if all is well.

        The storage is checked first; then every document is read, encoded again, and compared with its code
        and with the index of words. Codes of a model that reads vectors are not compared, since the vectors
        are not stored.
        """
        if problems := self._backend.check():
            return problems
        wrong = done = 0
        with self._current() as engine:
            last, count = 0, engine.backend.count()
            while batch := engine.backend.documents(after=last, limit=BATCH_DOCUMENTS):
                if engine.model.vectors is None:
                    stored = engine.codes_by_seq([seq for seq, _ in batch])
                    new = engine.new_documents([document for _, document in batch])
                    wrong += sum(
                        stored.get(seq) != row.code for (seq, _), row in zip(batch, new, strict=True)
                    )
                last, done = batch[-1][0], done + len(batch)
                if progress is not None:
                    progress(min(1.0, done / max(1, count)))
            problems = [f"the codes of {wrong:,} documents are not those of the model"] if wrong else []
            return problems + engine.backend.check_words(engine.features.analyzer)

    # Reading

    @property
    @retry_once
    def model(self) -> Model:
        """The model of the current codes, reloaded if another process has replaced it."""
        if self._state().model != self._engine.fingerprint:
            self._open_current()
        return self._engine.model

    @retry_once
    def version(self) -> str:
        """Return the version token, which changes with every write."""
        return self._state().token

    @retry_once
    def get(self, doc_id: str) -> Document:
        """Return a document; UnknownDocumentError if there is none with this id."""
        with self._backend.reading():
            seq = self._seq_of(doc_id)
            return self._backend.documents_of([seq])[seq]

    @retry_once
    def get_many(self, ids: Iterable[str], *, characters: int | None = None) -> dict[str, Document]:
        """Return documents by id; ids that do not exist are left out.

        `characters` is the maximum number of characters of each text; all by default.
        """
        with self._backend.reading():
            seqs = self._backend.seqs_of(list(ids))
            documents = self._backend.documents_of(seqs.values(), characters=characters)
            return {doc_id: documents[seq] for doc_id, seq in seqs.items()}

    def documents(self, *, where: str | Filter | None = None) -> Iterator[Document]:
        """Yield the documents in order of insertion; documents inserted after the call are left out."""
        condition = None if where is None else check_filter(where, self._backend)
        read = retry_once(self._backend.documents)
        state = self._state()
        last, done = 0, 0
        while batch := read(after=last, before=state.next_seq, limit=BATCH_DOCUMENTS, where=condition):
            yield from (document for _, document in batch)
            last, done = batch[-1][0], done + len(batch)
        if self.folder is not None and where is None:
            expected = self._backend.count()
            if done != expected and self._state().token == state.token:
                raise CollectionError(
                    f"{self.name}: {expected:,} documents were written, there are {done:,}: "
                    "restore the folder from a copy"
                )

    @retry_once
    def page(self, *, after: str | None = None, limit: int = 100, where: str | Filter | None = None) -> Page:
        """Return up to `limit` documents in order of insertion; fewer if their texts are long.

        `after` is the `next` of the page before.
        """
        if limit < 1 or not (after is None or after.isdecimal()):
            raise InputError(
                f"expected a limit of at least 1 and the next of a page, got {limit} and {after!r}"
            )
        with self._backend.reading():
            condition = None if where is None else check_filter(where, self._backend)
            found = self._backend.documents(after=int(after or 0), limit=limit, where=condition)
            more = found and self._backend.documents(after=found[-1][0], limit=1, where=condition)
        return Page([document for _, document in found], str(found[-1][0]) if more else None)

    @retry_once
    def codes(self, ids: Iterable[str]) -> dict[str, bytes]:
        """Return packed codes by id; without ids that do not exist or that have no code."""
        with self._backend.reading():
            seqs = self._backend.seqs_of(list(ids))
            rows = self._backend.codes_of(sorted(seqs.values()))
            by_seq = dict(zip(rows.seqs.tolist(), map(bytes, rows.codes), strict=True))
            return {doc_id: by_seq[seq] for doc_id, seq in seqs.items() if seq in by_seq}

    @retry_once
    def sample(self, limit: int, *, characters: int | None = None) -> Sample:
        """Return up to `limit` evenly spaced documents that have a code, with their codes.

        `characters` is the maximum number of characters of each text; all by default.
        """
        with self._current() as engine:
            rows = engine.backend.sample_codes(limit)
            documents = engine.backend.documents_of(rows.seqs.tolist(), characters=characters)
            return Sample([documents[seq] for seq in rows.seqs.tolist()], rows.codes)

    def search(self, text: str, *, vector: Any = None, **options: Unpack[SearchOptions]) -> Hits:
        """Find the documents that have the words of a text, or are about the same thing, the best first.

        Example: `search('printer "on fire"', k=5, where="year >= 2020")`. Quoted phrases and +words must
        occur, -words must not. See `SearchOptions` for all options.

        By codes, hits are ordered by distance; documents at the same distance by the words of the query that
        they have, if the collection has an index of words, then by insertion.

        `vector` is that of the text, if the model reads vectors; without it, words alone make the query's
        code, or the embedding that the collection was opened with.
        """
        (hits,) = self.search_many([text], vectors=None if vector is None else [vector], **options)
        return hits

    @retry_once
    def search_many(
        self,
        texts: Iterable[str],
        *,
        vectors: Sequence[Any] | None = None,
        **options: Unpack[SearchOptions],
    ) -> list[Hits]:
        """Search for many texts at once; a vector may be None."""
        resolved, texts = resolve_options(options), check_texts(texts)
        with self._current() as engine:
            return engine.search_texts(texts, resolved, vectors=vectors)

    @retry_once
    def search_codes(self, codes: NDArray[np.uint8], **options: Unpack[SearchOptions]) -> list[Hits]:
        """Find the documents nearest to each packed code (queries, bytes) of the collection's model."""
        resolved = resolve_options(options, has_text=False)
        if resolved.rerank is not None:
            raise InputError("rerank needs the text of a query, got a code: use search or search_many")
        with self._current() as engine:
            return engine.search_codes(check_codes(codes, bits=engine.model.bits), resolved)

    @retry_once
    def similar(self, doc_id: str, **options: Unpack[SearchOptions]) -> Hits:
        """Find the documents whose codes are nearest to that of a stored one, excluding itself.

        Documents at the same distance are ordered by the words they have in common with it, if the collection
        has an index of words.
        """
        resolved = resolve_options(options, has_text=False)
        with self._current() as engine:
            return engine.similar(self._seq_of(doc_id), resolved)

    @retry_once
    def explain(self, text: str, doc_id: str) -> Explanation:
        """Attribute the agreeing and differing bits of a query and a document to their words."""
        with self._current() as engine:
            return explain(engine.model, text, self.get(doc_id).text)

    @retry_once
    def info(self) -> Info:
        """Describe the collection."""
        with self._current() as engine:
            backend = engine.backend
            sample = backend.sample_codes(HEALTH_SAMPLE).codes
            store_bytes, code_bytes = backend.sizes()
            return Info(
                name=self.name,
                documents=backend.count(),
                searchable=backend.searchable(),
                bits=engine.model.bits,
                method=engine.model.method,
                vectors=engine.model.vectors,
                embedding=None if engine.model.embed is None else name_of(engine.model.embed),
                vector_fraction=engine.vector_fraction(),
                model=engine.fingerprint,
                fields=tuple(backend.fields(limit=MAX_FIELDS)),
                store_bytes=store_bytes,
                code_bytes=code_bytes,
                has_words=backend.has_words,
                index=backend.index_info(),
                health=code_health(sample) if len(sample) else None,
            )

    # Internals

    def _warm_cache(self) -> None:
        # The write has succeeded; an error here is reported by the next search.
        with suppress(SnuhError), self._current() as engine:
            engine.backend.warm_cache(engine.features.analyzer)

    def _open(self, state: State) -> QueryEngine:
        """Load the model of a state."""
        model = self._backend.load_model(state.model)
        if model.vectors is not None:
            model.use_embedding(self._embed)
        self._engine = QueryEngine(model, state.model, self._backend)
        return self._engine

    @property
    def _vector_field(self) -> str | None:
        """The key of documents that holds a vector; None if the model reads words alone."""
        return None if self._engine.model.vectors is None else VECTOR_FIELD

    def _engine_of(self, state: State) -> QueryEngine:
        """Return the engine with the model of a state, which is loaded if another one is."""
        return self._engine if state.model == self._engine.fingerprint else self._open(state)

    def _open_current(self) -> None:
        """Load the current model; retry if another process replaces it."""
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
        """Begin a read transaction with the model of its state loaded."""
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
        seq = self._backend.seqs_of([doc_id]).get(doc_id)
        if seq is None:
            suggestion = ""
            if len(doc_id) <= MAX_SUGGESTED_ID:
                suggestion = suggest(doc_id, self._backend.ids_near(doc_id, limit=SUGGESTION_POOL))
            raise UnknownDocumentError(f"{self.name} has no document {doc_id!r}{suggestion}")
        return seq
