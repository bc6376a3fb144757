"""What a writer does in its turn. A stop at any point leaves each document as it was or as it will be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from snuh.collection.backend import NewDocument, State, by_id
from snuh.collection.milvus.entities import Row, field_rows, key_of, piece_keys, rows_of
from snuh.collection.milvus.rows import IS_DOCUMENT, Rows
from snuh.collection.results import Added

BATCH_DOCUMENTS = 5_000


class MilvusWrite:
    """Writes documents; without transactions, what was written before a stop stays.

    Args:
        rows: of the documents in use.
        state: the collection before this write.
        number: of this write.
        set_aside: takes seqs for new documents and returns the first; an error where the turn was lost.
        known_fields: names that need not be remembered again.
    """

    def __init__(
        self,
        rows: Rows,
        state: State,
        *,
        number: int,
        set_aside: Callable[[int], int],
        known_fields: set[str],
    ) -> None:
        self._rows, self.state, self._number = rows, state, number
        self._set_aside, self._known_fields = set_aside, known_fields

    def put(self, new: Sequence[NewDocument]) -> Added:
        """Insert documents, or replace those with the same id; of several with one id the last counts."""
        documents = list(by_id(new, bits=self.state.bits).values())
        for one in documents:  # what cannot be stored is found out before anything is
            rows_of(one, seq=0, write=0)
        replaced = 0
        for start in range(0, len(documents), BATCH_DOCUMENTS):
            replaced += self._put(documents[start : start + BATCH_DOCUMENTS])
        without = sum(one.code is None for one in documents)
        return Added(len(documents) - replaced, replaced, without)

    def _put(self, documents: Sequence[NewDocument]) -> int:
        """Write some documents, and return how many of them were there."""
        keys = [key_of(one.document.id) for one in documents]
        self._rows.see_newest()  # an earlier part of this write, too
        there = self._rows.by_keys(keys, ["seq", "pieces"])
        seq = self._set_aside(len(keys) - len(there))
        rows: list[Row] = []
        for key, one in zip(keys, documents, strict=True):
            if key in there:
                rows += rows_of(one, seq=int(there[key]["seq"]), write=self._number)
            else:
                rows += rows_of(one, seq=seq, write=self._number)
                seq += 1
        self.remember_fields({name for one in documents for name in one.document.metadata})
        old = self._piece_keys([key for key, row in there.items() if row["pieces"]])
        self._rows.write(rows)
        self._rows.delete(sorted(old - {row.key for row in rows}))
        return len(there)

    def put_at(self, documents: Sequence[tuple[int, NewDocument]]) -> None:
        """Write documents with the seqs that they have."""
        self.remember_fields({name for _, one in documents for name in one.document.metadata})
        self._rows.write([row for seq, one in documents for row in rows_of(one, seq=seq, write=self._number)])

    def delete(self, seqs: Iterable[int]) -> None:
        """Delete documents by seq."""
        self._rows.see_newest()
        rows = self._rows.by_seqs(seqs, ["pieces"], condition=IS_DOCUMENT)
        if rows:
            self.delete_keys(
                [row["key"] for row in rows], large=[row["key"] for row in rows if row["pieces"]]
            )

    def delete_keys(self, keys: Sequence[str], *, large: Sequence[str]) -> None:
        """Delete documents by key, and the pieces of the large ones among them."""
        pieces = self._piece_keys(large)
        self._set_aside(0)
        self._rows.delete(keys)
        self._rows.delete(sorted(pieces))

    def _piece_keys(self, keys: Sequence[str]) -> set[str]:
        rows = self._rows.by_keys(keys, ["pieces", "about"]).values()
        return {key for row in rows for key in piece_keys(row)}

    def remember_fields(self, names: set[str]) -> None:
        """Remember names of metadata, before the documents that have them: a filter may ask for them."""
        new = names - self._known_fields
        self._rows.write(field_rows(sorted(new), write=self._number))
        self._known_fields |= new
