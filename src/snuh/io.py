"""Files that are either whole or not there: JSON, arrays, checksums, and writing beside before renaming."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError

# The names are fixed here and never read from a file, so a model folder cannot point outside itself.
MODEL_FORMAT = "snuh-model"
MANIFEST_FILE, ENCODER_FILE, VOCABULARY_FILE = "model.json", "encoder.safetensors", "vocabulary.json"
COLLECTION_FORMAT, COLLECTION_FILE = "snuh-collection", "collection.json"
DECODER_FILE = "decoder.safetensors"
MODEL_FILES = frozenset({MANIFEST_FILE, ENCODER_FILE, VOCABULARY_FILE, DECODER_FILE})


def write_json(path: Path, value: object, *, indent: int | None = None) -> None:
    """Write a value as JSON; NumPy numbers and arrays become plain ones, NaN and infinity become null."""
    path.write_text(dump_json(value, indent=indent) + "\n", encoding="utf-8")


def dump_json(value: object, *, indent: int | None = None) -> str:
    """Return a value as JSON text, the same text for the same value."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, indent=indent)


def read_json(path: Path) -> Any:
    """Read a JSON file; InputError where it cannot be read or is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not valid JSON: it is damaged, or some other file") from error


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays to a .safetensors file."""
    from safetensors.numpy import save

    # safetensors writes the memory as it lies, so a transposed view would come back scrambled. It would
    # also create the file readable for its owner alone; written by us it gets the user's usual mode.
    path.write_bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the named arrays of a .safetensors file; InputError where it cannot be read."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is not a valid .safetensors file: it is damaged, or some other file"
        ) from error


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic_write(path: Path | str) -> Iterator[Path]:
    """Give a path beside `path` to write to, and move it into place once the block ends without an error.

    The given path ends like the wanted one, for writers that look at the suffix.
    """
    target = Path(path).resolve()
    beside = target.with_name(f".{secrets.token_hex(4)}.{target.name}")
    with reporting_as_input_error(path):
        if target.exists() and not target.is_file():
            raise InputError(f"cannot write {path}: it exists and is not a file")
        target.parent.mkdir(parents=True, exist_ok=True)
        beside.touch()
        try:
            yield beside
            _flush_to_disk(beside)
            os.replace(beside, target)
        finally:
            beside.unlink(missing_ok=True)


def replace_folder(folder: Path | str, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new folder, then put it in the place of `folder`.

    Only a model folder, an empty one or none is replaced (InputError otherwise). A stop at any point leaves
    the old or the new folder whole: at `folder`, or at `previous(folder)`, where `whole_folder` finds it.
    """
    target = Path(folder).resolve()
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    with reporting_as_input_error(folder):
        check_replaceable(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        beside.mkdir()
        try:
            write(beside)
            for file in beside.iterdir():
                _flush_to_disk(file)
            _swap(beside, target)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def check_replaceable(folder: Path | str) -> None:
    """Raise InputError unless `folder` is absent, empty, or holds a snuh model and nothing else."""
    path = Path(folder)
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"cannot write a model to {folder}: it is a file, choose a folder")
    present = {entry.name for entry in path.iterdir()}
    if not present:
        return
    if not is_model(path):
        raise InputError(
            f"{folder} exists and is not a snuh model: choose another folder, or remove it first"
        )
    if foreign := sorted(present - MODEL_FILES):
        raise InputError(
            f"{folder} holds {foreign[0]!r} beside the model, which would be lost: move it first"
        )


def is_model(folder: Path) -> bool:
    """Tell whether a folder says that it is a snuh model; what it holds is not checked."""
    return _names_format(folder / MANIFEST_FILE, MODEL_FORMAT)


def is_collection_folder(folder: Path) -> bool:
    """Tell whether a folder says that it is a collection; what it holds is not checked."""
    return _names_format(folder / COLLECTION_FILE, COLLECTION_FORMAT)


def _names_format(path: Path, name: str) -> bool:
    try:
        manifest = read_json(path)
    except InputError:
        return False
    return isinstance(manifest, dict) and manifest.get("format") == name


def previous(folder: Path) -> Path:
    """Return where the old folder waits for the moment in which the new one takes its place."""
    return folder.with_name(f".{folder.name}.previous")


def whole_folder(folder: Path | str) -> Path:
    """Return `folder`, or its previous version where a replacement stopped halfway."""
    path = Path(folder)
    waiting = previous(path.resolve())
    return waiting if not path.exists() and waiting.is_dir() else path


def _swap(new: Path, target: Path) -> None:
    waiting = previous(target)
    if target.exists():
        shutil.rmtree(waiting, ignore_errors=True)  # left over where an earlier swap could not tidy up
        os.rename(target, waiting)
    # From here to the next line the whole folder is `waiting`.
    try:
        os.rename(new, target)
    except BaseException:
        if waiting.exists() and not target.exists():
            os.rename(waiting, target)
        raise
    shutil.rmtree(waiting, ignore_errors=True)


@contextmanager
def reporting_as_input_error(path: Path | str) -> Iterator[None]:
    """Say in one line that something could not be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def _flush_to_disk(path: Path) -> None:
    # Without this a power cut after the rename can leave a file with the right name and no content.
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _plain(value: object) -> object:
    # A NaN in a training summary must not cost the trained model, and JSON has no word for it.
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
