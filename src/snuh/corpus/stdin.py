"""Standard input: kept in a temporary file, so that it can be read more than once."""

from __future__ import annotations

import sys
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from snuh.corpus.document import Document, Progress, TextSource
from snuh.corpus.jsonl import read_jsonl
from snuh.corpus.lines import Meter, text_lines
from snuh.corpus.plain import read_plain
from snuh.corpus.record import FieldNames
from snuh.corpus.records import Format, RecordSource

NAME = "standard input"
PIECE_BYTES = 1 << 16


class StdinSource(TextSource):
    """JSON lines if the first line that is not blank starts an object, else one text a line.

    The input is read to its end at the first iteration; the file is deleted with this object.
    """

    def __init__(self, *, stream: BinaryIO | None = None, fields: FieldNames | None = None) -> None:
        """Read `stream`, or standard input where none is given."""
        self.name = NAME
        self._stream = stream
        self._fields = fields or FieldNames()
        self._source: RecordSource | None = None

    def documents(self, progress: Progress | None = None) -> Iterator[Document]:
        """Yield the documents, after the whole input has come in."""
        if self._source is None:
            self._source = self._spool()
        yield from self._source.documents(progress)

    def _spool(self) -> RecordSource:
        # In a folder of its own the file can bear the name that messages show.
        folder = tempfile.TemporaryDirectory(prefix="snuh-")
        weakref.finalize(self, folder.cleanup)
        path = Path(folder.name) / NAME
        with path.open("wb") as file:
            stream = self._stream or sys.stdin.buffer
            # A plain read goes on in C until it has all it asked for, and Ctrl-C would have to wait for that.
            read = getattr(stream, "read1", stream.read)
            while piece := read(PIECE_BYTES):
                file.write(piece)
        form = Format(read_jsonl if _holds_objects(path) else read_plain)
        if form.read is read_plain:
            self._fields.check_unused(NAME)
        return RecordSource(path, form, fields=self._fields)


def _holds_objects(path: Path) -> bool:
    lines = (line.strip() for _, line in text_lines(path, Meter()))
    return next((line.startswith("{") for line in lines if line), False)
