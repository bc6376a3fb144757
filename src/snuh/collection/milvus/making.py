"""Making the parts of a collection in Milvus."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from snuh.collection.backend import NewDocument, Put, State
from snuh.collection.milvus.approximate import INDEX
from snuh.collection.milvus.connection import Connection
from snuh.collection.milvus.entities import schema
from snuh.collection.milvus.facts import Facts, is_ours, leftovers
from snuh.collection.milvus.models import write_model
from snuh.collection.milvus.rows import Rows
from snuh.collection.milvus.site import Site
from snuh.collection.milvus.turn import make_turn, read_turn
from snuh.collection.milvus.writing import MilvusWrite
from snuh.collection.model_files import ModelFiles, check_takes_texts, files_of
from snuh.collection.results import Added
from snuh.errors import CollectionError, InputError, SnuhError
from snuh.model import Model

logger = logging.getLogger(__name__)


def ensure_absent(connection: Connection) -> None:
    """Raise InputError where something has the name of the collection."""
    site = connection.site
    if (ours := is_ours(connection)) is not None:
        raise InputError(
            f'{site.shown} is a collection already: add to it with "snuh add", or choose another name'
            if ours
            else f"{site.shown}: Milvus has something of that name, not made by snuh: choose another name"
        )
    for name in leftovers(connection, site):
        logger.warning(
            "%s is left in Milvus by a create that goes on or was stopped: drop it if it was", name
        )


def make_documents(connection: Connection, facts: Facts, files: ModelFiles) -> None:
    """Make documents that are not in use yet, with the model that makes their codes."""
    connection.create(facts.documents, schema(facts.bits), description=facts.description())
    connection.index(facts.documents, "code", INDEX)
    connection.index(facts.documents, "seq", {"index_type": "STL_SORT"})
    connection.load(facts.documents)
    write_model(Rows(connection, facts), files)


@contextmanager
def creating(site: Site, model: Model) -> Iterator[Put]:
    """Make a collection, to be filled in the block: its name comes last."""
    check_takes_texts(model)
    with closing(Connection(site)) as connection:
        ensure_absent(connection)
        files = files_of(model)
        facts = Facts(site.new_documents(), site.new_turn(), files.fingerprint, model.bits)
        try:
            make_documents(connection, facts, files)
            filling = _Filling(connection, facts)
            yield filling.put
            make_turn(connection, facts.turn, next_seq=filling.next_seq, writes=filling.writes)
            try:
                connection.create_alias(facts.documents, site.name)
            except CollectionError:
                ensure_absent(connection)  # another may have been quicker
                raise
        except BaseException:
            _undo(connection, facts)
            raise


class _Filling:
    """Puts documents into a collection that nobody else knows of."""

    def __init__(self, connection: Connection, facts: Facts) -> None:
        self._connection, self._facts = connection, facts
        self._known_fields: set[str] = set()
        self.next_seq, self.writes = 1, 0

    def put(self, new: Sequence[NewDocument]) -> Added:
        self.writes += 1
        rows = Rows(self._connection, self._facts)
        state = State(self._facts.model, self._facts.bits, "", self.next_seq)
        write = MilvusWrite(
            rows, state, number=self.writes, set_aside=self._set_aside, known_fields=self._known_fields
        )
        return write.put(new)

    def _set_aside(self, seqs: int) -> int:
        self.next_seq += seqs
        return self.next_seq - seqs


def _undo(connection: Connection, facts: Facts) -> None:
    try:
        connection.drop(facts.documents)
        turn = read_turn(connection, facts.turn).name
        connection.drop_alias(facts.turn)
        connection.drop(turn)
    except SnuhError as error:  # there was no turn yet, or the server has gone
        logger.debug("not all of an unfinished collection was removed: %s", error)
