"""A source whose every reading is reported, also by readers that ask for no report."""

from __future__ import annotations

from collections.abc import Iterator

from snuh.corpus.document import Document, Progress, TextSource


class WatchedSource(TextSource):
    """The documents of another source; how far each reading is goes to a callback of its own, in order."""

    def __init__(self, source: TextSource, *readings: Progress) -> None:
        """Report the first reading to the first callback, and so on; there may be more readings."""
        self.name = source.name
        self._source = source
        self._readings = iter(readings)

    def documents(self, progress: Progress | None = None) -> Iterator[Document]:
        """Yield the documents of the other source."""
        yield from self._source.documents(next(self._readings, progress))
