"""Models that a collection takes, and what tells them apart."""

from __future__ import annotations

import hashlib
from pathlib import Path

from snuh.errors import InputError
from snuh.model import Model
from snuh.storage import ENCODER_FILE, VOCABULARY_FILE, dump_json, sha256

FINGERPRINT_LENGTH = 16


def check_takes_texts(model: Model) -> None:
    """Raise InputError for a model that cannot encode documents."""
    if model.features is None:
        raise InputError("a collection needs a model of texts, this one was trained on a matrix of features")


def fingerprint_of(model: Model, folder: Path) -> str:
    """Return what is equal for models that make equal codes; the model is saved in the folder."""
    digest = hashlib.sha256(dump_json(model.encoder.meta()).encode())
    for name in (ENCODER_FILE, VOCABULARY_FILE):
        digest.update(sha256(folder / name).encode())
    return digest.hexdigest()[:FINGERPRINT_LENGTH]


def is_fingerprint(text: str) -> bool:
    """Tell whether a text can be a fingerprint."""
    return len(text) == FINGERPRINT_LENGTH and set(text) <= set("0123456789abcdef")
