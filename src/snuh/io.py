"""Files and folders: JSON, arrays, checksums, atomic replacement; and locations of collections.

A location is a folder or the URL of a database server, whose secrets `redact` hides.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK_SECONDS = 1.0  # a temporary file is locked right after it is created

# File names are fixed here and never read from a manifest, so a model folder cannot point outside itself.
MODEL_FORMAT = "snuh-model"
MANIFEST_FILE, ENCODER_FILE, VOCABULARY_FILE = "model.json", "encoder.safetensors", "vocabulary.json"
COLLECTION_FORMAT, COLLECTION_FILE = "snuh-collection", "collection.json"
DECODER_FILE = "decoder.safetensors"
MODEL_FILES = frozenset({MANIFEST_FILE, ENCODER_FILE, VOCABULARY_FILE, DECODER_FILE})


def write_json(path: Path, value: object, *, indent: int | None = None) -> None:
    """Write a value as JSON; NumPy values become plain ones, NaN and infinity become null."""
    path.write_text(dump_json(value, indent=indent) + "\n", encoding="utf-8")


def dump_json(value: object, *, indent: int | None = None) -> str:
    """Return a value as JSON text; equal values give equal text."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, indent=indent)


def read_json(path: Path) -> Any:
    """Read a JSON file; InputError if it cannot be read or is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not valid JSON: it is damaged or a file of another kind") from error


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays to a .safetensors file."""
    from safetensors.numpy import save

    # safetensors writes raw memory, so a transposed view would be read back scrambled. Its own save_file
    # would make the file readable for its owner only.
    path.write_bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Read the named arrays of a .safetensors file; InputError if it cannot be read."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is not a valid .safetensors file: it is damaged or a file of another kind"
        ) from error


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomic_write(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path in the same folder, and rename it to `path` if the block ends without an error.

    The temporary path has the same suffix, for writers that depend on it.
    """
    target = resolve(path)
    temporary = target.with_name(f".{secrets.token_hex(4)}.{target.name}")
    with reporting_as_input_error(path):
        if target.exists() and not target.is_file():
            raise InputError(f"cannot write {path}: it exists and is not a file")
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target)
        temporary.touch()
        with locked(temporary):
            try:
                yield temporary
                _flush_to_disk(temporary)
                os.replace(temporary, target)
            finally:
                temporary.unlink(missing_ok=True)


def resolve(path: Path | str) -> Path:
    """Return the absolute path without links; InputError for a loop of links."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: Python up to 3.12
        raise InputError(f"cannot use {path}: it is a loop of symbolic links") from error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a temporary file or folder of this process, so that others do not take it for a leftover.

    The system releases the lock when the process ends, however it ends. Not possible on Windows.
    """
    if fcntl is None:
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Tell whether a live process has locked a file or folder."""
    if fcntl is None:
        return True
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def remove_leftovers(target: Path) -> None:
    """Remove temporary files and folders that killed processes have left next to a target."""
    for entry in _temporaries(target):
        if time.time() - _changed(entry) > LOCK_SECONDS and not is_locked(entry):
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def _temporaries(target: Path) -> list[Path]:
    """Return the temporary files and folders of any process next to a target."""
    name = re.escape(target.name)
    pattern = re.compile(rf"\.[0-9a-f]{{8}}\.{name}|\.{name}\.[0-9a-f]{{8}}")
    return [entry for entry in target.parent.iterdir() if pattern.fullmatch(entry.name)]


def _changed(path: Path) -> float:
    try:
        return path.stat().st_ctime
    except OSError:
        return math.inf


def replace_folder(folder: Path | str, write: Callable[[Path], None]) -> None:
    """Let `write` fill a new folder, then replace `folder` by it.

    Only a model folder or an empty one is replaced (InputError otherwise). A crash at any point leaves the
    old or the new folder complete: at `folder`, or at `previous(folder)`, where `complete_folder` finds it.
    """
    target = resolve(folder)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    with reporting_as_input_error(folder):
        check_replaceable(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        if (complete := complete_folder(target)) != target:
            os.rename(complete, target)
        remove_leftovers(target)
        temporary.mkdir()
        with locked(temporary):
            try:
                write(temporary)
                for file in temporary.iterdir():
                    _flush_to_disk(file)
                _swap(temporary, target)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)


def check_replaceable(folder: Path | str) -> None:
    """Raise InputError unless `folder` is absent, empty, or contains a snuh model and nothing else."""
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
            f"{folder} contains {foreign[0]!r} besides the model, which would be lost: move it first"
        )


