"""Checksums of documents and feature rows, which depend on their content and order."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from snuh.corpus.document import SPLITS, Document
from snuh.corpus.matrix import MatrixSplit
from snuh.io import dump_json


class DocumentsChecksum:
    """The SHA-256 of the ids, texts, labels and splits of a stream of documents."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, doc: Document) -> None:
        """Add a document."""
        self._digest.update(dump_json([doc.id, doc.text, doc.labels, doc.split]).encode() + b"\n")

    @property
    def sha256(self) -> str:
        """The checksum of the documents added so far."""
        return self._digest.hexdigest()


def sha256_of_rows(splits: Mapping[str, MatrixSplit]) -> str:
    """Return the SHA-256 of ids, labels and feature rows of all splits."""
    digest = hashlib.sha256()
    for split in SPLITS:
        if split not in splits:
            continue
        part = splits[split]
        digest.update(dump_json([split, part.ids, part.labels, part.X.shape]).encode() + b"\n")
        for array, dtype in ((part.X.indptr, "<i8"), (part.X.indices, "<i8"), (part.X.data, "<f4")):
            digest.update(array.astype(dtype).tobytes())
    return digest.hexdigest()
