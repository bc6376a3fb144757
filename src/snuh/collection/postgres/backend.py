"""The backend of collections in PostgreSQL: documents and codes in tables, searches by pgvector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import (
    Match,
    Ranking,
    WordQuery,
    evenly_spaced,
    from_columns,
    is_storable,
    refuse_words,
    retry_once,
)
from snuh.collection.model_files import model_of
from snuh.collection.postgres.connection import (
    STATE_QUERY,
    PgPool,
    PgUrl,
    ReadTransaction,
    connect,
    translate_errors,
)
from snuh.collection.postgres.schema import check_pgvector, check_tables, index_tables
from snuh.collection.postgres.search import HammingSearch, build_hnsw, read_index_info
from snuh.collection.postgres.sql import to_code_rows, to_condition
from snuh.collection.postgres.words import (
    DISAGREEMENT,
    IndexedDocuments,
    WordReader,
    WordWriter,
    read_documents,
)
from snuh.collection.postgres.write import PgState, PgWrite, check_codes_present, rehash, term_reader
from snuh.collection.ranking import IndexTerms, TermReader, empty_rows, merge_rows, rank, word_scores
from snuh.collection.results import CodeRows, IndexInfo
from snuh.corpus import Document
from snuh.errors import CollectionError
from snuh.features.analyzer import Analyzer
from snuh.filters import Filter
from snuh.model import Model
from snuh.search import excerpt

MAX_SEQ = 2**63 - 1
CHECK_DOCUMENTS = 5_000
DOCUMENTS_QUERY = "SELECT d.seq, d.id, d.split, d.labels::text, d.metadata, d.text FROM documents d"


class PgBackend:
    """An open collection in PostgreSQL."""

    folder: Path | None = None

    def __init__(self, url: PgUrl, *, timeout: float) -> None:
        self._url = url
        with connect(url) as connection, translate_errors(url.name):
            # One snapshot: a rehash that ends meanwhile creates one table and drops another.
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self.has_words = check_tables(connection, url)
            self._search = HammingSearch(*check_pgvector(connection, url))
        self._pool = PgPool(url, timeout=timeout)
        self._reader: tuple[str, TermReader] | None = None  # with the fingerprint of its model
        self._terms: tuple[Analyzer, IndexTerms] | None = None
        self._indexed: IndexedDocuments | None = None

    @property
    def name(self) -> str:
        """The URL without its password."""
        return self._url.name

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    # Transactions

    @contextmanager
    def reading(self) -> Iterator[PgState]:
        """Begin a read transaction; may be nested."""
        with self._pool.reading() as transaction:
            yield _state(transaction, self.name)

    @contextmanager
    def writing(self) -> Iterator[PgWrite]:
        """Begin a write transaction; other writers wait for the lock on the state row."""
        with self._pool.writing() as connection:
            row = connection.execute(f"{STATE_QUERY} FOR UPDATE").fetchone()
            state = _state(ReadTransaction(connection, row), self.name)
            words = None
            if self.has_words:
                words = WordWriter(connection, state.codes, state.bits, self._reader_of(state.model))
            write = PgWrite(connection, state, words)
            yield write
            write.finish()

    def _reader_of(self, fingerprint: str) -> TermReader:
        """Return what turns texts into the terms of a stored model."""
        if self._reader is None or self._reader[0] != fingerprint:
            self._reader = fingerprint, term_reader(self.load_model(fingerprint))
        return self._reader[1]

    def warm_cache(self, analyzer: Analyzer) -> None:
        """Do nothing: autovacuum keeps the planner's statistics up to date."""

    # The model

    @retry_once
    def load_model(self, fingerprint: str) -> Model:
        """Load a stored model; CollectionError if codes of it are missing."""
        with self._pool.reading() as transaction:
            rows = self._rows("SELECT name, content FROM models WHERE fingerprint = %s", (fingerprint,))
            model = model_of(dict(rows), where=self.name)
            state = _state(transaction, self.name)
            if state.model == fingerprint:
                check_codes_present(transaction.connection, state, model, name=self.name)
        if self._reader is None or self._reader[0] != fingerprint:
            self._reader = fingerprint, term_reader(model)
        return model

    def rehash(self, model: Model, *, progress: Callable[[float], None] | None) -> None:
        """Encode every document with another model into a new table, then switch to it."""
        rehash(self, self._pool, model, progress=progress)

    # Documents

    def count(self) -> int:
        """Return the number of documents."""
        return int(self._value("SELECT count(*) FROM documents"))

    def check(self) -> list[str]:
        """Return nothing: PostgreSQL verifies its pages itself, if its data checksums are on."""
        return []

    def seqs_of(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the seqs of documents by id; ids that do not exist are left out."""
        known = [doc_id for doc_id in ids if _is_text(doc_id)]
        return dict(self._rows("SELECT id, seq FROM documents WHERE id = ANY(%s::text[])", (known,)))

    def documents_of(self, seqs: Iterable[int], *, characters: int | None = None) -> dict[int, Document]:
        """Return documents by seq; longer texts are cut to this many characters."""
        rows = self._rows(f"{DOCUMENTS_QUERY} WHERE d.seq = ANY(%s::bigint[])", ([int(seq) for seq in seqs],))
        return {row[0]: excerpt(from_columns(*row[1:]), characters) for row in rows}

    def documents(
        self, *, after: int = 0, before: int | None = None, limit: int, where: Filter | None = None
    ) -> list[tuple[int, Document]]:
        """Return up to `limit` (seq, document) pairs with `after` < seq < `before`, ordered by seq."""
        condition, values = to_condition(where)
        query = f"{DOCUMENTS_QUERY} WHERE d.seq > %s AND d.seq < %s AND {condition} ORDER BY d.seq LIMIT %s"
        rows = self._rows(query, (after, MAX_SEQ if before is None else before, *values, limit))
        return [(row[0], from_columns(*row[1:])) for row in rows]

    def seqs_where(self, where: Filter) -> NDArray[np.int64]:
        """Return the seqs of the documents that match a filter, ascending."""
        condition, values = to_condition(where)
        return _integers(
            self._rows(f"SELECT d.seq FROM documents d WHERE {condition} ORDER BY d.seq", values)
        )

    def changed_since(self, write: int) -> NDArray[np.int64]:
        """Return the seqs of documents inserted or replaced after a write."""
        return _integers(self._rows("SELECT seq FROM documents WHERE write > %s ORDER BY seq", (write,)))

    def fields(self, *, limit: int) -> list[str]:
        """Return the metadata fields of all documents so far, sorted."""
        return [name for (name,) in self._rows("SELECT name FROM fields ORDER BY name LIMIT %s", (limit,))]

    def has_field(self, name: str) -> bool:
        """Tell whether any document so far has had this metadata field."""
        return bool(self._value("SELECT EXISTS (SELECT 1 FROM fields WHERE name = %s)", (name,)))

    def ids_near(self, doc_id: str, *, limit: int) -> list[str]:
        """Return up to `limit` ids on each side of `doc_id` in sorted order, for suggestions."""
        if not _is_text(doc_id):
            return []
        queries = (
            "SELECT id FROM documents WHERE id >= %s ORDER BY id LIMIT %s",
            "SELECT id FROM documents WHERE id < %s ORDER BY id DESC LIMIT %s",
        )
        return [neighbour for query in queries for (neighbour,) in self._rows(query, (doc_id, limit))]

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
        """Search with pgvector."""
        with self._pool.reading() as transaction:
            state = _state(transaction, self.name)
            return self._search.find(
                transaction.connection,
                state,
                queries,
                k=k,
                radius=radius,
                where=where,
                approximate=approximate,
            )

    # Words

    def rank(self, query: WordQuery, *, analyzer: Analyzer, k: int, where: Filter | None) -> Ranking:
        """Score every document by its words, and by its code if the query has margins."""
        with self._words() as words, self.reading() as state:
            among = None if where is None else self.seqs_where(where)
            terms = self._terms_of(analyzer)
            return rank(
                query, terms, telling=words.telling, read=words.read, k=k, among=among, bits=state.bits
            )

    def word_scores(self, text: str, seqs: Sequence[int], *, analyzer: Analyzer) -> NDArray[np.float32]:
        """Return the BM25 scores of documents for the most telling words of a text."""
        with self._words() as words:
            terms = self._terms_of(analyzer)
            return word_scores(text, seqs, terms, telling=words.telling, read=words.read)

    def check_words(self, analyzer: Analyzer) -> list[str]:
        """Compare the index of words with the documents and their codes."""
        if not self.has_words:
            return []
        reader, parts, last = TermReader(analyzer), [empty_rows()], 0
        with self._words() as words:
            while batch := self.documents(after=last, limit=CHECK_DOCUMENTS):
                parts.append(reader.read([seq for seq, _ in batch], [document.text for _, document in batch]))
                last = batch[-1][0]
            codes = self._code_rows("SELECT seq, code::text FROM {} ORDER BY seq", ())
            if words.agrees_with(merge_rows(parts), codes):
                return []
        return [DISAGREEMENT]

    @contextmanager
    def _words(self) -> Iterator[WordReader]:
        if not self.has_words:
            raise refuse_words()
        with self._pool.reading() as transaction:
            connection, state = transaction.connection, _state(transaction, self.name)
            self._indexed = read_documents(
                connection, codes=state.codes, bits=state.bits, token=state.token, before=self._indexed
            )
            yield WordReader(connection, self._indexed, self.name)

    def _terms_of(self, analyzer: Analyzer) -> IndexTerms:
        if self._terms is None or self._terms[0] is not analyzer:
            self._terms = analyzer, IndexTerms(analyzer)
        return self._terms[1]

    # Codes

    def codes_of(self, seqs: Sequence[int]) -> CodeRows:
        """Return the codes of these documents, ordered by seq."""
        return self._code_rows(
            "SELECT seq, code::text FROM {} WHERE seq = ANY(%s::bigint[]) ORDER BY seq", (list(seqs),)
        )

    def sample_codes(self, limit: int) -> CodeRows:
        """Return up to `limit` evenly spaced codes, ordered by seq."""
        with self._pool.reading():
            indices = evenly_spaced(self.searchable(), limit)
            query = (
                "SELECT seq, code::text FROM "
                "(SELECT seq, code, row_number() OVER (ORDER BY seq) - 1 AS row_index FROM {}) numbered "
                "JOIN unnest(%s::bigint[]) AS sampled (row_index) USING (row_index) ORDER BY seq"
            )
            return self._code_rows(query, (indices.tolist(),))

    def searchable(self) -> int:
        """Return the number of documents that have a code."""
        with self.reading() as state:
            return int(self._value(f"SELECT count(*) FROM {state.codes}"))

    def build_index(self, *, k: int, recall: float) -> IndexInfo:
        """Build an HNSW index, and choose the `ef_search` that reaches the recall at k."""
        return build_hnsw(self, self._pool, self._search, k=k, recall=recall)

    def index_info(self) -> IndexInfo | None:
        """Describe the HNSW index; None if there is none."""
        with self._pool.reading() as transaction:
            return read_index_info(transaction.connection, _state(transaction, self.name))

    def sizes(self) -> tuple[int, int]:
        """Return the size in bytes of the documents, and of codes and words, including their indexes."""
        with self.reading() as state:
            tables = index_tables(state.codes) if self.has_words else (state.codes,)
            query = (
                "SELECT pg_total_relation_size('documents'), "
                "(SELECT sum(pg_total_relation_size(name))::bigint FROM unnest(%s::text[]) AS tables (name))"
            )
            ((documents, codes),) = self._rows(query, (list(tables),))
        return documents, codes

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._pool.reading() as transaction:
            return transaction.connection.execute(query, values).fetchall()

    def _value(self, query: str, values: Sequence[Any] = ()) -> Any:
        ((value,),) = self._rows(query, values)
        return value

    def _code_rows(self, query: str, values: Sequence[Any]) -> CodeRows:
        with self.reading() as state:
            return to_code_rows(self._rows(query.format(state.codes), values), bits=state.bits)


def _state(transaction: ReadTransaction, name: str) -> PgState:
    row = transaction.state or transaction.connection.execute(STATE_QUERY).fetchone()
    if row is None:
        raise CollectionError(f"{name} has lost its state: restore the tables from a copy")
    return PgState(*row)


def _is_text(text: str) -> bool:
    """Tell whether PostgreSQL can store a text."""
    return is_storable(text) and "\0" not in text


def _integers(rows: list[tuple[Any, ...]]) -> NDArray[np.int64]:
    return np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
