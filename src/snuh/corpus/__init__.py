"""Read documents from files, folders, standard input and named datasets."""

from snuh.corpus.document import JSON, SPLITS, Document, FractionCallback, TextSource
from snuh.corpus.matrix import MatrixSource, MatrixSplit
from snuh.corpus.source import open_source

__all__ = [
    "JSON",
    "SPLITS",
    "Document",
    "FractionCallback",
    "MatrixSource",
    "MatrixSplit",
    "TextSource",
    "open_source",
]
