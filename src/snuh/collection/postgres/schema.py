"""The tables of a collection in PostgreSQL, in a schema of its own.

| table | one row for |
|---|---|
| state | the collection: its format, model and table of codes, the number and token of the last write |
| documents | a document; `fields` holds the metadata once more, as filters read them |
| codes_N | the code of a document; another N after each rehash |
| fields | a name that some document's metadata had |
| models | a file of the model |
| fast | an index for fast searches, and what was measured on it |
"""

from __future__ import annotations

from snuh.collection.postgres.connection import Connection, PgUrl
from snuh.errors import CollectionError, InputError

FORMAT = 1
OLDEST_PGVECTOR = (0, 7)

TABLES = """
CREATE TABLE state (
    one integer PRIMARY KEY CHECK (one = 1), format integer NOT NULL,
    model text NOT NULL, bits integer NOT NULL, codes text NOT NULL,
    write bigint NOT NULL, token text NOT NULL, next_seq bigint NOT NULL, rehash text
);
CREATE TABLE documents (
    seq bigint PRIMARY KEY, id text COLLATE "C" NOT NULL UNIQUE, split text COLLATE "C",
    labels jsonb NOT NULL, metadata text NOT NULL, fields jsonb NOT NULL, text text NOT NULL,
    write bigint NOT NULL
);
CREATE TABLE fields (name text COLLATE "C" PRIMARY KEY);
CREATE TABLE models (fingerprint text, name text, content bytea NOT NULL, PRIMARY KEY (fingerprint, name));
CREATE TABLE fast (
    codes text PRIMARY KEY, ef_search integer NOT NULL,
    k integer NOT NULL, recall double precision NOT NULL, documents bigint NOT NULL
);
"""
COLUMNS = {  # with their types, as PostgreSQL tells them
    "state": {
        "one": "integer",
        "format": "integer",
        "model": "text",
        "bits": "integer",
        "codes": "text",
        "write": "bigint",
        "token": "text",
        "next_seq": "bigint",
        "rehash": "text",
    },
    "documents": {
        "seq": "bigint",
        "id": "text",
        "split": "text",
        "labels": "jsonb",
        "metadata": "text",
        "fields": "jsonb",
        "text": "text",
        "write": "bigint",
    },
    "fields": {"name": "text"},
    "models": {"fingerprint": "text", "name": "text", "content": "bytea"},
    "fast": {
        "codes": "text",
        "ef_search": "integer",
        "k": "integer",
        "recall": "double precision",
        "documents": "bigint",
    },
}


def codes_table(number: int) -> str:
    """Return the name of a table of codes."""
    return f"codes_{number}"


def create_codes(table: str, bits: int) -> str:
    """Return the statement that makes a table of codes."""
    return f"CREATE TABLE {table} (seq bigint PRIMARY KEY, code bit({bits}) NOT NULL)"


def index_of(table: str) -> str:
    """Return the name of the index for fast searches."""
    return f"{table}_hnsw"


def schema_exists(connection: Connection, place: PgUrl) -> bool:
    """Tell whether there is a schema of the collection's name."""
    found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (place.schema,)).fetchone()
    return found is not None


def found_columns(connection: Connection, place: PgUrl) -> dict[str, dict[str, str]]:
    """Return the tables of the schema with their columns and the types of these."""
    rows = connection.execute(
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = %s "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
        "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')",
        (place.schema,),
    ).fetchall()
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        found.setdefault(table, {})[column] = kind
    return found


def ensure_absent(connection: Connection, place: PgUrl) -> None:
    """Raise InputError unless the schema is absent, or without tables."""
    found = found_columns(connection, place)
    if "state" in found:
        raise InputError(
            f'{place.name} is a collection already: add to it with "snuh add", or choose another name'
        )
    if found:
        raise InputError(
            f"{place.name}: the schema {place.schema} holds other tables, such as {min(found)}: "
            "choose another name with ?collection=NAME"
        )


def check_tables(connection: Connection, place: PgUrl) -> None:
    """Raise an error that helps where the schema holds no collection that this version reads."""
    if schema_exists(connection, place) and not _may_use(connection, place):
        raise CollectionError(
            f"permission denied at {place.name}: ask its owner for the right to use the schema {place.schema}"
        )
    found = found_columns(connection, place)
    if not found:
        raise InputError(f'there is no collection {place.name}: make one with "snuh create"')
    if "state" not in found:
        raise InputError(
            f"{place.name} is not a collection: the schema {place.schema} holds other tables, "
            f"such as {min(found)}"
        )
    if found["state"].get("format") == COLUMNS["state"]["format"]:
        _check_format(connection, place)
    for table in COLUMNS:
        _check_columns(place, table, COLUMNS[table], found.get(table))
    codes = connection.execute("SELECT codes, bits FROM state").fetchone()
    if codes is None or codes[0] not in found:
        raise CollectionError(f"{place.name}: it has lost its codes: restore the tables from a copy")
    table, bits = codes
    _check_columns(place, table, {"seq": "bigint", "code": f"bit({bits})"}, found[table])


def _check_columns(place: PgUrl, table: str, wanted: dict[str, str], found: dict[str, str] | None) -> None:
    if found is None:
        raise _not_ours(place, f"there is no table {table}")
    for column, kind in wanted.items():
        if column not in found:
            raise _not_ours(place, f"there is no column {column} in its table {table}")
        if found[column] != kind:
            raise _not_ours(place, f"the column {column} of its table {table} is {found[column]}, not {kind}")


def _not_ours(place: PgUrl, why: str) -> CollectionError:
    return CollectionError(
        f"{place.name}: its tables are not those of a collection, {why}: restore them from a copy"
    )


def _may_use(connection: Connection, place: PgUrl) -> bool:
    row = connection.execute("SELECT has_schema_privilege(%s, 'USAGE')", (place.schema,)).fetchone()
    return row is not None and bool(row[0])


def _check_format(connection: Connection, place: PgUrl) -> None:
    row = connection.execute("SELECT format FROM state").fetchone()
    if row is None:
        raise CollectionError(
            f"{place.name} was not finished when it was made: "
            f"drop the schema {place.schema}, and make it again"
        )
    if row[0] != FORMAT:
        raise CollectionError(f"{place.name} has format {row[0]}, this snuh reads {FORMAT}: update snuh")


def pgvector(connection: Connection, place: PgUrl) -> tuple[str, tuple[int, ...]]:
    """Return the schema and the version of pgvector; CollectionError where it is missing or too old."""
    row = connection.execute(
        "SELECT n.nspname, e.extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
        "WHERE e.extname = 'vector'"
    ).fetchone()
    if row is None:
        raise CollectionError(
            f'{place.name}: this database has no pgvector: let its owner run "CREATE EXTENSION vector" '
            f"(version {OLDEST_PGVECTOR[0]}.{OLDEST_PGVECTOR[1]} or newer)"
        )
    version = tuple(int(part) for part in row[1].split(".") if part.isdigit())
    if version < OLDEST_PGVECTOR:
        raise CollectionError(
            f"{place.name}: this database has pgvector {row[1]}, "
            f"which must be {OLDEST_PGVECTOR[0]}.{OLDEST_PGVECTOR[1]} or newer: "
            'let its owner update it, and run "ALTER EXTENSION vector UPDATE"'
        )
    return row[0], version
