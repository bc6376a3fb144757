"""A model as bytes, for collections that keep it in a database; checked as a model folder is."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from snuh.collection.fingerprints import fingerprint_of
from snuh.errors import ModelError
from snuh.model import Model, load
from snuh.storage import MODEL_FILES


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of a model folder."""

    fingerprint: str
    content: dict[str, bytes]  # by name


def files_of(model: Model) -> ModelFiles:
    """Return the files that a model is saved as."""
    with tempfile.TemporaryDirectory(prefix="snuh-model-") as place:
        folder = Path(place) / "model"
        model.save(folder)
        content = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
        return ModelFiles(fingerprint_of(model, folder), content)


def model_of(content: Mapping[str, bytes], *, where: str) -> Model:
    """Return the model of these files; ModelError, naming `where`, if they are not as they were saved."""
    with tempfile.TemporaryDirectory(prefix="snuh-model-") as place:
        folder = Path(place) / "model"
        folder.mkdir()
        for name in MODEL_FILES & content.keys():
            (folder / name).write_bytes(content[name])
        try:
            model = load(folder)
            model.word_embedding()  # read while the files are there
        except ModelError as error:
            reason = str(error).replace(f"{folder}/", "").replace(str(folder), "the model")
            raise ModelError(f"{where} has lost its model: restore it from a copy ({reason})") from error
    return model
