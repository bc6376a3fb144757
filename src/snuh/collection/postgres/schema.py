"""The tables of a collection in PostgreSQL, in a schema of its own.

| table | one row for |
|---|---|
| state | the collection: its format, model and code table, the number and token of the last write |
| documents | a document; `fields` repeats the metadata in the form that filters need |
| codes_N | the code of a document; each rehash creates a table with another N |
| fields | a metadata field of some document so far |
| models | a file of the model |
| fast | the approximate index and its measured recall |
"""

from __future__ import annotations

from snuh.collection.postgres.connection import PgConnection, PgUrl
from snuh.errors import CollectionError, InputError

FORMAT = 1
MIN_PGVECTOR = (0, 7)

# Type and constraints of each column, by table.
TABLES: dict[str, dict[str, tuple[str, str]]] = {
    "state": {
        "one": ("integer", "PRIMARY KEY CHECK (one = 1)"),
        "format": ("integer", "NOT NULL"),
        "model": ("text", "NOT NULL"),
        "bits": ("integer", "NOT NULL"),
        "codes": ("text", "NOT NULL"),
        "write": ("bigint", "NOT NULL"),
        "token": ("text", "NOT NULL"),
        "next_seq": ("bigint", "NOT NULL"),
        "rehash": ("text", ""),
    },
    "documents": {
        "seq": ("bigint", "PRIMARY KEY"),
        "id": ("text", 'COLLATE "C" NOT NULL UNIQUE'),
        "split": ("text", 'COLLATE "C"'),
        "labels": ("jsonb", "NOT NULL"),
        "metadata": ("text", "NOT NULL"),
        "fields": ("jsonb", "NOT NULL"),
        "text": ("text", "NOT NULL"),
        "write": ("bigint", "NOT NULL"),
    },
    "fields": {"name": ("text", 'COLLATE "C" PRIMARY KEY')},
    "models": {
        "fingerprint": ("text", ""),
        "name": ("text", ""),
        "content": ("bytea", "NOT NULL, PRIMARY KEY (fingerprint, name)"),
    },
    "fast": {
        "codes": ("text", "PRIMARY KEY"),
        "ef_search": ("integer", "NOT NULL"),
        "k": ("integer", "NOT NULL"),
        "recall": ("double precision", "NOT NULL"),
        "documents": ("bigint", "NOT NULL"),
    },
}


def create_statements() -> list[str]:
    """Return the statements that create all tables but the code table."""
    statements = []
    for table, columns in TABLES.items():
        definitions = ", ".join(
            f"{name} {kind} {constraints}" for name, (kind, constraints) in columns.items()
        )
        statements.append(f"CREATE TABLE {table} ({definitions})")
    return statements


def create_codes(table: str, bits: int) -> str:
    """Return the statement that creates a code table."""
    return f"CREATE TABLE {table} (seq bigint PRIMARY KEY, code bit({bits}) NOT NULL)"


def codes_table(number: int) -> str:
    """Return the name of a code table."""
    return f"codes_{number}"


def index_of(table: str) -> str:
    """Return the name of the HNSW index of a code table."""
    return f"{table}_hnsw"


def schema_exists(connection: PgConnection, url: PgUrl) -> bool:
    """Tell whether the schema of the collection exists."""
    row = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (url.schema,)).fetchone()
    return row is not None


def read_columns(connection: PgConnection, url: PgUrl) -> dict[str, dict[str, str]]:
    """Return the types of all columns in the schema, by table and column."""
    rows = connection.execute(
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = %s "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
        "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')",
        (url.schema,),
    ).fetchall()
    tables: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        tables.setdefault(table, {})[column] = kind
    return tables


def ensure_absent(connection: PgConnection, url: PgUrl) -> None:
    """Raise InputError unless the schema is absent or has no tables."""
    tables = read_columns(connection, url)
    if "state" in tables:
        raise InputError(
            f'{url.name} is a collection already: add to it with "snuh add", or choose another name'
        )
    if tables:
        raise InputError(
            f"{url.name}: the schema {url.schema} holds other tables, such as {min(tables)}: "
            "choose another name with ?collection=NAME"
        )


def check_tables(connection: PgConnection, url: PgUrl) -> None:
    """Raise InputError if the schema is not a collection, CollectionError if its tables are unusable."""
    if schema_exists(connection, url) and not _has_usage(connection, url):
        raise CollectionError(
            f"permission denied at {url.name}: ask its owner for USAGE on the schema {url.schema}"
        )
    tables = read_columns(connection, url)
    if not tables:
        raise InputError(f'there is no collection {url.name}: create one with "snuh create"')
    if "state" not in tables:
        raise InputError(
            f"{url.name} is not a collection: the schema {url.schema} holds other tables, "
            f"such as {min(tables)}"
        )
    if tables["state"].get("format") == TABLES["state"]["format"][0]:
        _check_format(connection, url)
    for table, columns in TABLES.items():
        types = {name: kind for name, (kind, _) in columns.items()}
        _check_columns(url, table, types, tables.get(table))
    row = connection.execute("SELECT codes, bits FROM state").fetchone()
    if row is None or row[0] not in tables:
        raise CollectionError(f"{url.name}: its code table is missing: restore the tables from a copy")
    codes, bits = row
    _check_columns(url, codes, {"seq": "bigint", "code": f"bit({bits})"}, tables[codes])


def _check_columns(url: PgUrl, table: str, expected: dict[str, str], actual: dict[str, str] | None) -> None:
    if actual is None:
        raise _invalid_tables(url, f"there is no table {table}")
    for column, kind in expected.items():
        if column not in actual:
            raise _invalid_tables(url, f"there is no column {column} in the table {table}")
        if actual[column] != kind:
            raise _invalid_tables(
                url, f"the column {column} of the table {table} is {actual[column]}, not {kind}"
            )


def _invalid_tables(url: PgUrl, reason: str) -> CollectionError:
    return CollectionError(
        f"{url.name}: its tables are not those of a collection, {reason}: restore them from a copy"
    )


def _has_usage(connection: PgConnection, url: PgUrl) -> bool:
    row = connection.execute("SELECT has_schema_privilege(%s, 'USAGE')", (url.schema,)).fetchone()
    return row is not None and bool(row[0])


def _check_format(connection: PgConnection, url: PgUrl) -> None:
    row = connection.execute("SELECT format FROM state").fetchone()
    if row is None:
        raise CollectionError(
            f"the creation of {url.name} was not completed: drop the schema {url.schema}, and create it again"
        )
    if row[0] != FORMAT:
        raise CollectionError(f"{url.name} has format {row[0]}, this snuh reads {FORMAT}: update snuh")


def check_pgvector(connection: PgConnection, url: PgUrl) -> tuple[str, tuple[int, ...]]:
    """Return the schema and the version of pgvector; CollectionError if it is missing or too old."""
    row = connection.execute(
        "SELECT n.nspname, e.extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
        "WHERE e.extname = 'vector'"
    ).fetchone()
    minimum = ".".join(map(str, MIN_PGVECTOR))
    if row is None:
        raise CollectionError(
            f'{url.name}: this database has no pgvector: ask its owner to run "CREATE EXTENSION vector" '
            f"(version {minimum} or newer)"
        )
    schema, installed = row
    version = tuple(int(part) for part in installed.split(".") if part.isdigit())
    if version < MIN_PGVECTOR:
        raise CollectionError(
            f"{url.name}: expected pgvector {minimum} or newer, got {installed}: "
            'ask its owner to update it and run "ALTER EXTENSION vector UPDATE"'
        )
    return schema, version