def is_model(folder: Path) -> bool:
    """Tell whether the manifest of a folder declares a snuh model; its files are not checked."""
    return _declares_format(folder / MANIFEST_FILE, MODEL_FORMAT)


def is_collection_folder(folder: Path) -> bool:
    """Tell whether the manifest of a folder declares a collection; its files are not checked."""
    return _declares_format(folder / COLLECTION_FILE, COLLECTION_FORMAT)


def _declares_format(path: Path, name: str) -> bool:
    try:
        manifest = read_json(path)
    except InputError:
        return False
    return isinstance(manifest, dict) and manifest.get("format") == name


def previous(folder: Path) -> Path:
    """Return the path to which the old folder is moved during a replacement."""
    return folder.with_name(f".{folder.name}.previous")


def complete_folder(folder: Path | str) -> Path:
    """Return `folder`, or its previous version if a replacement was interrupted.

    The new version is then still there under its temporary name. A previous version alone was left by a
    process that was killed before it could remove it, and must not come back once the folder is removed.
    """
    path = Path(folder)
    target = resolve(path)
    backup = previous(target)
    is_interrupted = not path.exists() and backup.is_dir() and bool(_temporaries(target))
    return backup if is_interrupted else path


def _swap(new: Path, target: Path) -> None:
    backup = previous(target)
    if target.exists():
        shutil.rmtree(backup, ignore_errors=True)  # left over by an earlier swap
        os.rename(target, backup)
    # Until the next rename, the complete folder is `backup`.
    try:
        os.rename(new, target)
    except BaseException:
        if backup.exists() and not target.exists():
            os.rename(backup, target)
        raise
    shutil.rmtree(backup, ignore_errors=True)


@contextmanager
def reporting_as_input_error(path: Path | str) -> Iterator[None]:
    """Turn an OSError into an InputError that names the path."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def _flush_to_disk(path: Path) -> None:
    # Otherwise a power failure after the rename can leave an empty file.
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _plain(value: object) -> object:
    # JSON has no NaN, and a NaN in a training summary must not prevent saving the model.
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


# Locations of collections

Location: TypeAlias = Path | str

BACKEND_MODULES = {  # by URL scheme
    "postgresql": "snuh.collection.postgres",
    "postgres": "snuh.collection.postgres",
    "milvus": "snuh.collection.milvus",
}
SCHEME = re.compile(rf"({'|'.join(BACKEND_MODULES)})://", re.IGNORECASE)
# An allowlist: any other parameter may hold a secret, whatever future clients call it.
PUBLIC_PARAMETERS = (
    "application_name|collection|connect_timeout|dbname|host|hostaddr|port|sslmode"
    "|target_session_attrs|tls|user"
)
# A password may contain any character, so everything up to the last "@" is redacted.
PASSWORD = re.compile(r"(?<=://)[^/?#@:]*:(?P<secret>.*)(?=@[^@]*$)", re.DOTALL)
PARAMETER = re.compile(rf"[?&](?!(?:{PUBLIC_PARAMETERS})=)(?:[^=&?]*=)?(?P<secret>[^&]+)")


def is_remote(location: Location) -> bool:
    """Tell whether a location is the URL of a database server rather than a folder."""
    return isinstance(location, str) and SCHEME.match(location) is not None


def redact(location: Location) -> str:
    """Return a location with its secrets replaced by "***", for messages, logs and responses."""
    if not is_remote(location):
        return str(location)
    url = str(location)
    secrets = sorted(
        match.span("secret") for pattern in (PASSWORD, PARAMETER) for match in pattern.finditer(url)
    )
    parts, end = [], 0
    for start, stop in secrets:
        if start >= end:  # overlapping secrets are redacted once
            parts += [url[end:start], "***"]
        end = max(end, stop)
    return "".join([*parts, url[end:]])


def check_credentials(url: str) -> None:
    """Raise InputError if the user or password contains a character that must be percent-encoded.

    Otherwise a part of the password would be parsed as the host or path, and appear in messages.
    """
    authority, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    if authority.count("@") > 1 or "@" in path:
        raise InputError(
            f"{redact(url)}: expected one @, before the host: in a user or password write %40 for @, "
            "%2F for / and %3A for :"
        )
