"""A collection in Milvus: documents, codes and the model in one of its collections, which it searches."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import LostConnectionError, Match, State, evenly_spaced, is_storable
from snuh.collection.milvus.approximate import (
    MIN_INDEXED,
    QUERIES,
    measured,
    read_index_info,
    unmeasured,
    wait_for_index,
    write_fast,
)
from snuh.collection.milvus.connection import Connection
from snuh.collection.milvus.entities import DOCUMENT, field_key, key_of
from snuh.collection.milvus.expressions import condition_of
from snuh.collection.milvus.facts import Facts, read_facts
from snuh.collection.milvus.finding import ALL_LISTS, LISTED, Found, Seek, allowed
from snuh.collection.milvus.models import read_model
from snuh.collection.milvus.rehash import rehash
from snuh.collection.milvus.rows import HAS_CODE, IS_DOCUMENT, Rows, code_of
from snuh.collection.milvus.site import Site
from snuh.collection.milvus.turn import HeldTurn, read_turn, taking_turn
from snuh.collection.milvus.writing import MilvusWrite
from snuh.collection.results import CodeRows, IndexInfo
from snuh.corpus import Document
from snuh.errors import CollectionError, ModelError
from snuh.filters import Filter
from snuh.model import Model

logger = logging.getLogger(__name__)

MAX_REMEMBERED = 2_000  # documents that a search reads along with their places
MAX_ATTEMPTS = 5
PLAIN_START = re.compile(r"[A-Za-z0-9 .:/_-]+")  # needs no quoting
MAX_LISTED = 200_000  # seqs, of a sample that is exactly even
SIZE_SAMPLE = 1_000


@dataclass
class Reading:
    """What one block of reading sees: rows as of one time, and the documents that it has read."""

    rows: Rows
    state: State
    known: dict[int, tuple[dict[str, Any], Document]] = field(default_factory=dict)  # row and document by seq


class MilvusBackend:
    """An open collection."""

    folder: Path | None = None

    def __init__(self, site: Site, *, timeout: float) -> None:
        self.name = site.shown
        self._timeout = timeout
        self._connection = Connection(site)
        self._here = threading.local()
        self._lock = threading.Lock()  # of the threads of this process
        self._known_fields: set[str] = set()
        try:
            self._turn_alias = read_facts(self._connection).turn  # for as long as the collection lives
            self._read_state()
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    # Blocks

    @contextmanager
    def reading(self) -> Iterator[State]:
        """See one state until the block ends, as far as Milvus can: it keeps no old ones."""
        with self._reading() as here:
            yield here.state

    @contextmanager
    def _reading(self) -> Iterator[Reading]:
        if (here := getattr(self._here, "reading", None)) is not None:
            yield here
            return
        facts, state = self._read_state()
        self._here.reading = Reading(Rows(self._connection, facts), state)
        try:
            yield self._here.reading
        finally:
            self._here.reading = None

    def _read_state(self) -> tuple[Facts, State]:
        # A token that is older than the model is only news too early; a newer one would hide the news.
        turn = read_turn(self._connection, self._turn_alias)
        facts = read_facts(self._connection)
        return facts, State(facts.model, facts.bits, turn.name, turn.next_seq)

    @contextmanager
    def writing(self) -> Iterator[MilvusWrite]:
        """Write in turns; what a write that fails has written stays, and doing it again completes it."""
        with self._taking_turn() as held:
            facts = read_facts(self._connection)
            turn = held.turn
            yield MilvusWrite(
                Rows(self._connection, facts),
                State(facts.model, facts.bits, turn.name, turn.next_seq),
                number=turn.writes,
                set_aside=held.set_aside,
                known_fields=self._known_fields,
            )

    @contextmanager
    def _taking_turn(self) -> Iterator[HeldTurn]:
        if not self._lock.acquire(timeout=self._timeout):
            raise CollectionError(
                f"{self.name}: another thread is writing to it: try again when it has finished"
            )
        try:
            with taking_turn(self._connection, self._turn_alias, timeout=self._timeout) as held:
                yield held
        finally:
            self._lock.release()

    def warm_cache(self) -> None:
        """Milvus seals and indexes what has come on its own."""

    # The model

    def load_model(self, fingerprint: str) -> Model:
        """Return the model in use; ModelError where it is lost, or another is in use."""
        with self._reading() as here:
            if here.state.model != fingerprint:
                raise ModelError(f"{self.name} has changed its model meanwhile")
            return read_model(here.rows)

    def rehash(self, model: Model, *, progress: Callable[[float], None] | None) -> None:
        """Encode all documents with another model, beside the codes in use, and switch at once."""
        rehash(self._connection, self._taking_turn, model, progress=progress)
        self._known_fields.clear()

    # Documents

    def count(self) -> int:
        """Return the number of documents."""
        with self._reading() as here:
            return here.rows.count(IS_DOCUMENT)

    def seq_of(self, doc_id: str) -> int | None:
        """Return the seq of an id."""
        if not is_storable(doc_id):
            return None
        with self._reading() as here:
            for row, document in here.rows.documents([{"key": key_of(doc_id), "size": 0}]):
                seq = int(row["seq"])
                here.known[seq] = (row, document)
                return seq
        return None

    def documents_of(self, seqs: Iterable[int]) -> dict[int, Document]:
        """Return documents by their seq."""
        wanted = [int(seq) for seq in seqs]
        with self._reading() as here:
            missing = [seq for seq in wanted if seq not in here.known]
            self._remember(here, here.rows.by_seqs(missing, ["size"], condition=IS_DOCUMENT))
            try:
                return {seq: here.known[seq][1] for seq in wanted}
            except KeyError as error:
                raise self._deleted() from error

    def documents(
        self, *, after: int = 0, before: int | None = None, limit: int, where: Filter | None = None
    ) -> list[tuple[int, Document]]:
        """Return up to `most` documents with their seqs, in order, from between `after` and `before`.

        Within a block of reading their codes are remembered with them, to stay together.
        """
        found: list[tuple[int, Document]] = []
        with self._reading() as here:
            here.known.clear()
            end = here.state.next_seq if before is None else min(before, here.state.next_seq)
            for listed in self._listed(here, where, after=after, before=end, size=limit):
                wanted = listed[: limit - len(found)]
                for row, document in here.rows.documents(wanted):
                    seq = int(row["seq"])
                    found.append((seq, document))
                    if limit <= MAX_REMEMBERED:
                        here.known[seq] = (row, document)
                if len(found) >= limit:
                    break
        return found

    def seqs_where(self, where: Filter) -> NDArray[np.int64]:
        """Return the seqs of the documents that a filter lets through, ascending."""
        with self._reading() as here:
            windows = self._listed(here, where, after=0, before=here.state.next_seq)
            return np.array([row["seq"] for listed in windows for row in listed], dtype=np.int64)

    def _listed(
        self, here: Reading, where: Filter | None, *, after: int, before: int, size: int | None = None
    ) -> Iterator[list[dict[str, Any]]]:
        condition, fields = IS_DOCUMENT, ["size"]
        if where is not None:
            known = condition_of(where)
            condition, fields = condition if known is None else f"{condition} and {known}", list(LISTED)
        for listed in here.rows.windows(condition, fields, after=after, before=before, size=size):
            if where is None:
                yield listed
            else:
                lets = allowed(here.rows, where, listed)
                yield [row for row in listed if row["key"] in lets]

    def fields(self, *, limit: int) -> list[str]:
        """Return names that the documents' metadata have had, in order."""
        with self._reading() as here:
            return here.rows.field_names()[:limit]

    def has_field(self, name: str) -> bool:
        """Tell whether some document's metadata have had this name."""
        if name in self._known_fields or not is_storable(name):
            return name in self._known_fields
        with self._reading() as here:
            if not here.rows.by_keys([field_key(name)], []):
                return False
        self._known_fields.add(name)
        return True

    def ids_near(self, doc_id: str, *, limit: int) -> list[str]:
        """Return ids that begin as one does, for a suggestion."""
        with self._reading() as here:
            for length in (len(doc_id) - 1, len(doc_id) // 2, 1):
                start = doc_id[: max(1, length)]
                if not PLAIN_START.fullmatch(start):
                    return []
                rows = here.rows.query(
                    f'{IS_DOCUMENT} and about["id"] like "{start}%"', ["about"], limit=limit
                )
                if rows:
                    return [row["about"]["id"] for row in rows]
        return []

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
        """Return the nearest documents; within a block of reading they are read as well, to stay together."""
        with self._reading() as here:
            probes = self._probes(here) if approximate else ALL_LISTS
            for _ in range(MAX_ATTEMPTS):
                seek = Seek(here.rows, k, radius, where, probes, here.state.next_seq)
                found = seek.nearest(queries)
                if self._read_along(here, queries, found):
                    return [[Match(one.distance, one.seq) for one in some] for some in found]
                here.rows.see_newest()
        raise CollectionError(f"{self.name}: its documents change faster than they are read: try again")

    def _probes(self, here: Reading) -> int:
        if (approximate := read_index_info(here.rows)) is not None:
            return approximate.settings["read"]
        logger.warning('all codes are read, the index was not measured: do it with "snuh index"')
        return ALL_LISTS

    def _read_along(self, here: Reading, queries: NDArray[np.uint8], found: list[list[Found]]) -> bool:
        """Read the documents found, where they are few, and tell whether they still are as they were."""
        listed = {one.key: {"key": one.key, "size": one.size} for some in found for one in some}
        if len(listed) > MAX_REMEMBERED:
            return True
        here.known.clear()
        self._remember(here, list(listed.values()))
        for query, some in zip(queries, found, strict=True):
            for one in some:
                row, _ = here.known.get(one.seq, (None, None))
                if row is None or row["kind"] != DOCUMENT or _distance(query, row) != one.distance:
                    return False
        return True

    def _remember(self, here: Reading, listed: Sequence[dict[str, Any]]) -> None:
        here.known.update((int(row["seq"]), (row, document)) for row, document in here.rows.documents(listed))

    def codes_of(self, seqs: Sequence[int]) -> CodeRows:
        """Return the codes that these documents have, by seq."""
        with self._reading() as here:
            known = [here.known[seq][0] for seq in seqs if seq in here.known]
            missing = [seq for seq in seqs if seq not in here.known]
            rows = here.rows.by_seqs(missing, ["kind", "code"], condition=IS_DOCUMENT)
            if len(rows) < len(missing):
                raise self._deleted()
            return here.rows.code_rows(row for row in [*rows, *known] if row["kind"] == DOCUMENT)

    def _deleted(self) -> LostConnectionError:
        return LostConnectionError(f"{self.name}: a document was deleted while it was read: try again")

    def sample_codes(self, limit: int) -> CodeRows:
        """Return codes evenly from all over the collection; of a large one evenly by seq, gone or not."""
        with self._reading() as here:
            end = here.state.next_seq
            if end > MAX_LISTED:
                seqs = evenly_spaced(end - 1, limit) + 1
            else:
                windows = here.rows.windows(HAS_CODE, [], after=0, before=end)
                listed = np.array([row["seq"] for rows in windows for row in rows], dtype=np.int64)
                seqs = listed[evenly_spaced(len(listed), limit)]
            return here.rows.code_rows(here.rows.by_seqs(seqs.tolist(), ["code"], condition=HAS_CODE))

    def searchable(self) -> int:
        """Return the number of documents that have a code."""
        with self._reading() as here:
            return here.rows.count(HAS_CODE)

    def build_index(self, *, k: int, recall: float) -> IndexInfo:
        """Wait for the index of Milvus, and measure how many of its lists must be read."""
        with self._reading() as here:

            def find(queries: NDArray[np.uint8], probes: int) -> list[list[Found]]:
                return Seek(here.rows, k, None, None, probes, here.state.next_seq).nearest(queries)

            facts, documents = here.rows.facts, self.searchable()
            if documents < MIN_INDEXED:
                approximate = unmeasured(k=k, documents=documents)
            else:
                wait_for_index(here.rows)
                codes = self.sample_codes(QUERIES).codes
                approximate = measured(codes, find, k=k, recall=recall, documents=documents)
        with self._taking_turn() as held:
            if read_facts(self._connection) != facts:
                raise CollectionError(f"{self.name} has changed its model meanwhile: do it again")
            write_fast(Rows(self._connection, facts), approximate, write=held.turn.writes)
        return approximate

    def index_info(self) -> IndexInfo | None:
        """Tell what was measured of the index."""
        with self._reading() as here:
            return read_index_info(here.rows)

    def sizes(self) -> tuple[int, int]:
        """Return the bytes of the documents, taken from a sample, and those of the codes."""
        with self._reading() as here:
            seqs = evenly_spaced(max(0, here.state.next_seq - 1), SIZE_SAMPLE) + 1
            rows = here.rows.by_seqs(seqs.tolist(), ["size"], condition=IS_DOCUMENT)
            mean = sum(int(row["size"]) for row in rows) / max(1, len(rows))
            return round(mean * self.count()), self.searchable() * here.rows.facts.width


def _distance(query: NDArray[np.uint8], row: dict[str, Any]) -> int:
    return int(np.bitwise_count(query ^ np.frombuffer(code_of(row), dtype=np.uint8)).sum())
