"""An open collection in Milvus: reads, writes, changes of the model, and searches of the codes."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
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
    recall_of,
    to_columns,
)
from snuh.collection.milvus import schema
from snuh.collection.milvus.connection import Connection, MilvusUrl
from snuh.collection.milvus.schema import (
    DOCUMENT,
    FACT,
    IS_DOCUMENT,
    IS_FIELD,
    IS_SEARCHABLE,
    NLIST,
    Row,
    filter_expression,
    filter_record,
)
from snuh.collection.milvus.table import MAX_ROWS, Table, create_table, drop_table, name_in_use, open_table
from snuh.collection.results import CodeRows, IndexInfo
from snuh.corpus import Document
from snuh.corpus.document import excerpt
from snuh.encoding import encode_documents
from snuh.errors import CollectionError, ModelError
from snuh.features.analyzer import Analyzer
from snuh.filters import Filter, matches
from snuh.model import Model

logger = logging.getLogger(__name__)

BATCH_DOCUMENTS = 5_000  # of a rehash
SAMPLE_ROWS = 20_000  # to choose a sample from, evenly
SAMPLE_QUERIES, SAMPLE_SIZES = 100, 1_000
SPARE_HITS, GROWTH = 64, 16
MAX_HITS_PER_REQUEST = 100_000  # of all queries together
ALL_LISTS = 65_536  # nprobe of an exact search: more lists than an index can have
INDEX_KEY = "index"
MIN_INDEXED = 1_024  # rows of a segment; Milvus does not index smaller ones
INDEXING_SECONDS, POLL_SECONDS = 3_600.0, 0.2
PLAIN_PREFIX = re.compile(r"[A-Za-z0-9 .:/_-]+")  # needs no escapes in a LIKE pattern


class MilvusBackend(WithoutWords):
    """An open collection; reads in a block use one Milvus collection, and no snapshot of it."""

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
        wanted = [int(seq) for seq in seqs]
        found = {row["seq"]: excerpt(document, characters) for row, document in self._table.documents(wanted)}
        if not found.keys() >= set(wanted):
            raise LostConnectionError(f"{self.name}: a document was deleted while it was read: try again")
        return found

    def documents(
        self, *, after: int = 0, before: int | None = None, limit: int, where: Filter | None = None
    ) -> list[tuple[int, Document]]:
        """Return up to `limit` documents with their seqs, in order, from between `after` and `before`."""
        size = min(4 * limit, MAX_ROWS)
        rows = self._table.scan_documents(where, after=after, before=before, size=size)
        return [(row["seq"], document) for row, document in islice(rows, limit)]

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
        """Search with the index of Milvus; an exact search reads all of its lists."""
        table = self._table
        index = read_index(table) if approximate else None
        if approximate and index is None:
            logger.warning('all codes are read, there is no index: make it with "snuh index"')
        nprobe = ALL_LISTS if index is None else index.settings["read"]
        return Search(table, k, radius, where, nprobe).nearest(queries)

    def codes_of(self, seqs: Sequence[int]) -> CodeRows:
        """Return the codes of these documents, ordered by seq."""
        rows = self._table.lookup("seq", map(int, seqs), ["kind", "code"]).values()
        return self._table.codes(row for row in rows if row["kind"] == DOCUMENT)

    def sample_codes(self, limit: int) -> CodeRows:
        """Return codes evenly from all over the collection; of a large one, from a random part."""
        return self._table.codes(_sample(self._table, IS_SEARCHABLE, ["code"], limit))

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
        """Return the bytes of the documents, estimated from a sample, and those of the codes."""
        table = self._table
        seqs = [row["seq"] for row in _sample(table, IS_DOCUMENT, [], SAMPLE_SIZES)]
        sizes = [len("".join(map(str, to_columns(one))).encode()) for _, one in table.documents(seqs)]
        documents, codes = table.count(IS_DOCUMENT), table.count(IS_SEARCHABLE)
        return round(np.mean(sizes or [0]) * documents), codes * table.bits // 8


def _sample(table: Table, expression: str, fields: Sequence[str], limit: int) -> list[Row]:
    """Return up to `limit` rows evenly from the order of insertion, of a large table from a random part."""
    fraction = SAMPLE_ROWS / max(1, table.count(expression))
    rows = sorted(table.query(schema.sampled(expression, fraction), ["seq", *fields]), key=itemgetter("seq"))
    return [rows[index] for index in evenly_spaced(len(rows), limit)]


# Searches and the index


@dataclass(frozen=True, slots=True)
class Search:
    """A search for the k nearest documents of a table, with ties in the order of insertion.

    Milvus returns the nearest rows with ties in any order, and at most 16,384 of them. So more are requested
    than are wanted, until the last distance is complete and its ties can be sorted. Where even the maximum
    does not suffice (many equal codes, or a filter that Milvus cannot evaluate), ranges of the order of
    insertion are searched one after the other.
    """

    table: Table
    k: int
    radius: int | None = None
    where: Filter | None = None
    nprobe: int = ALL_LISTS  # lists of the index to read

    def nearest(self, queries: NDArray[np.uint8]) -> list[list[Match]]:
        """Return the nearest documents of each query, ordered by (distance, seq)."""
        limit = min(self.k + SPARE_HITS, MAX_ROWS)
        size = max(1, MAX_HITS_PER_REQUEST // limit)
        results = []
        for start in range(0, len(queries), size):
            codes = [query.tobytes() for query in queries[start : start + size]]
            first = self._search(codes, self._expression, limit)
            results += [self._complete(code, hits, limit) for code, hits in zip(codes, first, strict=True)]
        return results

    def _complete(self, code: bytes, hits: list[Match], limit: int) -> list[Match]:
        """Return the nearest documents, given the first `limit` hits."""
        while True:
            is_all = len(hits) < limit
            last = hits[-1].distance if hits else 0
            found = self._allowed(hits if is_all else [hit for hit in hits if hit.distance < last])
            is_beyond = self.radius is not None and last > self.radius
            if is_all or is_beyond or len(found) >= self.k:
                return found[: self.k]
            if limit == MAX_ROWS:
                return self._by_ranges(code, found, last)
            limit = min(limit * GROWTH, MAX_ROWS)
            (hits,) = self._search([code], self._expression, limit)

    def _by_ranges(self, code: bytes, nearer: list[Match], last: int) -> list[Match]:
        """Search range by range, given all documents that are nearer than `last`."""
        found = set(nearer)
        for part in self.table.ranges(self._expression, size=MAX_ROWS):
            (hits,) = self._search([code], part, MAX_ROWS)
            found.update(self._allowed(hits))
            best = sorted(found)[: self.k]
            if len(best) == self.k and best[-1].distance <= last:  # no later document comes before these
                break
        return sorted(found)[: self.k]

    @property
    def _expression(self) -> str:
        return IS_SEARCHABLE + filter_expression(self.where)

    def _search(self, codes: Sequence[bytes], expression: str, limit: int) -> list[list[Match]]:
        results = self.table.connection.call(
            "search",
            self.table.name,
            data=list(codes),
            anns_field="code",
            filter=expression,
            output_fields=["seq"],
            limit=limit,
            search_params={"metric_type": "HAMMING", "params": {"nprobe": self.nprobe}},
            **self.table.consistency,
        )
        return [[Match(round(hit["distance"]), hit["entity"]["seq"]) for hit in hits] for hits in results]

    def _allowed(self, hits: Sequence[Match]) -> list[Match]:
        """Return the hits within the radius that the filter lets through, sorted."""
        hits = [hit for hit in hits if self.radius is None or hit.distance <= self.radius]
        if self.where is not None:
            read = self.table.documents(hit.seq for hit in hits)
            allowed = {row["seq"] for row, document in read if matches(self.where, filter_record(document))}
            hits = [hit for hit in hits if hit.seq in allowed]
        return sorted(hits)


def build_index(table: Table, queries: NDArray[np.uint8], *, k: int, recall: float) -> IndexInfo:
    """Wait for the index of Milvus, and store the smallest power of two of lists that reaches the recall."""
    documents, reached, nprobe = table.count(IS_SEARCHABLE), 1.0, NLIST
    words = f"all codes are read: Milvus indexes no fewer than {MIN_INDEXED:,} documents"
    if documents >= MIN_INDEXED:
        _wait_for_index(table)
        exact, nprobe = Search(table, k).nearest(queries), 1
        while (
            reached := recall_of(exact, Search(table, k, nprobe=nprobe).nearest(queries))
        ) < recall and nprobe < NLIST:
            nprobe *= 2
        words = f"{nprobe} of up to {NLIST:,} lists are read in each segment"
    facts = json.dumps([nprobe, words, k, reached, documents])
    table.upsert([{"key": INDEX_KEY, "kind": FACT, "text": facts}])
    return IndexInfo({"lists": NLIST, "read": nprobe}, words, k, reached, documents)


def read_index(table: Table) -> IndexInfo | None:
    """Return what `build_index` has stored; None where it was not called."""
    if not (texts := table.texts([INDEX_KEY])):
        return None
    nprobe, words, k, recall, documents = json.loads(texts[INDEX_KEY])
    return IndexInfo({"lists": NLIST, "read": nprobe}, words, k, recall, documents)


def _wait_for_index(table: Table) -> None:
    """Wait until all codes are indexed, and searches use the index."""
    table.connection.call("flush", table.name)
    deadline = time.monotonic() + INDEXING_SECONDS
    while time.monotonic() < deadline:
        index = table.connection.call("describe_index", table.name, "code")
        segments = table.connection.call("get_query_segment_info", table.name)
        loaded = sum(int(segment.num_rows) for segment in segments)
        if not index["pending_index_rows"] and loaded >= int(index["total_rows"]):
            return
        time.sleep(POLL_SECONDS)
    raise CollectionError(
        f"{table.connection.url.shown}: Milvus is still building its index: try again later"
    )
