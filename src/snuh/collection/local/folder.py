"""The folder of a collection: what is in it, making one, and the models it keeps."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from snuh.collection.local.store import STORE_FILE, Store
from snuh.collection.model_files import check_takes_texts, fingerprint_of, is_fingerprint
from snuh.errors import CollectionError, InputError, ModelError
from snuh.io import (
    COLLECTION_FILE,
    COLLECTION_FORMAT,
    atomic_write,
    is_collection_folder,
    read_json,
    reporting_as_input_error,
    write_json,
)
from snuh.model import Model, load

MODELS_FOLDER = "models"
VERSION = 1


def check_collection(folder: Path) -> None:
    """Raise an error that helps where `folder` is no collection that this version reads."""
    if not _exists(folder):
        raise InputError(
            f'there is no collection {folder}: make one with "snuh create {folder} --from SOURCE"'
        )
    if not is_collection_folder(folder):
        raise InputError(
            f'{folder} is not a collection: expected a folder made by "snuh create", '
            f"and found no {COLLECTION_FILE} in it"
        )
    version = read_json(folder / COLLECTION_FILE).get("format_version")
    if version != VERSION:
        raise CollectionError(f"{folder} has format {version}, this snuh reads {VERSION}: update snuh")


def ensure_folder_absent(folder: Path) -> None:
    """Raise InputError unless a collection can be made at `folder`: absent, or empty."""
    if is_collection_folder(folder):
        raise InputError(
            f'{folder} is a collection already: add to it with "snuh add", or choose another folder'
        )
    if _exists(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and is not empty: choose another folder")


def _exists(folder: Path) -> bool:
    try:
        return folder.exists()
    except OSError as error:  # a name too long, or a folder on the way that may not be looked into
        raise InputError(f"cannot read {str(folder)[:100]}: {error.strerror or error}") from error


@contextmanager
def making_folder(folder: Path, model: Model) -> Iterator[Path]:
    """Make an empty collection, and give it to be filled: its manifest, which makes it one, comes last.

    Where there is no folder yet, it is made beside its place and moved there.
    """
    ensure_folder_absent(folder)
    check_takes_texts(model)
    target = folder.resolve()
    with reporting_as_input_error(folder):
        if target.exists():  # a prepared folder, perhaps a mounted one, stays the folder that it is
            try:
                with _filling(target, model):
                    yield target
            except BaseException:
                _empty(target)
                raise
            return
        beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        target.parent.mkdir(parents=True, exist_ok=True)
        beside.mkdir()
        try:
            with _filling(beside, model):
                yield beside
            os.rename(beside, target)
            _flush_folder(target.parent)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _filling(folder: Path, model: Model) -> Iterator[None]:
    fingerprint = keep_model(folder, model)
    Store.create(folder, model=fingerprint, bits=model.bits)
    yield
    with atomic_write(folder / COLLECTION_FILE) as manifest:
        write_json(manifest, {"format": COLLECTION_FORMAT, "format_version": VERSION}, indent=2)
    _flush_folder(folder)


def _empty(folder: Path) -> None:
    shutil.rmtree(folder / MODELS_FOLDER, ignore_errors=True)
    for name in (STORE_FILE, f"{STORE_FILE}-wal", f"{STORE_FILE}-shm", COLLECTION_FILE):
        (folder / name).unlink(missing_ok=True)


def keep_model(folder: Path, model: Model) -> str:
    """Save a model into the collection; return its fingerprint, equal for models that make equal codes."""
    models = folder / MODELS_FOLDER
    models.mkdir(exist_ok=True)
    beside = models / f".{secrets.token_hex(4)}"
    try:
        model.save(beside)
        _flush_folder(beside)
        fingerprint = fingerprint_of(model, beside)
        if not _is_whole(models / fingerprint):
            shutil.rmtree(models / fingerprint, ignore_errors=True)  # left by a removal that was stopped
            os.rename(beside, models / fingerprint)
            _flush_folder(models)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return fingerprint


def _is_whole(folder: Path) -> bool:
    try:
        load(folder)
    except ModelError:
        return False
    return True


def load_model(folder: Path, fingerprint: str) -> Model:
    """Load a model that the collection keeps."""
    if not is_fingerprint(fingerprint):
        raise CollectionError(f"{folder}: its store is damaged: restore the folder from a copy")
    try:
        return load(folder / MODELS_FOLDER / fingerprint)
    except ModelError as error:
        raise ModelError(f"{folder} has lost its model: restore the folder from a copy ({error})") from error


def drop_other_models(folder: Path, fingerprints: set[str]) -> None:
    """Remove the models that the collection no longer uses."""
    for entry in (folder / MODELS_FOLDER).iterdir():
        if entry.name not in fingerprints:
            shutil.rmtree(entry, ignore_errors=True)


def _flush_folder(folder: Path) -> None:
    """Let the names in a folder survive a power cut, as their files do; Windows has no way to ask for it."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
