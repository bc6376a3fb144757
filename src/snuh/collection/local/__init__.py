"""Collections in a folder: documents in SQLite, codes in a file that searches scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from snuh.collection import backend
from snuh.collection.backend import NewDocument, Put
from snuh.collection.local import folder
from snuh.collection.local.backend import LocalBackend
from snuh.collection.local.store import Store
from snuh.collection.results import Added
from snuh.model import Model


def open_backend(address: str, *, timeout: float) -> backend.Backend:
    """Open the folder of a collection."""
    folder.check_collection(Path(address))
    return LocalBackend(Path(address), timeout=timeout)


@contextmanager
def creating(address: str, model: Model) -> Iterator[Put]:
    """Make a collection; the folder must be absent or empty."""
    with folder.making_folder(Path(address), model) as place, closing(Store(place)) as store:

        def put(new: Sequence[NewDocument]) -> Added:
            with store.writing() as write:
                return write.put(new)

        yield put


def check_free(address: str) -> None:
    """Raise InputError unless a collection can be made in a folder: absent, or empty."""
    folder.check_free(Path(address))


def is_collection(address: str) -> bool:
    """Tell whether a folder says that it is a collection."""
    return folder.is_collection(Path(address))


def short_name(address: str) -> str:
    """Return the name of the folder."""
    return Path(address).resolve().name
