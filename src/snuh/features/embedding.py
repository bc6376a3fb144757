"""Embedding models from local folders (extra `embed`), and a cache of their vectors on disk."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from snuh.errors import InputError, import_extra
from snuh.features.vectors import Embed, Floats
from snuh.io import read_json, sha256

CACHE_VARIABLE = "SNUH_CACHE"
WEIGHTS = ("*.safetensors", "*.bin")
CONFIGS = ("*.json", "*.txt")  # settings, tokenizer and vocabulary


@dataclass(frozen=True, slots=True)
class FolderEmbedding:
    """An embedding model of a local folder: a callable from texts to vectors, with name and checksum."""

    name: str
    sha256: str  # of its files
    encode: Embed

    def __call__(self, texts: list[str]) -> Any:
        """Return the vectors (texts, dims)."""
        return self.encode(texts)


def load_embedding(folder: Path | str, *, cache: Path | None = None) -> FolderEmbedding:
    """Load a model2vec or sentence-transformers model from its folder; nothing is downloaded.

    With `cache`, the vectors of texts are stored in a file of that folder, and computed only once.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"there is no folder {folder}: expected that of an embedding model")
    weights = [file for pattern in WEIGHTS for file in path.rglob(pattern)]
    if not weights:
        raise InputError(f"{folder} is not the folder of an embedding model: it has no .safetensors file")
    digest = _checksum(path)
    encode = _load_encode(path)
    if cache is not None:
        encode = VectorCache(cache / f"vectors-{digest[:16]}.sqlite", encode)
    return FolderEmbedding(path.resolve().name, digest, encode)


def cache_folder() -> Path:
    """Return the folder of caches: SNUH_CACHE, or snuh in the user's cache folder."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "snuh"


def _checksum(path: Path) -> str:
    """Return one checksum of weights, settings and vocabulary; the same in another folder."""
    files = sorted({file for pattern in (*WEIGHTS, *CONFIGS) for file in path.rglob(pattern)})
    lines = (f"{file.relative_to(path).as_posix()} {sha256(file)}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _load_encode(path: Path) -> Embed:
    config = read_json(path / "config.json") if (path / "config.json").is_file() else {}
    if isinstance(config, dict) and config.get("model_type") == "model2vec":
        static = import_extra("model2vec").StaticModel.from_pretrained(path)
        return lambda texts: static.encode(texts)
    if not (path / "modules.json").is_file():
        raise InputError(
            f"{path} is neither a model2vec nor a sentence-transformers model: it has no modules.json"
        )
    model = import_extra("sentence_transformers").SentenceTransformer(str(path), local_files_only=True)
    return lambda texts: model.encode(texts, show_progress_bar=False)


class VectorCache:
    """Computes the vectors of texts once: each batch is on disk before the next, so that work can be resumed.

    Several processes may use the same file.
    """

    def __init__(self, path: Path, encode: Callable[[list[str]], Any]) -> None:
        """Store the vectors that `encode` makes in the file `path`."""
        self.path, self._encode = path, encode

    def __call__(self, texts: list[str]) -> Floats:
        """Return the vectors (texts, dims)."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=60.0)) as connection:
                return self._read_or_encode(connection, texts)
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"{self.path}: cannot be used as a cache of vectors ({error}): remove it, or set "
                f"{CACHE_VARIABLE} to another folder"
            ) from None

    def _read_or_encode(self, connection: sqlite3.Connection, texts: list[str]) -> Floats:
        connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)")
        keys = [hashlib.sha256(text.encode(errors="surrogatepass")).digest()[:16] for text in texts]
        marks = ",".join("?" * len(keys))
        found = dict(
            connection.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", keys).fetchall()
        )
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            made = np.asarray(self._encode(list(missing.values())), dtype=np.float32)
            new = {key: vector.tobytes() for key, vector in zip(missing, made, strict=True)}
            with connection:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", new.items())
            found |= new
        return np.array([np.frombuffer(found[key], dtype=np.float32) for key in keys])
