"""The model of a collection, kept among its rows in pieces."""

from __future__ import annotations

import base64
import json

from snuh.collection.milvus.entities import FACT, MODEL_KEY, Row, pieces_of
from snuh.collection.milvus.rows import Rows
from snuh.collection.model_files import ModelFiles, model_of
from snuh.errors import ModelError
from snuh.model import Model


def write_model(rows: Rows, files: ModelFiles) -> None:
    """Write the files of a model, and last the list of them."""
    counts: dict[str, int] = {}
    for name, content in files.content.items():
        pieces = list(pieces_of(f"{MODEL_KEY}/{name}", base64.b64encode(content).decode(), write=0))
        rows.write(pieces)
        counts[name] = len(pieces)
    rows.write([Row(MODEL_KEY, FACT, json.dumps(counts), 0)])


def read_model(rows: Rows) -> Model:
    """Read the model; ModelError where it is lost or damaged."""
    shown = rows.connection.site.shown
    listed = rows.by_keys([MODEL_KEY], ["text"])
    try:
        counts = json.loads(listed[MODEL_KEY]["text"])
        keys = {
            name: [f"{MODEL_KEY}/{name}/{number}" for number in range(count)]
            for name, count in counts.items()
        }
        texts = rows.texts([key for some in keys.values() for key in some])
        content = {name: base64.b64decode("".join(texts[key] for key in some)) for name, some in keys.items()}
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise ModelError(f"{shown} has lost its model: restore it from a copy ({error})") from error
    return model_of(content, where=shown)
