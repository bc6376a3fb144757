"""The words of a collection in PostgreSQL: postings in blocks of 4,096 seqs, written with the documents.

| table | one row for | content |
|---|---|---|
| postings_N | a term, by its hash, and a block | which documents of the block have the term, and how often |
| rows_N | a block | the length and the code of each of its documents, and a version that changes with them |

A search reads the postings of its terms, and the blocks that have changed since it last did. Documents are
ranked as in a folder, by the same code, so they have the same scores. (A tsvector with a GIN index would
tell which documents have a term, but not how often each has it, and not how many there are.)
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.collection.postgres.connection import PgConnection
from snuh.collection.postgres.schema import postings_table, rows_table
from snuh.collection.ranking import (
    MAX_TELLING,
    IndexedRows,
    PostingRows,
    TermReader,
    WordPart,
    merge_rows,
)
from snuh.collection.results import CodeRows
from snuh.errors import CollectionError
from snuh.index.bm25 import Part, Postings, inverse_frequencies, most_telling
from snuh.index.fusion import BitCounts, CodedRows

BLOCK_BITS = 12
OFFSETS = (1 << BLOCK_BITS) - 1  # mask of a seq's position in its block
POSTING = np.dtype([("offset", "<u2"), ("count", "u1")])
DISAGREEMENT = 'the index of words disagrees with the documents: make it again with "snuh rehash"'
MAX_LOOKED_FOR = 8  # removed documents of a block; of more, PostgreSQL does not select the postings

Records: TypeAlias = NDArray[Any]  # structured
Texts: TypeAlias = Sequence[tuple[int, str, bytes | None]]  # seq, text and code


def row_type(bits: int) -> np.dtype[Any]:
    """Return the type of a document in `rows_N`."""
    return np.dtype([("offset", "<u2"), ("has_code", "?"), ("length", "<i4"), ("code", "u1", (bits // 8,))])


class WordWriter:
    """Changes the index of words, in the transaction that changes the documents.

    Args:
        connection: in a transaction that holds the write lock.
        codes: name of the code table that the index belongs to.
        bits: length of the codes.
        reader: of the model's analyzer.
    """

    def __init__(self, connection: PgConnection, codes: str, bits: int, reader: TermReader) -> None:
        self._connection, self._reader = connection, reader
        self._codes, self._bits, self._row_type = codes, bits, row_type(bits)
        self._postings, self._rows = postings_table(codes), rows_table(codes)

    def add(self, documents: Texts) -> None:
        """Add documents that are not in the index."""
        if not documents:
            return
        seqs, texts, codes = zip(*sorted(documents), strict=True)
        read = self._reader.read(seqs, texts)
        rows = np.zeros(len(seqs), dtype=self._row_type)
        rows["offset"], rows["length"] = read.seqs & OFFSETS, read.postings.lengths
        rows["has_code"] = [code is not None for code in codes]
        packed = b"".join(code for code in codes if code is not None)
        rows["code"][rows["has_code"]] = np.frombuffer(packed, dtype=np.uint8).reshape(
            -1, rows["code"].shape[1]
        )
        blocks = read.seqs >> BLOCK_BITS
        starts = _starts(blocks)
        self._append_rows(blocks[starts], [rows[start:end] for start, end in _spans(starts, len(rows))])
        postings = read.postings
        terms = np.repeat(postings.keys.view(np.int64), np.diff(postings.indptr))
        records = np.empty(len(terms), dtype=POSTING)
        records["offset"], records["count"] = rows["offset"][postings.rows], postings.counts
        blocks = blocks[postings.rows]
        starts = _starts(terms, blocks)
        parts = [records[start:end] for start, end in _spans(starts, len(records))]
        self._append_postings(terms[starts], blocks[starts], parts)

    def remove(self, seqs: Iterable[int]) -> None:
        """Remove documents; those that are not in the index are left out."""
        removed = np.unique(np.fromiter(seqs, dtype=np.int64))
        for block in np.unique(removed >> BLOCK_BITS).tolist():
            offsets = removed[removed >> BLOCK_BITS == block] & OFFSETS
            self._remove_rows(block, offsets)
            self._remove_postings(block, offsets)

    def deleted(self) -> list[int]:
        """Return the seqs in the index that no document has."""
        indexed = read_documents(self._connection, codes=self._codes, bits=self._bits, token="").seqs
        rows = self._connection.execute(
            "SELECT seq FROM unnest(%s::bigint[]) AS indexed (seq) "
            "WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.seq = indexed.seq)",
            (indexed.tolist(),),
        )
        return [seq for (seq,) in rows.fetchall()]

    def _append_rows(self, blocks: NDArray[np.int64], parts: Sequence[Records]) -> None:
        version = secrets.randbits(63)
        self._connection.execute(
            f"INSERT INTO {self._rows} AS r (block, version, data) "
            "SELECT block, %s, data FROM unnest(%s::integer[], %b::bytea[]) AS added (block, data) "
            "ON CONFLICT (block) DO UPDATE SET version = excluded.version, data = r.data || excluded.data",
            (version, blocks.tolist(), [part.tobytes() for part in parts]),
        )

    def _append_postings(
        self, terms: NDArray[np.int64], blocks: NDArray[np.int64], parts: Sequence[Records]
    ) -> None:
        self._connection.execute(
            f"INSERT INTO {self._postings} AS p (term, block, documents, data) "
            "SELECT * FROM unnest(%s::bigint[], %s::integer[], %s::integer[], %b::bytea[]) "
            "ON CONFLICT (term, block) DO UPDATE "
            "SET documents = p.documents + excluded.documents, data = p.data || excluded.data",
            (terms.tolist(), blocks.tolist(), [*map(len, parts)], [part.tobytes() for part in parts]),
        )

    def _remove_rows(self, block: int, offsets: NDArray[np.int64]) -> None:
        deleted = self._connection.execute(
            f"DELETE FROM {self._rows} WHERE block = %s RETURNING data", (block,)
        )
        for (data,) in deleted.fetchall():
            rows = np.frombuffer(data, dtype=self._row_type)
            left = rows[~np.isin(rows["offset"], offsets)]
            if len(left):
                self._append_rows(np.array([block]), [left])

    def _remove_postings(self, block: int, offsets: NDArray[np.int64]) -> None:
        # That the bytes of an offset occur somewhere selects a few terms more than those of the document.
        wanted = [int(offset).to_bytes(2, "little") for offset in offsets]
        listed = " OR ".join(["position(%b::bytea IN data) > 0"] * len(wanted))
        some = f"({listed})" if len(wanted) <= MAX_LOOKED_FOR else "true"
        with self._connection.cursor(binary=True) as cursor:
            found = cursor.execute(
                f"SELECT term, data FROM {self._postings} WHERE block = %s AND {some}",
                (block, *(wanted if len(wanted) <= MAX_LOOKED_FOR else ())),
            ).fetchall()
        if not found:
            return
        sizes = [len(data) // POSTING.itemsize for _, data in found]
        terms = np.repeat(np.array([term for term, _ in found], dtype=np.int64), sizes)
        records = np.frombuffer(b"".join(data for _, data in found), dtype=POSTING)
        gone = np.isin(records["offset"], offsets)
        changed = np.unique(terms[gone])
        self._connection.execute(
            f"DELETE FROM {self._postings} WHERE block = %s AND term = ANY(%s::bigint[])",
            (block, changed.tolist()),
        )
        is_left = np.isin(terms, changed) & ~gone
        terms, records = terms[is_left], records[is_left]
        if len(terms):
            starts = _starts(terms)
            parts = [records[start:end] for start, end in _spans(starts, len(records))]
            self._append_postings(terms[starts], np.full(len(starts), block), parts)


def _starts(*columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the runs of equal values in sorted columns begin."""
    is_new = np.zeros(len(columns[0]), dtype=bool)
    is_new[:1] = True
    for column in columns:
        is_new[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(is_new)


def _spans(starts: NDArray[np.int64], end: int) -> Iterable[tuple[int, int]]:
    return pairwise([*starts.tolist(), end])


# Reading


@dataclass(frozen=True, eq=False)
class IndexedDocuments:
    """All documents of the index at one state, and the blocks that they were read from."""

    codes_table: str
    token: str  # of the state
    blocks: dict[int, tuple[int, Records]]  # version and rows, by block
    seqs: NDArray[np.int64] = field(init=False)  # ascending
    lengths: NDArray[np.int32] = field(init=False)
    codes: CodedRows = field(init=False)
    numbers: NDArray[np.int32] = field(init=False)  # the row of each seq, -1 if there is none

    def __post_init__(self) -> None:
        empty = np.zeros(0, dtype=row_type(8))
        rows = [rows for _, (_, rows) in sorted(self.blocks.items())]
        offsets = np.concatenate([empty["offset"], *(part["offset"] for part in rows)])
        firsts = np.repeat(
            np.array(sorted(self.blocks), dtype=np.int64) << BLOCK_BITS, [len(part) for part in rows]
        )
        seqs = firsts + offsets
        order = np.argsort(seqs, kind="stable")  # replaced documents are at the end of their block
        has_code = np.concatenate([empty["has_code"], *(part["has_code"] for part in rows)])[order]
        packed = np.concatenate([part["code"] for part in rows])[order] if rows else empty["code"]
        lengths = np.concatenate([empty["length"], *(part["length"] for part in rows)])[order]
        object.__setattr__(self, "seqs", seqs[order])
        object.__setattr__(self, "lengths", lengths)
        numbers = np.full(int(seqs.max(initial=0)) + 1, -1, dtype=np.int32)
        numbers[seqs[order]] = np.arange(len(seqs), dtype=np.int32)
        object.__setattr__(self, "numbers", numbers)
        object.__setattr__(self, "codes", CodedRows(packed, None if has_code.all() else has_code))

    @cached_property
    def counts(self) -> BitCounts:
        """The counts of the bits of all codes."""
        return BitCounts.of(self.codes)


def read_documents(
    connection: PgConnection, *, codes: str, bits: int, token: str, before: IndexedDocuments | None = None
) -> IndexedDocuments:
    """Return the documents of the index, given those of another state, whose unchanged blocks are reused."""
    known = {} if before is None or before.codes_table != codes else before.blocks
    if known and before is not None and before.token == token:
        return before
    table = rows_table(codes)
    versions: dict[int, int] = dict(connection.execute(f"SELECT block, version FROM {table}").fetchall())
    blocks = {
        block: known[block]
        for block, version in versions.items()
        if block in known and known[block][0] == version
    }
    missing = [block for block in versions if block not in blocks]
    with connection.cursor(binary=True) as cursor:
        read = cursor.execute(
            f"SELECT block, version, data FROM {table} WHERE block = ANY(%s::integer[])", (missing,)
        )
        for block, version, data in read:
            blocks[block] = version, np.frombuffer(data, dtype=row_type(bits))
    return IndexedDocuments(codes, token, blocks)


@dataclass(frozen=True, eq=False, slots=True)
class WordReader:
    """The index of words at the state of a transaction."""

    connection: PgConnection
    documents: IndexedDocuments
    name: str  # of the collection, for messages

    @property
    def _table(self) -> str:
        return postings_table(self.documents.codes_table)

    def telling(self, weights: Mapping[int, float]) -> dict[int, float]:
        """Return the terms with the largest weight times idf, by their keys."""
        keys = np.array(sorted(weights), dtype=np.uint64)
        terms = keys.view(np.int64).tolist()
        query = f"SELECT term, sum(documents) FROM {self._table} WHERE term = ANY(%s::bigint[]) GROUP BY term"
        counted: dict[int, int] = dict(self.connection.execute(query, (terms,)).fetchall())
        frequencies = np.array([int(counted.get(term, 0)) for term in terms])
        idf = inverse_frequencies(frequencies, len(self.documents.seqs))
        listed = np.array([weights[key] for key in keys.tolist()], dtype=np.float64)
        return most_telling(keys, listed * idf, limit=MAX_TELLING)

    def read(self, keys: Collection[int]) -> IndexedRows:
        """Return all documents, with the postings of these terms."""
        terms = np.array(sorted(keys), dtype=np.uint64).view(np.int64).tolist()
        postings = self._postings("WHERE term = ANY(%s::bigint[])", (terms,))
        part = WordPart(self.documents.seqs, Part(postings))
        return IndexedRows([part], [self.documents.codes], lambda: self.documents.counts)

    def agrees_with(self, expected: PostingRows, codes: CodeRows) -> bool:
        """Tell whether the index has exactly these documents, words and codes."""
        packed, has_code = self.documents.codes.codes, self.documents.codes.has_code
        seqs = self.documents.seqs if has_code is None else self.documents.seqs[has_code]
        own = packed if has_code is None else packed[has_code]
        if not np.array_equal(seqs, codes.seqs) or not np.array_equal(own, codes.codes):
            return False
        try:
            stored = self._postings("", ())
        except CollectionError:
            return False
        rows = PostingRows(self.documents.seqs, stored)
        return merge_rows([rows]).equals(expected)  # which orders the rows of each term

    def _postings(self, condition: str, values: Sequence[Any]) -> Postings:
        """Return postings; those of documents that were replaced are put in order."""
        with self.connection.cursor(binary=True) as cursor:
            query = f"SELECT term, block, data FROM {self._table} {condition}"
            found = cursor.execute(query, values).fetchall()
        found.sort(key=lambda row: (row[0] % 2**64, row[1]))
        sizes = np.array([len(data) // POSTING.itemsize for _, _, data in found], dtype=np.int64)
        terms = np.array([term for term, _, _ in found], dtype=np.int64)
        blocks = np.array([block for _, block, _ in found], dtype=np.int64)
        records = np.frombuffer(b"".join(data for _, _, data in found), dtype=POSTING)
        seqs = np.repeat(blocks << BLOCK_BITS, sizes) + records["offset"]
        numbers = self.documents.numbers
        is_known = not len(seqs) or int(seqs.max()) < len(numbers)
        rows = numbers[seqs] if is_known else numbers[:0]
        if not is_known or (rows < 0).any():
            raise CollectionError(f"{self.name}: {DISAGREEMENT}")
        starts = _starts(terms)
        indptr = np.concatenate([[0], np.cumsum(sizes)])[np.append(starts, len(sizes))]
        counts = records["count"].copy()
        is_behind = np.diff(rows, prepend=-1) < 0
        is_behind[indptr[:-1]] = False
        if is_behind.any():
            order = np.lexsort((rows, np.repeat(np.arange(len(starts)), np.diff(indptr))))
            rows, counts = rows[order], counts[order]
        return Postings(terms[starts].view(np.uint64), indptr, rows, counts, self.documents.lengths)
