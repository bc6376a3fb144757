"""Collections in Milvus: documents, codes and the model are rows of a Milvus collection, named by an alias.

A collection there promises what Milvus does: upserts by primary key, strongly consistent reads, and aliases
that switch at once. Milvus has no transactions and no locks, so

- writers do not wait for each other, and of two that write one id the last wins;
- a write that is stopped leaves some of its documents, and completes them when it is run again;
- a read sees all that was written before it, and perhaps some of what is written meanwhile;
- a rehash fills a new Milvus collection and switches the alias to it, unless others write meanwhile.

docs/milvus.md has more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from snuh.collection import backend
from snuh.collection.milvus.backend import MilvusBackend
from snuh.collection.milvus.connection import Connection, parse_url
from snuh.collection.milvus.table import FORMAT, create_table, drop_table, read_facts
from snuh.collection.model_files import check_takes_texts
from snuh.errors import CollectionError, InputError
from snuh.model import Model


def open_backend(address: str, *, timeout: float) -> backend.Backend:
    """Open a collection on a server; the timeout has no effect, since writers do not wait."""
    return MilvusBackend(parse_url(address))


@contextmanager
def creating(address: str, model: Model, *, words: bool = True) -> Iterator[backend.Put]:
    """Create a collection, to be filled in the block; it has its name, an alias, when the block ends."""
    check_takes_texts(model)
    with closing(Connection(parse_url(address))) as connection:
        _ensure_absent(connection)
        table = create_table(connection, model)
        try:
            yield table.put
            try:
                connection.call("create_alias", table.name, connection.url.name, retry=False)
            except CollectionError:
                _ensure_absent(connection)  # another process may have created it meanwhile
                raise
        except BaseException:
            drop_table(connection, table.name)
            raise


def ensure_absent(address: str) -> None:
    """Raise InputError where something on the server has the name."""
    with closing(Connection(parse_url(address))) as connection:
        _ensure_absent(connection)


def is_collection(address: str) -> bool:
    """Tell whether the name on the server is one of a collection of snuh."""
    with closing(Connection(parse_url(address))) as connection:
        return (read_facts(connection) or {}).get("format") == FORMAT


def short_name(address: str) -> str:
    """Return its name on the server."""
    return parse_url(address).name


def _ensure_absent(connection: Connection) -> None:
    shown, facts = connection.url.shown, read_facts(connection)
    if facts is not None and facts.get("format") == FORMAT:
        raise InputError(
            f'{shown} is a collection already: add to it with "snuh add", or choose another name'
        )
    if facts is not None:
        raise InputError(f"{shown}: Milvus has something of that name, not made by snuh: choose another name")
