"""The tables of a collection's store.

| table | one row for |
|---|---|
| state | the collection: its model, and the number and token of the last write |
| documents | a document; `seq` is its place in the order of insertion and never used again |
| codes | the code of a document; those without any word that the model knows have none |
| fields | a name that some document's metadata had |
| writes | one of the last writes: its number and its token, which no other store has |
| changes | a document that a write replaced or deleted (new ones are known by their seq) |

`writes` and `changes` tell a reader who saw an earlier write what to read anew.
"""

from __future__ import annotations

STORE_VERSION = 1

TABLES = """
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    model TEXT NOT NULL, bits INTEGER NOT NULL,
    write INTEGER NOT NULL, token TEXT NOT NULL, next_seq INTEGER NOT NULL,
    rehash TEXT
);
CREATE TABLE documents (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    split TEXT, labels TEXT NOT NULL, metadata TEXT NOT NULL, text TEXT NOT NULL
);
CREATE TABLE codes (seq INTEGER PRIMARY KEY, code BLOB NOT NULL);
CREATE TABLE fields (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE writes (write INTEGER PRIMARY KEY, token TEXT NOT NULL);
CREATE TABLE changes (write INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (write, seq)) WITHOUT ROWID;
"""

NEXT_CODES = "CREATE TABLE next_codes (seq INTEGER PRIMARY KEY, code BLOB NOT NULL)"
