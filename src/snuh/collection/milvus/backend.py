"""An open collection in Milvus: reads, writes, and changes of the model."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import (
    LostConnectionError,
    Match,
    NewDocument,
    State,
    WithoutWords,
    evenly_spaced,
    is_storable,
    to_columns,
)
from snuh.collection.milvus import schema
from snuh.collection.milvus.connection import Connection, MilvusUrl
from snuh.collection.milvus.schema import DOCUMENT, IS_DOCUMENT, IS_FIELD, IS_SEARCHABLE, Row
from snuh.collection.milvus.search import ALL_LISTS, Search, build_index, read_index
from snuh.collection.milvus.table import MAX_ROWS, Table, create_table, drop_table, name_in_use, open_table
from snuh.collection.results import CodeRows, IndexInfo
from snuh.corpus import Document
from snuh.encoding import encode_documents
from snuh.errors import CollectionError, ModelError
from snuh.features.analyzer import Analyzer
from snuh.filters import Filter
from snuh.model import Model
from snuh.search import excerpt

logger = logging.getLogger(__name__)

BATCH_DOCUMENTS = 5_000  # of a rehash
SAMPLE_ROWS = 20_000  # to choose a sample from, evenly
SAMPLE_QUERIES, SAMPLE_SIZES = 100, 1_000
PLAIN_PREFIX = re.compile(r"[A-Za-z0-9 .:/_-]+")  # needs no escapes in a LIKE pattern


class MilvusBackend(WithoutWords):
    """An open collection; a document that was read in a block stays the same until the block ends."""

    folder: Path | None = None

    def __init__(self, url: MilvusUrl) -> None:
        self.name = url.shown
        self._connection = Connection(url)
        self._local = threading.local()
        try:
            open_table(self._connection)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def warm_cache(self, analyzer: Analyzer) -> None:
        """Do nothing: Milvus indexes new rows by itself."""

    @property
    def _table(self) -> Table:
        """The table of this thread's block of reads; outside of one, the table in use."""
        return getattr(self._local, "table", None) or open_table(self._connection)

    @contextmanager
    def reading(self) -> Iterator[State]:
        """See all that was written before the block; what is written meanwhile may be seen or not."""
        outer, table = getattr(self._local, "table", None), self._table
        self._local.table = table
        try:
            yield table.state
        finally:
            self._local.table = outer

    @contextmanager
    def writing(self) -> Iterator[Table]:
        """Write into the table in use; LostConnectionError, to try again, where a rehash has replaced it."""
        table = open_table(self._connection)
        yield table
        if name_in_use(self._connection) != table.name:
            raise LostConnectionError(f"{self.name} has changed its model meanwhile: try again")

    # The model

    def load_model(self, fingerprint: str) -> Model:
        """Return the model in use; ModelError where it is lost, or another one is in use."""
        table = self._table
        if table.model != fingerprint:
            raise ModelError(f"{self.name} has changed its model meanwhile")
        return table.read_model()

    def rehash(self, model: Model, *, progress: Callable[[float], None] | None) -> None:
        """Encode all documents into a new table, and let the alias point to it.

        CollectionError where others write meanwhile: the old codes stay in use.
        """
        connection, alias, old = self._connection, self._connection.url.name, open_table(self._connection)
        for name in connection.call("list_collections"):
            if name.startswith(f"{alias}__") and name != old.name:
                drop_table(connection, name)  # of a rehash that was killed
        new = create_table(connection, model)
        try:
            for fraction in self._encode(old, new, model):
                if progress is not None:
                    progress(fraction)
            self._ensure_unchanged(old)
            connection.call("alter_alias", new.name, alias)
        except BaseException:
            drop_table(connection, new.name)
            raise
        drop_table(connection, old.name)

    def _encode(self, old: Table, new: Table, model: Model) -> Iterator[float]:
        """Write all documents with their new codes into a new table, and yield the fraction done."""
        total, done = old.count(IS_DOCUMENT), 0
        new.upsert(old.query(IS_FIELD, ["key", "kind", "text"]))
        documents = old.scan_documents()
        while part := list(islice(documents, BATCH_DOCUMENTS)):
            self._ensure_unchanged(old)
            seqs = {row["key"]: row["seq"] for row, _ in part}
            for batch in encode_documents(model, (document for _, document in part)):
                rows = [*map(schema.document_rows, map(NewDocument, batch.documents, batch.packed()))]
                for *_, row in rows:
                    row["seq"] = seqs[row["key"]]
                new.upsert(chain.from_iterable(rows))
            done += len(part)
            yield done / total

    def _ensure_unchanged(self, table: Table) -> None:
        now = open_table(self._connection)
        if (now.name, now.state.token) != (table.name, table.state.token):
            raise CollectionError(
                f"{self.name}: the rehash stopped, others have written meanwhile: run it when nobody writes"
            )

    # Documents

    def count(self) -> int:
        """Return the number of documents."""
        return self._table.count(IS_DOCUMENT)

    def check(self) -> list[str]:
        """Return nothing: Milvus verifies its files itself."""
        return []

    def seqs_of(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the seqs of documents by id; ids that do not exist are left out."""
        keys = {schema.document_key(doc_id): doc_id for doc_id in ids if is_storable(doc_id)}
        return {keys[key]: row["seq"] for key, row in self._table.lookup("key", keys, ["seq"]).items()}

    def documents_of(self, seqs: Iterable[int], *, characters: int | None = None) -> dict[int, Document]:
        """Return documents by seq; longer texts are cut to this many characters."""
        read = self._read(self._table, seqs)
        return {seq: excerpt(document, characters) for seq, (_, document) in read.items()}

    def _read(self, table: Table, seqs: Iterable[int]) -> dict[int, tuple[Row, Document]]:
        """Return the rows and documents of seqs, read now or before in this block."""
        wanted = [int(seq) for seq in seqs]
        table.read(wanted)
        if not table.seen.keys() >= set(wanted):
            raise LostConnectionError(f"{self.name}: a document was deleted while it was read: try again")
        return {seq: table.seen[seq] for seq in wanted}

    def documents(
        self, *, after: int = 0, before: int | None = None, limit: int, where: Filter | None = None
    ) -> list[tuple[int, Document]]:
        """Return up to `limit` documents with their seqs, in order, from between `after` and `before`."""
        table = self._table
        rows = table.scan_documents(where, after=after, before=before, size=min(4 * limit, MAX_ROWS))
        table.seen = {row["seq"]: (row, document) for row, document in islice(rows, limit)}
        return [(seq, document) for seq, (_, document) in table.seen.items()]

    def seqs_where(self, where: Filter) -> NDArray[np.int64]:
        """Return the seqs of the documents that a filter lets through, ascending."""
        return np.array([row["seq"] for row, _ in self._table.scan_documents(where)], dtype=np.int64)

    def fields(self, *, limit: int) -> list[str]:
        """Return names that the documents' metadata have had, in order."""
        return sorted(row["text"] for row in self._table.query(IS_FIELD, ["text"]))[:limit]

    def has_field(self, name: str) -> bool:
        """Tell whether some document's metadata have had this name."""
        keys = [schema.field_row(name)["key"]] if is_storable(name) else []
        return bool(self._table.lookup("key", keys))

    def ids_near(self, doc_id: str, *, limit: int) -> list[str]:
        """Return ids that begin as one does, for a suggestion."""
        prefix = doc_id[: max(1, len(doc_id) // 2)]
        if not PLAIN_PREFIX.fullmatch(prefix):
            return []
        expression = f'{IS_DOCUMENT} and about["id"] like "{prefix}%"'
        return [row["about"]["id"] for row in self._table.query(expression, ["about"], limit=limit)]

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
        """Return the nearest documents; of equally near ones, Milvus may return any."""
        table = self._table
        index = read_index(table) if approximate else None
        if approximate and index is None:
            logger.warning('all codes are read, there is no index: make it with "snuh index"')
        nprobe = ALL_LISTS if index is None else index.settings["read"]
        return Search(table, k, radius, where, nprobe).nearest(queries)

    def codes_of(self, seqs: Sequence[int]) -> CodeRows:
        """Return the codes that these documents have, by seq."""
        table = self._table
        return table.codes(row for row, _ in self._read(table, seqs).values() if row["kind"] == DOCUMENT)

    def sample_codes(self, limit: int) -> CodeRows:
        """Return codes evenly from all over the collection; of a large one, from a random part."""
        table = self._table
        fraction = max(limit, SAMPLE_ROWS) / max(1, table.count(IS_SEARCHABLE))
        rows = [*chain.from_iterable(table.scan(schema.sampled(IS_SEARCHABLE, fraction), ["code"]))]
        return table.codes(rows[index] for index in evenly_spaced(len(rows), limit))

    def searchable(self) -> int:
        """Return the number of documents that have a code."""
        return self._table.count(IS_SEARCHABLE)

    def build_index(self, *, k: int, recall: float) -> IndexInfo:
        """Wait for the index of Milvus, and measure how many of its lists must be read."""
        return build_index(self._table, self.sample_codes(SAMPLE_QUERIES).codes, k=k, recall=recall)

    def index_info(self) -> IndexInfo | None:
        """Return what was measured of the index."""
        return read_index(self._table)

    def sizes(self) -> tuple[int, int]:
        """Return the bytes of the documents, estimated from the first ones, and those of the codes."""
        table = self._table
        some = self.documents(limit=SAMPLE_SIZES)
        sizes = [len("".join(map(str, to_columns(one))).encode()) for _, one in some]
        documents, codes = table.count(IS_DOCUMENT), table.count(IS_SEARCHABLE)
        return round(np.mean(sizes or [0]) * documents), codes * table.bits // 8
