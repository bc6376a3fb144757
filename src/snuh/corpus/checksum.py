"""Checksums of what was read: the same documents in the same order, the same checksum."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from snuh.corpus.document import SPLITS, Document
from snuh.corpus.matrix import MatrixSplit
from snuh.io import dump_json


class DocumentsChecksum:
    """The SHA-256 of ids, texts, labels and splits of documents, as they come."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, doc: Document) -> None:
        """Take one more document."""
        self._digest.update(dump_json([doc.id, doc.text, doc.labels, doc.split]).encode() + b"\n")

    @property
    def sha256(self) -> str:
        """The checksum of all so far."""
        return self._digest.hexdigest()


def sha256_of_rows(splits: Mapping[str, MatrixSplit]) -> str:
    """Return the SHA-256 of ids, labels and feature rows of all splits."""
    digest = hashlib.sha256()
    for split in SPLITS:
        if split not in splits:
            continue
        part = splits[split]
        digest.update(dump_json([split, part.ids, part.labels, part.X.shape]).encode() + b"\n")
        for array, kind in ((part.X.indptr, "<i8"), (part.X.indices, "<i8"), (part.X.data, "<f4")):
            digest.update(array.astype(kind).tobytes())
    return digest.hexdigest()
