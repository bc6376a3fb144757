"""The tables of a collection in PostgreSQL, in a schema of its own.

| table | one row for |
|---|---|
| state | the collection: its format, model and code table, the number and token of the last write |
| documents | a document; `fields` repeats the metadata in the form that filters need |
| codes_N | the code of a document; each rehash creates a table with another N |
| postings_N, rows_N | a term in a block of documents, and such a block (see `words`) |
| fields | a metadata field of some document so far |
| models | a file of the model |
| fast | the approximate index and its measured recall |
"""

from __future__ import annotations

from snuh.collection.postgres.connection import PgConnection, PgUrl
from snuh.errors import CollectionError, InputError

FORMAT = 2
READABLE_FORMATS = (1, 2)  # the first had no index of words
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


def create_index_tables(codes: str, bits: int, *, words: bool) -> list[str]:
    """Return the statements that create a code table and, with `words`, those of the index of words."""
    statements = [f"CREATE TABLE {codes} (seq bigint PRIMARY KEY, code bit({bits}) NOT NULL)"]
    if words:
        postings, rows = postings_table(codes), rows_table(codes)
        statements += [
            f"CREATE TABLE {postings} (term bigint, block integer, documents integer NOT NULL, "
            "data bytea NOT NULL, PRIMARY KEY (term, block))",
            f"CREATE INDEX ON {postings} (block)",
            f"CREATE TABLE {rows} (block integer PRIMARY KEY, version bigint NOT NULL, data bytea NOT NULL)",
        ]
        # Compressing them would take longer than all else.
        statements += [f"ALTER TABLE {table} ALTER data SET STORAGE EXTERNAL" for table in (postings, rows)]
    return statements


def index_tables(codes: str) -> tuple[str, str, str]:
    """Return the names of a code table and of the index of words that belongs to it."""
    return codes, postings_table(codes), rows_table(codes)


def codes_table(number: int) -> str:
    """Return the name of a code table."""
    return f"codes_{number}"


def postings_table(codes: str) -> str:
    """Return the name of the table of postings that belongs to a code table."""
    return codes.replace("codes", "postings")


def rows_table(codes: str) -> str:
    """Return the name of the table of blocks that belongs to a code table."""
    return codes.replace("codes", "rows")


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


def check_tables(connection: PgConnection, url: PgUrl) -> bool:
    """Return whether there is an index of words.

    Raises InputError if the schema is not a collection, CollectionError if its tables are unusable.
    """
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
    _, postings, rows = index_tables(codes)
    if has_words := postings in tables or rows in tables:
        types = {"term": "bigint", "block": "integer", "documents": "integer", "data": "bytea"}
        _check_columns(url, postings, types, tables.get(postings))
        types = {"block": "integer", "version": "bigint", "data": "bytea"}
        _check_columns(url, rows, types, tables.get(rows))
    return has_words


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
    if row[0] not in READABLE_FORMATS:
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
