"""The Milvus collection that holds the rows of a collection, in requests of a bounded size."""

from __future__ import annotations

import base64
import json
import logging
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from snuh.collection.backend import LostConnectionError, NewDocument, State, by_id
from snuh.collection.milvus import schema
from snuh.collection.milvus.connection import Connection, NotFoundError
from snuh.collection.milvus.schema import DEFAULTS, FACT, Row
from snuh.collection.model_files import files_of, model_of
from snuh.collection.results import Added, CodeRows
from snuh.corpus import Document
from snuh.errors import CollectionError, InputError, ModelError, SnuhError
from snuh.filters import Filter, matches
from snuh.model import Model

logger = logging.getLogger(__name__)

FORMAT, VERSION = "snuh-collection", 2
MODEL_KEY, VERSION_KEY = "model", "version"

MAX_ROWS = 16_384  # that a search of Milvus returns
READ_DOCUMENTS, READ_PIECES = 500, 128  # at most 63 MB and 8 MB
WRITE_ROWS, WRITE_CHARACTERS = 5_000, 4_000_000  # at most 16 MB; the server takes 64 MB
REQUEST_KEYS = 4_096
SAMPLE_ROWS, MAX_SPLITS = 1_000, 16
RECOVERY_SECONDS, PAUSE_SECONDS = 10.0, 0.2

Item = TypeVar("Item")


