"""A folder of text files: one document a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from snuh.corpus.document import JSON, Document, Progress, TextSource
from snuh.corpus.lines import BOM, not_utf8
from snuh.errors import InputError

SUFFIXES = (".txt", ".md", ".rst")
DOCUMENTS_PER_REPORT = 256


class FolderSource(TextSource):
    """The text files below a folder, in the order of their paths; hidden files and folders are left out.

    A document's id is the path inside the folder; the first sub-folder on it is the metadata "folder".
    """

    def __init__(self, folder: Path, *, name: str | None = None) -> None:
        """Read the text files below `folder`."""
        self.name = name or folder.resolve().name
        self._folder = folder

    def documents(self, progress: Progress | None = None) -> Iterator[Document]:
        """Yield one document a file."""
        identities = sorted(_text_files(self._folder))
        if not identities:
            kinds = ", ".join(SUFFIXES)
            raise InputError(f"{self._folder}: there are no text files in this folder (looked for {kinds})")
        for count, identity in enumerate(identities):
            if progress is not None and count % DOCUMENTS_PER_REPORT == 0:
                progress(count / len(identities))
            yield self._document(identity)
        if progress is not None:
            progress(1.0)

    def _document(self, identity: str) -> Document:
        try:
            data = (self._folder / identity).read_bytes()
        except OSError as error:
            raise InputError(f"cannot read {identity}: {error.strerror}") from None
        top, _, rest = identity.partition("/")
        metadata: dict[str, JSON] = {"folder": top} if rest else {}
        return Document(identity, _text(data, identity), metadata=metadata)


def _text(data: bytes, identity: str) -> str:
    data = data.removeprefix(BOM)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise not_utf8(error, f"{identity} line {number}") from None


def _text_files(folder: Path) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.startswith(".") or not name.lower().endswith(SUFFIXES):
                continue
            yield _check_name((Path(parent) / name).relative_to(folder).as_posix())


def _check_name(identity: str) -> str:
    try:
        identity.encode()
    except UnicodeEncodeError:
        raise InputError(f"the file name {identity!a} is not valid UTF-8: rename the file") from None
    return identity
