"""Reading a source once for all trials: the rows that a fit would learn from, their labels, a checksum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from snuh.corpus import Document, FractionCallback, MatrixSource, MatrixSplit, TextSource
from snuh.corpus.checksum import DocumentsChecksum, sha256_of_rows
from snuh.errors import InputError, check_arguments
from snuh.features import TfidfFeatures
from snuh.hasher import text_rows
from snuh.progress import OnProgress


@dataclass(frozen=True)
class Rows:
    """The documents to learn from, and those held out where the source says which."""

    source: str
    sha256: str  # of ids, texts (or rows), labels and splits, in their order
    train: MatrixSplit
    val: MatrixSplit | None

    def labelled(self) -> tuple[MatrixSplit, MatrixSplit]:
        """Return both splits; InputError where a score by labels is not possible."""
        if self.val is None:
            raise InputError(
                f"--select labels needs documents of the split val, {self.source} has none: "
                "add some, or leave --select out"
            )
        for name, split in (("train", self.train), ("val", self.val)):
            if not any(split.labels):
                raise InputError(
                    f"--select labels needs labels, {self.source} has none in the split {name}: "
                    "add some, or leave --select out"
                )
        return self.train, self.val


def read_rows(
    source: TextSource | MatrixSource, features: Mapping[str, Any], *, on_progress: OnProgress | None = None
) -> Rows:
    """Read a source as a fit does."""
    if isinstance(source, MatrixSource):
        return Rows(
            source.name, sha256_of_rows(source.splits), source.splits["train"], source.splits.get("val")
        )
    check_arguments(TfidfFeatures, features, what="the features' settings")
    recorded = _Recorded(source)
    X, X_val = text_rows(recorded, TfidfFeatures(**features), on_progress)
    train = MatrixSplit(X, recorded.ids["train"], recorded.labels["train"])
    val = None if X_val is None else MatrixSplit(X_val, recorded.ids["val"], recorded.labels["val"])
    return Rows(source.name, recorded.sha256, train, val)


class _Recorded(TextSource):
    """Another source, and what its latest reading brought beside the texts."""

    def __init__(self, source: TextSource) -> None:
        self.name = source.name
        self._source = source

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        self.ids: dict[str, list[str]] = {"train": [], "val": [], "test": []}
        self.labels: dict[str, list[tuple[str, ...]]] = {"train": [], "val": [], "test": []}
        checksum = DocumentsChecksum()
        for doc in self._source.documents(progress):
            split = doc.split or "train"
            self.ids[split].append(doc.id)
            self.labels[split].append(doc.labels)
            checksum.add(doc)
            yield doc
        self.sha256 = checksum.sha256
