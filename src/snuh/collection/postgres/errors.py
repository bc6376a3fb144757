"""What PostgreSQL says, in one sentence that names the collection and says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from snuh.collection.backend import LostConnectionError
from snuh.errors import CollectionError, InputError, SnuhError

# What the server or libpq says when no connection comes about, and what to do about it.
CONNECTING = (
    ("password authentication failed", "give the right user and password"),
    ("no password supplied", "give a password in the address, in PGPASSWORD or in ~/.pgpass"),
    ("does not exist", "make it first, or correct the address"),
    ("permission denied", "ask its owner for the right to connect"),
    ("no pg_hba.conf entry", "let the server accept this machine and user"),
    ("too many", "close other connections, or try again later"),
)


def cannot_connect(name: str, error: psycopg.Error) -> CollectionError:
    """Return what to raise where no connection comes about."""
    said = one_line(str(error).rpartition("FATAL:")[2])
    advice = next((advice for words, advice in CONNECTING if words in said), None)
    return CollectionError(
        f"cannot connect to {name}: {advice or 'is the server running, and is the address right?'} ({said})"
    )


@contextmanager
def reported(name: str, *, is_write: bool = False) -> Iterator[None]:
    """Say in one line what went wrong."""
    try:
        yield
    except psycopg.Error as error:
        raise of_error(name, error, is_write=is_write) from error


def of_error(name: str, error: psycopg.Error, *, is_write: bool = False) -> SnuhError:
    """Return what an error of PostgreSQL is for a user of snuh."""
    said = one_line(error.diag.message_primary or str(error))
    match error:
        case errors.InsufficientPrivilege() | errors.ReadOnlySqlTransaction():
            return CollectionError(f"permission denied at {name}: ask its owner for the right ({said})")
        case errors.LockNotAvailable():
            return CollectionError(
                f"{name}: another process is writing to it: try again when it has finished ({said})"
            )
        case errors.DuplicateSchema() | errors.DuplicateTable() | errors.UniqueViolation():
            return CollectionError(f"{name}: another process has just made the same: try again ({said})")
        case errors.QueryCanceled():
            return CollectionError(f"{name}: it took too long and was given up ({said})")
        case errors.DiskFull() | errors.OutOfMemory():
            return CollectionError(f"{name}: the server has no space left: nothing of it was kept ({said})")
        case errors.DataError() | errors.ProgramLimitExceeded() | errors.StatementTooComplex() if is_write:
            return InputError(f"{name}: a document cannot be stored ({said})")
        case errors.UndefinedTable() if '"codes_' in said:
            return LostConnectionError(f"{name}: its codes were replaced meanwhile: try again ({said})")
        case errors.UndefinedTable() | errors.UndefinedColumn() | errors.InvalidSchemaName():
            return CollectionError(
                f"{name}: its tables were changed by others: restore them from a copy ({said})"
            )
        case errors.SerializationFailure() | errors.DeadlockDetected():
            return LostConnectionError(
                f"{name}: another process wrote to it at the same time: try again ({said})"
            )
        case psycopg.InterfaceError() | psycopg.OperationalError():
            return LostConnectionError(f"{name}: the connection was lost: try again ({said})")
    return CollectionError(f"{name}: PostgreSQL refused it ({said})")


def one_line(text: str) -> str:
    """Return a text of the server's without line breaks, and not too long."""
    line = " ".join(text.split())
    return line if len(line) <= 300 else f"{line[:297]}..."
