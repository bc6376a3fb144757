"""The folder of a collection: its manifest, its creation and its models."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from snuh.collection.local.store import STORE_FILE, Store
from snuh.collection.model_files import FINGERPRINT_LENGTH, check_takes_texts, fingerprint_of
from snuh.errors import CollectionError, InputError, ModelError
from snuh.io import (
    COLLECTION_FILE,
    COLLECTION_FORMAT,
    atomic_write,
    is_collection_folder,
    is_locked,
    locked,
    read_json,
    remove_leftovers,
    reporting_as_input_error,
    resolve,
    write_json,
)
from snuh.model import Model, load

MODELS_FOLDER = "models"
MARKER_FILE = ".creating"  # while a collection is created in an existing folder
FORMAT_VERSION = 1
HAS_WORDS = "words"  # in the manifest: whether there is an index of words; absent for yes


def check_collection(folder: Path) -> dict[str, Any]:
    """Return the manifest of a collection.

    Raises InputError if `folder` is not a collection, CollectionError if its version is unsupported.
    """
    if not _exists(folder):
        raise InputError(
            f'there is no collection {folder}: create one with "snuh create {folder} --from SOURCE"'
        )
    if not is_collection_folder(folder):
        raise InputError(
            f'{folder} is not a collection: expected a folder made by "snuh create", '
            f"but it has no {COLLECTION_FILE}"
        )
    manifest: dict[str, Any] = read_json(folder / COLLECTION_FILE)
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise CollectionError(f"{folder} has format {version}, this snuh reads {FORMAT_VERSION}: update snuh")
    return manifest


def ensure_folder_absent(folder: Path) -> None:
    """Raise InputError unless `folder` is absent or empty."""
    if is_collection_folder(folder):
        raise InputError(
            f'{folder} is a collection already: add to it with "snuh add", or choose another folder'
        )
    if not _exists(folder):
        return
    if (folder / MARKER_FILE).exists():  # an interrupted creation, or one that is running
        if is_locked(folder / MARKER_FILE):
            raise InputError(f"another process is creating {folder}: wait for it, or choose another folder")
        return
    if not folder.is_dir() or any(folder.iterdir()):
        raise InputError(f"{folder} exists and is not empty: choose another folder")


def _exists(folder: Path) -> bool:
    try:
        folder.stat()
        return True
    except FileNotFoundError:
        return False
    except ValueError as error:  # a null character
        raise InputError(f"cannot read {str(folder)[:100]!r}: {error}") from error
    except OSError as error:  # the name is too long, a loop of links, or a parent folder is not readable
        raise InputError(f"cannot read {str(folder)[:100]}: {error.strerror or error}") from error


@contextmanager
def creating_folder(folder: Path, model: Model, *, words: bool) -> Iterator[Path]:
    """Create an empty collection and yield its folder to be filled; the manifest is written last.

    A folder that does not exist yet is created under a temporary name, then renamed.
    """
    ensure_folder_absent(folder)
    check_takes_texts(model)
    target = resolve(folder)
    with reporting_as_input_error(folder):
        if target.exists():  # it may be a mount point, so it is not replaced
            marker = target / MARKER_FILE
            marker.touch()
            with locked(marker):
                try:
                    _remove_files(target)  # of an interrupted creation
                    with _creating_files(target, model, words=words):
                        yield target
                except BaseException:
                    _remove_files(target)
                    raise
                finally:
                    marker.unlink(missing_ok=True)
            return
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target)
        temporary.mkdir()
        with locked(temporary):
            try:
                with _creating_files(temporary, model, words=words):
                    yield temporary
                os.rename(temporary, target)
                _flush_folder(target.parent)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _creating_files(folder: Path, model: Model, *, words: bool) -> Iterator[None]:
    fingerprint = save_model(folder, model)
    Store.create(folder, model=fingerprint, bits=model.bits)
    yield
    with atomic_write(folder / COLLECTION_FILE) as manifest:
        contents = {"format": COLLECTION_FORMAT, "format_version": FORMAT_VERSION, HAS_WORDS: words}
        write_json(manifest, contents, indent=2)
    _flush_folder(folder)


def _remove_files(folder: Path) -> None:
    shutil.rmtree(folder / MODELS_FOLDER, ignore_errors=True)
    for name in (STORE_FILE, f"{STORE_FILE}-wal", f"{STORE_FILE}-shm", COLLECTION_FILE):
        (folder / name).unlink(missing_ok=True)


def save_model(folder: Path, model: Model) -> str:
    """Save a model into the collection and return its fingerprint."""
    models = folder / MODELS_FOLDER
    models.mkdir(exist_ok=True)
    temporary = models / f".{secrets.token_hex(4)}"
    try:
        model.save(temporary)
        _flush_folder(temporary)
        fingerprint = fingerprint_of(model, temporary)
        if not _is_intact(models / fingerprint):
            shutil.rmtree(models / fingerprint, ignore_errors=True)  # a removal was interrupted
            os.rename(temporary, models / fingerprint)
            _flush_folder(models)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return fingerprint


def _is_intact(folder: Path) -> bool:
    try:
        load(folder)
    except ModelError:
        return False
    return True


def load_model(folder: Path, fingerprint: str) -> Model:
    """Load a model of the collection."""
    if not _is_fingerprint(fingerprint):
        raise CollectionError(f"{folder}: its store is damaged: restore the folder from a copy")
    try:
        return load(folder / MODELS_FOLDER / fingerprint)
    except ModelError as error:
        raise ModelError(f"{folder} has lost its model: restore the folder from a copy ({error})") from error


def drop_other_models(folder: Path, fingerprints: set[str]) -> None:
    """Remove all models but those with these fingerprints."""
    for entry in (folder / MODELS_FOLDER).iterdir():
        if entry.name not in fingerprints:
            shutil.rmtree(entry, ignore_errors=True)


def _flush_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk, so that they survive a power cut; not possible on Windows."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_fingerprint(text: str) -> bool:
    """Tell whether a text has the form of a fingerprint."""
    return len(text) == FINGERPRINT_LENGTH and set(text) <= set("0123456789abcdef")
