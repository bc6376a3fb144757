"""Whose turn it is to write, told by the name of an empty collection of Milvus.

Milvus has no transactions, but of two that rename a collection from one name, only one can. So the name
`..._free_NEXT_WRITES_MARK` says that anybody may write, and `..._held_NEXT_WRITES_MARK` that somebody does.
NEXT is the seq of the next document, WRITES counts the writes. Who holds the turn renames it now and then: a
name that has not changed for `LEASE_SECONDS` was left by one that died, and may be taken from it. To set
seqs aside is to rename as well, which fails for one whose turn was taken. And since every write ends with a
new mark, the name is also the token of the last write.
"""

from __future__ import annotations

import logging
import re
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from snuh.collection.milvus.connection import Connection, GoneError
from snuh.errors import CollectionError, SnuhError

logger = logging.getLogger(__name__)

LEASE_SECONDS, RENEWAL_SECONDS, POLL_SECONDS, GIVING_UP_SECONDS = 10.0, 2.5, 0.05, 3.0
SUFFIX = re.compile(r"_(free|held)_(\d{1,19})_(\d{1,19})_([0-9a-f]{8})")
FIELDS = (
    {"field_name": "key", "datatype": "INT64", "is_primary": True},
    {"field_name": "code", "datatype": "BINARY_VECTOR", "dim": 8},  # Milvus wants one
)


@dataclass(frozen=True, slots=True)
class Turn:
    """What the name says."""

    alias: str
    is_held: bool
    next_seq: int = 1
    writes: int = 0
    mark: str = "00000000"

    @property
    def name(self) -> str:
        """The name itself."""
        status = "held" if self.is_held else "free"
        return f"{self.alias}_{status}_{self.next_seq}_{self.writes}_{self.mark}"

    def marked(self) -> Turn:
        """Return the same under another name."""
        return replace(self, mark=secrets.token_hex(4))


def make_turn(connection: Connection, alias: str, *, next_seq: int, writes: int) -> None:
    """Make the collection of a turn that nobody holds."""
    name = Turn(alias, is_held=False, next_seq=next_seq, writes=writes).marked().name
    connection.create(name, FIELDS, description="whose turn it is to write to a collection of snuh")
    connection.create_alias(name, alias)


def read_turn(connection: Connection, alias: str) -> Turn:
    """Return what the name says now."""
    shown = connection.site.shown
    try:
        name = str(connection.describe(alias)["collection_name"])
    except GoneError as error:
        raise CollectionError(
            f"{shown} is damaged: {alias} is missing in Milvus: restore it from a copy"
        ) from error
    found = SUFFIX.fullmatch(name.removeprefix(alias))
    if found is None:
        raise CollectionError(f"{shown} is damaged: {alias} has another name in Milvus, {name!r}")
    return Turn(alias, found[1] == "held", int(found[2]), int(found[3]), found[4])


class HeldTurn:
    """The turn while this process has it."""

    def __init__(self, connection: Connection, turn: Turn) -> None:
        self._connection = connection
        self.turn = turn
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._renewer = threading.Thread(target=self._renew, name="snuh-turn", daemon=True)
        self._renewer.start()

    def set_aside(self, seqs: int) -> int:
        """Take seqs for new documents, and return the first; CollectionError where the turn was lost."""
        with self._lock:
            first = self.turn.next_seq
            self._become(replace(self.turn, next_seq=first + seqs).marked())
            return first

    def end(self) -> None:
        """Let others write."""
        self._ended.set()
        self._renewer.join()
        self._become(replace(self.turn, is_held=False).marked())

    def give_up(self) -> None:
        """Let others write, if the server can be told so at once; else they wait until the time is up."""
        self._ended.set()
        if not self._lock.acquire(timeout=GIVING_UP_SECONDS):
            return
        try:
            free = replace(self.turn, is_held=False).marked()
            self._connection.rename(self.turn.name, free.name, seconds=GIVING_UP_SECONDS)
        except SnuhError as error:
            logger.debug("the turn to write could not be given back: %s", error)
        finally:
            self._lock.release()

    def _renew(self) -> None:
        while not self._ended.wait(RENEWAL_SECONDS):
            with self._lock:
                if self._ended.is_set():
                    return
                try:
                    self._become(self.turn.marked())
                except SnuhError as error:  # the next write finds out whether the turn is lost
                    logger.debug("the turn to write could not be renewed: %s", error)

    def _become(self, turn: Turn) -> None:
        _rename(self._connection, self.turn, turn)
        self.turn = turn


@contextmanager
def taking_turn(connection: Connection, alias: str, *, timeout: float) -> Iterator[HeldTurn]:
    """Hold the turn; CollectionError where another process keeps it for longer than the timeout."""
    held = HeldTurn(connection, _take(connection, alias, timeout=timeout))
    try:
        yield held
    except BaseException:
        held.give_up()
        raise
    held.end()


def _take(connection: Connection, alias: str, *, timeout: float) -> Turn:
    started = time.monotonic()
    seen, since = "", started
    while True:
        turn, now = read_turn(connection, alias), time.monotonic()
        if turn.name != seen:
            seen, since = turn.name, now
        if not turn.is_held or now - since > LEASE_SECONDS:
            taken = replace(turn, is_held=True, writes=turn.writes + 1).marked()
            try:
                _rename(connection, turn, taken)
                return taken
            except LostTurnError:
                continue  # another was quicker
        if now - started > timeout:
            raise CollectionError(
                f"{connection.site.shown}: another process is writing to it: try again when it has finished"
            )
        time.sleep(POLL_SECONDS)


class LostTurnError(CollectionError):
    """A turn that somebody else has taken."""


def _rename(connection: Connection, old: Turn, new: Turn) -> None:
    try:
        connection.rename(old.name, new.name)
    except CollectionError as error:
        # The answer to a rename that happened may be lost; asked again, the old name is not there any more.
        found = read_turn(connection, old.alias)
        if found == new:
            return
        if found == old and not isinstance(error, GoneError):
            raise
        raise LostTurnError(
            f"{connection.site.shown}: it took so long that another process began to write: run it again"
        ) from error
