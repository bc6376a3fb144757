"""Documents from a file of records, whatever the format: what all readers share."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from snuh.corpus.document import Document, Progress, TextSource
from snuh.corpus.lines import Meter
from snuh.corpus.record import FieldNames, MissingFieldError, RecordError, quote, to_document
from snuh.corpus.seen import SeenIds
from snuh.errors import InputError

# (line for messages, number for documents without id, fields); Any: whatever the file holds.
Record: TypeAlias = tuple[int, int, dict[str, Any]]
Records: TypeAlias = Generator[Record, None, None]
Reader: TypeAlias = Callable[[Path, Meter], Records]

DOCUMENTS_PER_REPORT = 256


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file: how to read its records, what a place in it is called, a hint on its fields."""

    read: Reader
    place: str = "line"
    hint: str = ""


class RecordSource(TextSource):
    """The documents of one file."""

    def __init__(
        self, path: Path, form: Format, *, name: str | None = None, fields: FieldNames | None = None
    ) -> None:
        """Read `path` by `form`, with text and id in the named fields."""
        self.name = name or path.name
        self._path = path
        self._format = form
        self._fields = fields or FieldNames()

    def documents(self, progress: Progress | None = None) -> Iterator[Document]:
        """Yield the documents in the order of the file; ids are checked to be unique on the way."""
        meter = Meter()
        seen = SeenIds()
        count = 0
        for _, document in self._read(meter):
            if repeated := seen.add(document.id):
                self._refuse(repeated)
            if progress is not None and count % DOCUMENTS_PER_REPORT == 0:
                progress(meter.fraction())
            count += 1
            yield document
        if repeated := seen.check():
            self._refuse(repeated)
        if not count:
            raise InputError(f"{self._path.name}: there are no documents in it")
        if progress is not None:
            progress(1.0)

    def _read(self, meter: Meter) -> Iterator[tuple[int, Document]]:
        # Closing at once, not when collected, frees the file even if the consumer stops early.
        with closing(self._format.read(self._path, meter)) as records:
            for line, number, fields in records:
                try:
                    document = to_document(fields, number, self._fields)
                except RecordError as error:
                    hint = self._format.hint if isinstance(error, MissingFieldError) else ""
                    place = f"{self._path.name} {self._format.place} {line}"
                    raise InputError(f"{place}: {error}{hint}") from None
                yield line, document

    def _refuse(self, repeated: frozenset[int]) -> None:
        # Read again: names both lines, and lets two different ids of the same hash pass.
        first: dict[str, int] = {}
        for line, document in self._read(Meter()):
            if hash(document.id) not in repeated:
                continue
            if document.id in first:
                place = self._format.place
                raise InputError(
                    f"{self._path.name} {place} {line}: the id {quote(document.id)} is already used "
                    f"on {place} {first[document.id]}: ids must be unique"
                )
            first[document.id] = line
