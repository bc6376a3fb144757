"""Models inside collections: fingerprints, and model folders as bytes for storage in a database."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from snuh.errors import InputError, ModelError
from snuh.io import ENCODER_FILE, MODEL_FILES, VOCABULARY_FILE, dump_json, sha256
from snuh.model import Model, load

FINGERPRINT_LENGTH = 16  # hexadecimal digits


def check_takes_texts(model: Model) -> None:
    """Raise InputError unless a model encodes texts."""
    if model.features is None:
        raise InputError("a collection needs a model of texts, this one was trained on a matrix of features")


def fingerprint_of(model: Model, folder: Path) -> str:
    """Return the fingerprint of a model saved in a folder: equal for models that make equal codes."""
    digest = hashlib.sha256(dump_json(model.encoder.meta()).encode())
    for name in (ENCODER_FILE, VOCABULARY_FILE):
        digest.update(sha256(folder / name).encode())
    return digest.hexdigest()[:FINGERPRINT_LENGTH]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of a model folder."""

    fingerprint: str
    content: dict[str, bytes]  # by name


def files_of(model: Model) -> ModelFiles:
    """Return the files of a model's folder."""
    with tempfile.TemporaryDirectory(prefix="snuh-model-") as temporary:
        folder = Path(temporary) / "model"
        model.save(folder)
        content = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
        return ModelFiles(fingerprint_of(model, folder), content)


def model_of(content: Mapping[str, bytes], *, where: str) -> Model:
    """Load a model from its files; ModelError, naming the collection `where`, if they are damaged."""
    with tempfile.TemporaryDirectory(prefix="snuh-model-") as temporary:
        folder = Path(temporary) / "model"
        folder.mkdir()
        for name in MODEL_FILES & content.keys():
            (folder / name).write_bytes(content[name])
        try:
            model = load(folder)
            model.word_embedding()  # loaded lazily: read it while the files exist
        except ModelError as error:
            reason = str(error).replace(f"{folder}/", "").replace(str(folder), "the model")
            raise ModelError(f"{where} has lost its model: restore it from a copy ({reason})") from error
    return model
