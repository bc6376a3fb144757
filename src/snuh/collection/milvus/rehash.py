"""Codes of another model for all documents, made beside those in use."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from snuh.collection.backend import NewDocument, State
from snuh.collection.milvus.connection import Connection, GoneError
from snuh.collection.milvus.facts import Facts, leftovers, read_facts
from snuh.collection.milvus.making import make_documents
from snuh.collection.milvus.rows import IS_DOCUMENT, Rows
from snuh.collection.milvus.turn import HeldTurn, read_turn
from snuh.collection.milvus.writing import MilvusWrite
from snuh.collection.model_files import files_of
from snuh.corpus import Document
from snuh.encoding import encode_documents
from snuh.errors import CollectionError, SnuhError
from snuh.model import Model

logger = logging.getLogger(__name__)

Taking = Callable[[], AbstractContextManager[HeldTurn]]


def rehash(
    connection: Connection, taking_turn: Taking, model: Model, *, progress: Callable[[float], None] | None
) -> None:
    """Encode every document with a model, beside the codes in use, and let the name stand for the new ones.

    Others may search and write meanwhile: what they write is encoded at the end, when nobody else can.
    """
    site, files = connection.site, files_of(model)
    with taking_turn() as held:
        old = read_facts(connection)
        for name in leftovers(connection, site, used=old.documents):
            connection.drop(name)  # of a rehash that was stopped, or goes on: then it finds out
        new = replace(old, documents=site.new_documents(), model=files.fingerprint, bits=model.bits)
        make_documents(connection, new, files)
        start = held.turn
    try:
        for done in _copy(connection, old, new, model, before=start.next_seq):
            if progress is not None:
                progress(done)
        with taking_turn() as held:
            if read_facts(connection) != old:
                raise GoneError(f"{old.documents} is not in use any more")
            if held.turn.writes != start.writes + 1:
                _catch_up(connection, old, new, model, held=held, since=start.writes)
            held.set_aside(0)  # an error, where the turn was lost
            connection.alter_alias(new.documents, site.name)
    except GoneError as error:
        raise CollectionError(
            f"{site.shown}: another rehash of this collection has started: this one stops ({error})"
        ) from error
    except BaseException:
        _drop_unused(connection, new)
        raise
    try:
        connection.drop(old.documents)  # a search that is under way there is tried again
    except SnuhError as error:  # they only take space, until the next rehash
        logger.warning("the documents with the old codes, %s, could not be dropped: %s", old.documents, error)


def _drop_unused(connection: Connection, facts: Facts) -> None:
    try:
        if read_facts(connection).documents != facts.documents:
            connection.drop(facts.documents)
    except SnuhError as error:  # the next rehash does it
        logger.debug("%s stays in Milvus for now: %s", facts.documents, error)


def _copy(connection: Connection, old: Facts, new: Facts, model: Model, *, before: int) -> Iterator[float]:
    """Encode all documents with seqs below `before`, and yield how much of them is done."""
    source = Rows(connection, old)
    write = _writer(connection, new)
    write.remember_fields(set(source.field_names()))
    for listed in source.windows(IS_DOCUMENT, ["size"], after=0, before=before):
        _encode(source, listed, write, model)
        if listed:
            yield listed[-1]["seq"] / (before - 1)


def _catch_up(
    connection: Connection, old: Facts, new: Facts, model: Model, *, held: HeldTurn, since: int
) -> None:
    """Encode what was written after a write, and drop what was deleted."""
    source, target = (Rows(connection, facts) for facts in (old, new))
    write = _writer(connection, new)
    end = read_turn(connection, old.turn).next_seq
    there: set[str] = set()
    for listed in source.windows(IS_DOCUMENT, ["size", "write"], after=0, before=end):
        there.update(row["key"] for row in listed)
        _encode(source, [row for row in listed if row["write"] > since], write, model)
    gone = [
        row
        for listed in target.windows(IS_DOCUMENT, ["pieces"], after=0, before=end)
        for row in listed
        if row["key"] not in there
    ]
    write.delete_keys([row["key"] for row in gone], large=[row["key"] for row in gone if row["pieces"]])


def _encode(source: Rows, listed: Sequence[dict[str, object]], write: MilvusWrite, model: Model) -> None:
    seqs: list[int] = []

    def documents() -> Iterator[Document]:
        for row, document in source.documents(listed):
            seqs.append(int(row["seq"]))
            yield document

    for part in encode_documents(model, documents()):
        codes = part.packed()
        write.put_at(list(zip(seqs, map(NewDocument, part.documents, codes), strict=True)))
        del seqs[: len(codes)]


def _writer(connection: Connection, facts: Facts) -> MilvusWrite:
    state = State(facts.model, facts.bits, "", 1)
    rows = Rows(connection, facts)
    return MilvusWrite(rows, state, number=0, set_aside=lambda seqs: 0, known_fields=set())
