"""A collection in PostgreSQL: documents and codes in tables, searches by pgvector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import Match, evenly_spaced, from_columns, is_storable, retry_once
from snuh.collection.model_files import model_of
from snuh.collection.postgres.connection import STATE, Connections, PgUrl, Reading, connect, reported
from snuh.collection.postgres.schema import check_tables, pgvector
from snuh.collection.postgres.search import Finder, index_info_of, make_hnsw
from snuh.collection.postgres.sql import to_condition, to_rows
from snuh.collection.postgres.write import PgWrite, State, check_has_codes, rehash
from snuh.collection.results import CodeRows, IndexInfo
from snuh.corpus import Document
from snuh.errors import CollectionError
from snuh.filters import Filter
from snuh.model import Model

MAX_SEQ = 2**63 - 1
DOCUMENTS = "SELECT d.seq, d.id, d.split, d.labels::text, d.metadata, d.text FROM documents d"


class PgBackend:
    """Reads and writes the tables of one collection."""

    folder: Path | None = None

    def __init__(self, place: PgUrl, *, timeout: float) -> None:
        self._place = place
        with connect(place) as connection, reported(place.name):
            # One state: a rehash that ends meanwhile makes one table and drops another.
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            check_tables(connection, place)
            self._finder = Finder(*pgvector(connection, place))
        self._connections = Connections(place, timeout=timeout)

    @property
    def name(self) -> str:
        """The address without its password."""
        return self._place.name

    def close(self) -> None:
        """End all connections."""
        self._connections.close()

    # Transactions

    @contextmanager
    def reading(self) -> Iterator[State]:
        """See one state of the collection until the block ends; may be nested."""
        with self._connections.reading() as found:
            yield _state(found, self.name)

    @contextmanager
    def writing(self) -> Iterator[PgWrite]:
        """Write all that the block writes, or nothing; another writer waits for the row of the state."""
        with self._connections.writing() as connection:
            row = connection.execute(f"{STATE} FOR UPDATE").fetchone()
            write = PgWrite(connection, _state(Reading(connection, row), self.name))
            yield write
            write.finish()

    def warm_cache(self) -> None:
        """Do nothing: the server's own housekeeping keeps its statistics up to date."""

    # The model

    @retry_once
    def load_model(self, fingerprint: str) -> Model:
        """Return a model that the tables keep; CollectionError where the codes that it made are lost."""
        with self._connections.reading() as found:
            rows = self._rows("SELECT name, content FROM models WHERE fingerprint = %s", (fingerprint,))
            model = model_of(dict(rows), where=self.name)
            state = _state(found, self.name)
            if state.model == fingerprint:
                check_has_codes(found.connection, state, model, name=self.name)
        return model

    def rehash(self, model: Model, *, progress: Callable[[float], None] | None) -> None:
        """Encode all documents with another model, into a table beside the one in use, and switch at once."""
        rehash(self, self._connections, model, progress=progress)

    # Documents

    def count(self) -> int:
        """Return the number of documents."""
        return int(self._value("SELECT count(*) FROM documents"))

    def seq_of(self, doc_id: str) -> int | None:
        """Return the seq of an id."""
        if not _is_text(doc_id):
            return None
        rows = self._rows("SELECT seq FROM documents WHERE id = %s", (doc_id,))
        return int(rows[0][0]) if rows else None

    def documents_of(self, seqs: Iterable[int]) -> dict[int, Document]:
        """Return documents by their seq."""
        rows = self._rows(f"{DOCUMENTS} WHERE d.seq = ANY(%s::bigint[])", ([int(seq) for seq in seqs],))
        return {row[0]: from_columns(*row[1:]) for row in rows}

    def documents(
        self, *, after: int = 0, before: int | None = None, limit: int, where: Filter | None = None
    ) -> list[tuple[int, Document]]:
        """Return up to `most` documents with their seqs, in order, from between `after` and `before`."""
        condition, values = to_condition(where)
        query = f"{DOCUMENTS} WHERE d.seq > %s AND d.seq < %s AND {condition} ORDER BY d.seq LIMIT %s"
        rows = self._rows(query, (after, MAX_SEQ if before is None else before, *values, limit))
        return [(row[0], from_columns(*row[1:])) for row in rows]

    def seqs_where(self, where: Filter) -> NDArray[np.int64]:
        """Return the seqs of the documents that a filter lets through, ascending."""
        condition, values = to_condition(where)
        return _integers(
            self._rows(f"SELECT d.seq FROM documents d WHERE {condition} ORDER BY d.seq", values)
        )

    def changed_since(self, write: int) -> NDArray[np.int64]:
        """Return the seqs of documents that were put after a write."""
        return _integers(self._rows("SELECT seq FROM documents WHERE write > %s ORDER BY seq", (write,)))

    def fields(self, *, limit: int) -> list[str]:
        """Return names that the documents' metadata have had."""
        return [name for (name,) in self._rows("SELECT name FROM fields ORDER BY name LIMIT %s", (limit,))]

    def has_field(self, name: str) -> bool:
        """Tell whether some document's metadata have had this name."""
        return bool(self._value("SELECT EXISTS (SELECT 1 FROM fields WHERE name = %s)", (name,)))

    def ids_near(self, doc_id: str, *, limit: int) -> list[str]:
        """Return the ids that come before and after one in the order of ids, for a suggestion."""
        if not _is_text(doc_id):
            return []
        queries = (
            "SELECT id FROM documents WHERE id >= %s ORDER BY id LIMIT %s",
            "SELECT id FROM documents WHERE id < %s ORDER BY id DESC LIMIT %s",
        )
        return [name for query in queries for (name,) in self._rows(query, (doc_id, limit))]

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
        """Let pgvector find the nearest documents."""
        with self._connections.reading() as found:
            state = _state(found, self.name)
            return self._finder.find(
                found.connection, state, queries, k=k, radius=radius, where=where, approximate=approximate
            )

    def codes_of(self, seqs: Sequence[int]) -> CodeRows:
        """Return the codes that these documents have, by seq."""
        return self._code_rows(
            "SELECT seq, code::text FROM {} WHERE seq = ANY(%s::bigint[]) ORDER BY seq", (list(seqs),)
        )

    def sample_codes(self, limit: int) -> CodeRows:
        """Return codes evenly from all over the collection."""
        with self._connections.reading():
            places = evenly_spaced(self.searchable(), limit)
            query = (
                "SELECT seq, code::text FROM "
                "(SELECT seq, code, row_number() OVER (ORDER BY seq) - 1 AS place FROM {}) every "
                "JOIN unnest(%s::bigint[]) AS wanted (place) USING (place) ORDER BY seq"
            )
            return self._code_rows(query, (places.tolist(),))

    def searchable(self) -> int:
        """Return the number of documents that have a code."""
        with self.reading() as state:
            return int(self._value(f"SELECT count(*) FROM {state.codes}"))

    def build_index(self, *, k: int, recall: float) -> IndexInfo:
        """Build an HNSW index, and choose how far searches look into it."""
        return make_hnsw(self, self._connections, self._finder, k=k, recall=recall)

    def index_info(self) -> IndexInfo | None:
        """Tell of the HNSW index."""
        with self._connections.reading() as found:
            return index_info_of(found.connection, _state(found, self.name))

    def sizes(self) -> tuple[int, int]:
        """Return the bytes of the documents' table and of the codes' with their indexes."""
        with self.reading() as state:
            query = "SELECT pg_total_relation_size('documents'), pg_total_relation_size(%s)"
            ((documents, codes),) = self._rows(query, (state.codes,))
        return documents, codes

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._connections.reading() as found:
            return found.connection.execute(query, values).fetchall()

    def _value(self, query: str, values: Sequence[Any] = ()) -> Any:
        ((value,),) = self._rows(query, values)
        return value

    def _code_rows(self, query: str, values: Sequence[Any]) -> CodeRows:
        with self.reading() as state:
            return to_rows(self._rows(query.format(state.codes), values), bits=state.bits)


def _state(found: Reading, name: str) -> State:
    row = found.state or found.connection.execute(STATE).fetchone()
    if row is None:
        raise CollectionError(f"{name} has lost its state: restore the tables from a copy")
    return State(*row)


def _is_text(text: str) -> bool:
    """Tell whether PostgreSQL can hold a text."""
    return is_storable(text) and "\0" not in text


def _integers(rows: list[tuple[Any, ...]]) -> NDArray[np.int64]:
    return np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
