"""Documents from files, folders, standard input and corpora known by name."""

from snuh.corpus.document import JSON, SPLITS, Document, Progress, TextSource
from snuh.corpus.matrix import MatrixSource, MatrixSplit
from snuh.corpus.source import open_source

__all__ = [
    "JSON",
    "SPLITS",
    "Document",
    "MatrixSource",
    "MatrixSplit",
    "Progress",
    "TextSource",
    "open_source",
]