class Table:
    """The rows of a collection; reads see all that was written before `refresh`, and perhaps more."""

    state: State

    def __init__(self, connection: Connection, name: str, *, model: str, bits: int) -> None:
        self.connection, self.name, self.model, self.bits = connection, name, model, bits
        self.consistency: dict[str, Any] = {"consistency_level": "Strong"}  # of reads
        self.seen: dict[int, tuple[Row, Document]] = {}  # documents that were read, by seq

    def refresh(self) -> Table:
        """Let the next reads see all that was written until now.

        The version is always there: where it is not, a restarted server has not found its rows yet.
        """
        timestamp = self.connection.timestamp()
        # As consistent as "Strong", which would let each of many reads wait for its own timestamp.
        self.consistency = {"consistency_level": "Customized", "guarantee_timestamp": timestamp}
        deadline = time.monotonic() + RECOVERY_SECONDS
        while not (texts := self.texts([VERSION_KEY])):
            if time.monotonic() > deadline:
                raise CollectionError(f"{self.connection.url.shown} has lost rows: restore it from a copy")
            time.sleep(PAUSE_SECONDS)
        self.state = State(self.model, self.bits, texts[VERSION_KEY], schema.first_seq(timestamp))
        return self

    # Reading

    def query(self, expression: str, fields: Sequence[str], **options: Any) -> list[Row]:
        """Return matching rows in any order."""
        options |= {"filter": expression, "output_fields": list(fields)}
        return list(self.connection.call("query", self.name, **options, **self.consistency))

    def count(self, expression: str) -> int:
        """Return the number of matching rows."""
        return int(self.query(expression, ["count(*)"])[0]["count(*)"])

    def lookup(
        self, field: str, values: Iterable[Any], fields: Sequence[str] = (), *, size: int = REQUEST_KEYS
    ) -> dict[Any, Row]:
        """Return rows by the value of a field, requested `size` at a time; unknown values are left out."""
        parts = (f"{field} in {json.dumps(part)}" for part in _chunks(list(values), size))
        return {row[field]: row for part in parts for row in self.query(part, [field, *fields])}

    def texts(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the texts of rows by key."""
        return {key: row["text"] for key, row in self.lookup("key", keys, ["text"], size=READ_PIECES).items()}

    def ranges(
        self, expression: str, *, after: int = 0, before: int | None = None, size: int = MAX_ROWS
    ) -> Iterator[str]:
        """Yield expressions for consecutive ranges of seqs, each with at most `size` matching rows.

        Milvus does not sort: documents in the order of insertion are read range by range. Seqs are times,
        with bursts and gaps, so a range with too many rows is split at quantiles of a sample of it.
        """
        last = min(before or self.state.next_seq, self.state.next_seq) - 1
        part = f"{expression} and seq > {after} and seq <= {last}"
        rows = self.count(part)
        if rows > size:
            sample = self.query(schema.sampled(part, SAMPLE_ROWS / rows), ["seq"])
            seqs = sorted(row["seq"] for row in sample)
            step = max(1, len(seqs) // min(MAX_SPLITS, 2 * rows // size + 1))
            for start, end in pairwise([after, *seqs[step - 1 : -1 : step], last]):
                yield from self.ranges(expression, after=start, before=end + 1, size=size)
        elif rows:
            yield part

    def scan(self, expression: str, fields: Sequence[str] = (), **bounds: Any) -> Iterator[list[Row]]:
        """Yield matching rows in the order of insertion, a range at a time; bounds as for `ranges`."""
        for part in self.ranges(expression, **bounds):
            yield sorted(self.query(part, ["seq", *fields]), key=itemgetter("seq"))

    def scan_documents(self, where: Filter | None = None, **bounds: Any) -> Iterator[tuple[Row, Document]]:
        """Yield the documents that a filter lets through, and their rows, in the order of insertion."""
        for rows in self.scan(schema.IS_DOCUMENT + schema.filter_expression(where), **bounds):
            for row, document in self.documents(row["seq"] for row in rows):
                if where is None or matches(where, schema.filter_record(document)):
                    yield row, document

    def documents(self, seqs: Iterable[int]) -> Iterator[tuple[Row, Document]]:
        """Yield documents and their rows in the order of the seqs; deleted ones are left out."""
        fields = ["key", "kind", "pieces", "about", "text", "code"]
        for part in _chunks(list(seqs), READ_DOCUMENTS):
            rows = self.lookup("seq", part, fields)
            pieces = self.texts(key for row in rows.values() for key in schema.piece_keys(row))
            try:
                yield from [(rows[seq], schema.to_document(rows[seq], pieces)) for seq in part if seq in rows]
            except KeyError as error:
                raise LostConnectionError(
                    f"{self.connection.url.shown}: a document was replaced while it was read: try again"
                ) from error

    def read(self, seqs: Iterable[int]) -> None:
        """Read documents into `seen`, those that are not there yet."""
        missing = {int(seq) for seq in seqs} - self.seen.keys()
        self.seen.update((row["seq"], (row, document)) for row, document in self.documents(missing))

    def codes(self, rows: Iterable[Row]) -> CodeRows:
        """Return the codes of rows, ordered by seq."""
        ordered = sorted(rows, key=itemgetter("seq"))
        seqs = np.array([row["seq"] for row in ordered], dtype=np.int64)
        codes = np.frombuffer(b"".join(row["code"][0] for row in ordered), dtype=np.uint8)
        return CodeRows(seqs, codes.reshape(-1, self.bits // 8))

    def read_model(self) -> Model:
        """Return the model; ModelError where it is lost or damaged."""
        shown = self.connection.url.shown
        try:
            keys = schema.piece_keys(self.lookup("key", [MODEL_KEY], ["pieces"])[MODEL_KEY])
            texts = self.texts(keys)
            content = json.loads("".join(texts[key] for key in keys))
        except (KeyError, ValueError) as error:
            raise ModelError(f"{shown} has lost its model: restore it from a copy ({error})") from error
        return model_of({name: base64.b64decode(data) for name, data in content.items()}, where=shown)

    # Writing

    def put(self, new: Sequence[NewDocument]) -> Added:
        """Insert documents, or replace those with the same id; of several with one id the last counts."""
        documents = list(by_id(new, bits=self.bits).values())
        rows = [schema.document_rows(one) for one in documents]  # InputError before anything is written
        fields = sorted({name for one in documents for name in one.document.metadata})
        keys = (one[-1]["key"] for one in rows)
        old = self.lookup("key", keys, ["seq", "pieces"])
        seqs = self._new_seqs()
        for *_, row in rows:
            row["seq"] = old[row["key"]]["seq"] if row["key"] in old else next(seqs)
        written = [*map(schema.field_row, fields), *chain.from_iterable(rows)]
        self.upsert(written)
        pieces = {key for row in old.values() for key in schema.piece_keys(row)}
        self._delete(pieces - {row["key"] for row in written})
        return Added(len(rows) - len(old), len(old), sum(one.code is None for one in documents))

    def delete(self, seqs: Iterable[int]) -> None:
        """Delete documents by seq."""
        rows = self.lookup("seq", map(int, seqs), ["key", "pieces"]).values()
        self._delete(row["key"] for row in rows)
        self._delete(key for row in rows for key in schema.piece_keys(row))
        self.upsert([])  # changes the version

    def _new_seqs(self) -> Iterator[int]:
        """Yield seqs that are given only once, each above all that were given before."""
        while True:
            first = schema.first_seq(self.connection.timestamp())
            yield from range(first, first + schema.SEQS_PER_TIMESTAMP)

    def upsert(self, rows: Iterable[Row]) -> None:
        """Write rows in order, each replacing the row of its key; every request changes the version."""
        part: list[Row] = []
        characters = 0
        for row in rows:
            part.append(row)
            characters += len(row.get("text", "")) + len(row.get("about", ""))
            if characters > WRITE_CHARACTERS or len(part) >= WRITE_ROWS:
                self._upsert(part)
                part, characters = [], 0
        self._upsert(part)

    def _upsert(self, rows: list[Row]) -> None:
        version = {"key": VERSION_KEY, "kind": FACT, "text": secrets.token_hex(8)}
        defaults = {**DEFAULTS, "code": bytes(self.bits // 8)}
        self.connection.call("upsert", self.name, [{**defaults, **row} for row in [*rows, version]])
        self.consistency = {"consistency_level": "Strong"}

    def _delete(self, keys: Iterable[str]) -> None:
        for part in _chunks(list(keys), REQUEST_KEYS):
            self.connection.call("delete", self.name, ids=part)


def create_table(connection: Connection, model: Model) -> Table:
    """Create a Milvus collection with the model and without documents; the alias does not point to it yet."""
    files, name = files_of(model), f"{connection.url.name}__{secrets.token_hex(4)}"
    facts = {"format": FORMAT, "format_version": VERSION, "model": files.fingerprint, "bits": model.bits}
    fields = schema.collection_schema(model.bits, description=json.dumps(facts))
    content = {file: base64.b64encode(data).decode() for file, data in files.content.items()}
    table = Table(connection, name, model=files.fingerprint, bits=model.bits)
    try:
        connection.call("create_collection", name, schema=fields, num_shards=1)
        connection.call("create_index", name, schema.index_params(), sync=False)
        connection.call("load_collection", name, _async=True)
        table.upsert(schema.split_row({"key": MODEL_KEY, "kind": FACT}, json.dumps(content)))
        return table.refresh()
    except BaseException:
        drop_table(connection, name)
        raise


def open_table(connection: Connection) -> Table:
    """Return the table that the alias points to; InputError where there is none, or it is not ours."""
    shown = connection.url.shown
    facts = read_facts(connection)
    if facts is None:
        raise InputError(f'there is no collection {shown}: make one with "snuh create {shown} --from SOURCE"')
    if facts.get("format") != FORMAT:
        raise InputError(f'{shown} is not a collection of snuh: expected one made by "snuh create"')
    if facts.get("format_version") != VERSION:
        raise CollectionError(
            f"{shown} has format {facts.get('format_version')}, this snuh reads {VERSION}: "
            "use the snuh that made it"
        )
    if not facts.keys() >= {"model", "bits"}:
        raise CollectionError(f"{shown} is damaged: its description in Milvus was changed")
    return Table(connection, facts["collection_name"], model=facts["model"], bits=facts["bits"]).refresh()


def read_facts(connection: Connection) -> dict[str, Any] | None:
    """Return what the description of the collection in use says; None where there is no collection."""
    try:
        described = connection.call("describe_collection", connection.url.name)
    except NotFoundError:
        if connection.url.database:
            connection.call("list_collections")  # CollectionError where there is no such database
        return None
    try:
        facts = json.loads(described["description"])
    except ValueError:
        facts = {}
    return {**(facts if isinstance(facts, dict) else {}), "collection_name": described["collection_name"]}


def name_in_use(connection: Connection) -> str | None:
    """Return the name of the Milvus collection that the alias points to."""
    return (read_facts(connection) or {}).get("collection_name")


def drop_table(connection: Connection, name: str) -> None:
    """Drop a Milvus collection unless it is in use; warn where that fails."""
    try:
        if name_in_use(connection) != name:
            connection.call("drop_collection", name)
    except SnuhError as error:
        logger.warning("%s is not in use, but could not be dropped from Milvus: %s", name, error)


def _chunks(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
