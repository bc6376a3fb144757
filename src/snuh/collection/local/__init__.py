"""Collections in a folder: documents in SQLite, codes in a file that searches scan."""
