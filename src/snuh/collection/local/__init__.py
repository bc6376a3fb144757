"""Collections in a folder: documents in SQLite, codes in a memory-mapped file."""
