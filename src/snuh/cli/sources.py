"""Documents to read: a source of any kind, or a collection in the place of one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from snuh.addresses import is_remote, shown
from snuh.corpus import Document, MatrixSource, Progress, TextSource, open_source
from snuh.errors import InputError

DOCUMENTS_PER_REPORT = 256


class CollectionSource(TextSource):
    """The documents of a collection, in order of insertion."""

    def __init__(self, address: str) -> None:
        from snuh.collection import short_name

        self.name = short_name(address)
        self._address = address

    def documents(self, progress: Progress | None = None) -> Iterator[Document]:
        """Yield the documents; the collection is open only meanwhile."""
        from snuh.collection import Collection

        with Collection(self._address) as collection:
            total = len(collection)
            if not total:
                raise InputError(f'{collection.name}: there are no documents in it: add some with "snuh add"')
            for count, document in enumerate(collection.documents()):
                if progress is not None and count % DOCUMENTS_PER_REPORT == 0:
                    progress(min(1.0, count / total))
                yield document
        if progress is not None:
            progress(1.0)


class LimitedSource(TextSource):
    """The documents of another source, refused where a text is too long for a collection."""

    def __init__(self, source: TextSource, *, max_characters: int) -> None:
        self.name = source.name
        self._source = source
        self._limit = max_characters

    def documents(self, progress: Progress | None = None) -> Iterator[Document]:
        """Yield the documents up to the first that is too long."""
        from snuh.collection.incoming import checked_documents

        yield from checked_documents(self._source.documents(progress), self._limit)


def open_documents(spec: str, *, text_field: str = "text", id_field: str = "id") -> TextSource | MatrixSource:
    """Open a source, or a collection."""
    if not holds_collection(spec):
        return open_source(spec, text_field=text_field, id_field=id_field)
    for option, name, usual in (("--text-field", text_field, "text"), ("--id-field", id_field, "id")):
        if name != usual:
            raise InputError(f"{shown(spec)} is a collection, which knows its own fields: leave {option} out")
    return CollectionSource(spec)


def open_texts(spec: str, *, text_field: str = "text", id_field: str = "id") -> TextSource:
    """Open a source of texts, or a collection."""
    source = open_documents(spec, text_field=text_field, id_field=id_field)
    if isinstance(source, MatrixSource):
        raise InputError(f"{source.name} holds feature rows: expected a source of texts")
    return source


def holds_collection(spec: str | Path) -> bool:
    """Tell whether a collection is at `spec`."""
    if is_remote(spec):
        return True  # whether it is there is seen when it is opened
    if not Path(spec).is_dir():
        return False
    from snuh.collection import is_collection

    return is_collection(spec)
