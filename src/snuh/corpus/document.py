"""Documents, the interface of their sources, the conversion of records to documents, and their fields."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from snuh.errors import InputError, suggest
from snuh.text import quote

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
FractionCallback: TypeAlias = Callable[[float], None]

SPLITS = ("train", "val", "test")


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its id; labels are used for evaluation only."""

    id: str
    text: str
    labels: tuple[str, ...] = ()
    split: str | None = None
    metadata: Mapping[str, JSON] = field(default_factory=dict)
    vector: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)
    """For models that read vectors beside the words; of any length, and not stored in collections."""


class TextSource(ABC):
    """An iterable of documents that can be read repeatedly."""

    name: str

    @abstractmethod
    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        """Yield the documents in a fixed order, reporting the fraction (0 to 1) of the source read so far."""

    def __iter__(self) -> Iterator[Document]:
        """Yield the documents without reporting progress."""
        return self.documents()


MAX_LISTED = 20
MAX_DEPTH = 32  # levels of lists and objects within a metadata field

# Names of the three splits in other tools.
SPLIT_NAMES = {
    **{name: name for name in SPLITS},
    "training": "train",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "cv": "val",
}


class RecordError(InputError):
    """An invalid record; the reader adds the line number."""


class MissingFieldError(RecordError):
    """A record without the text or id field."""


@dataclass(frozen=True, slots=True)
class FieldNames:
    """The names of the fields of a source that have a meaning; those given by the user must exist."""

    text: str = "text"
    id: str = "id"
    labels: str = "labels"
    split: str = "split"
    vectors: str | None = None  # None: documents have no vectors; in the field, null is a missing one
    optional_vectors: bool = False  # whether the field of vectors may be absent
    given: dict[str, str] = field(init=False, repr=False)  # those that are not the default, by role

    def __post_init__(self) -> None:
        names = {"text": self.text, "id": self.id, "labels": self.labels, "split": self.split}
        given = {role: name for role, name in names.items() if name != role}
        if self.vectors is not None and not self.optional_vectors:
            given["vectors"] = self.vectors
        object.__setattr__(self, "given", given)

    def check_unused(self, source: str) -> None:
        """Raise InputError if a field name was given for a source without fields."""
        for role, name in self.given.items():
            raise InputError(
                f"{source} has no fields, so none is called {quote(name)}: leave {_option(role)} out"
            )


def to_document(fields: dict[str, Any], number: int, names: FieldNames) -> Document:
    """Convert a record to a document, consuming its fields; `number` is the default id."""
    if names.text not in fields:
        raise _missing("text", names.text, fields)
    # The other fields may be absent only under their default names.
    for role, name in names.given.items():
        if name not in fields:
            raise _missing(role, name, fields)
    text = fields.pop(names.text)
    if type(text) is not str:
        raise RecordError(f'"{names.text}" must be a string, got {describe(text)}')
    doc_id = fields.pop(names.id, None)
    if type(doc_id) is not str or not doc_id:
        doc_id = _id_of(doc_id, number, names.id)
    labels = fields.pop(
        "label" if names.labels == "labels" and "labels" not in fields else names.labels, None
    )
    split = fields.pop(names.split, None)
    vector = None
    if names.vectors is not None and (value := fields.pop(names.vectors, None)) is not None:
        vector = _vector_of(value, names.vectors)
    return Document(
        doc_id,
        text,
        _labels_of(labels) if labels is not None else (),
        _split_of(split) if split is not None else None,
        check_metadata(_flatten(fields)) if fields else fields,
        vector,
    )


def _flatten(fields: dict[str, Any]) -> dict[str, Any]:
    """Return all fields of an object "metadata", as responses of the API have it, with the other fields."""
    if not isinstance(fields.get("metadata"), dict):
        return fields
    nested = fields.pop("metadata")
    if both := sorted(str(name) for name in fields.keys() & nested.keys()):
        raise RecordError(f'the field {quote(both[0])} is given twice, inside and outside of "metadata"')
    return {**fields, **nested}


def updated_record(document: Document, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document as a record with some fields changed; None removes a field."""
    new = _flatten(dict(changes))
    if new.pop("id", document.id) != document.id:
        raise InputError(f"the id of {quote(document.id)} cannot be changed: add another document")
    if "text" in new and new["text"] is None:
        raise InputError(f"the text of {quote(document.id)} cannot be removed: delete the document")
    fields = {"text": document.text, "labels": list(document.labels), "split": document.split}
    own = {name: new.pop(name) for name in fields if name in new}
    kept = {name: value for name, value in document.metadata.items() if name not in new}
    added = {name: value for name, value in new.items() if value is not None}
    return {"id": document.id, **fields, **own, "metadata": {**kept, **added}}


def to_fields(metadata: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return metadata as fields of a record, from which `to_document` restores it."""
    return {"metadata": dict(metadata)} if isinstance(metadata.get("metadata"), Mapping) else dict(metadata)


def check_metadata(metadata: Mapping[str, Any], *, nan: bool = True) -> dict[str, JSON]:
    """Return metadata as JSON; RecordError for values that JSON cannot hold.

    NaN becomes null, or is refused if `nan` is false.
    """
    _check_keys(metadata)
    return {name: _check_value(value, name, MAX_DEPTH, nan=nan) for name, value in metadata.items()}


def _check_value(value: Any, field: str, depth: int, *, nan: bool) -> JSON:
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        if math.isinf(value) or (math.isnan(value) and not nan):
            problem = "NaN" if math.isnan(value) else "a number that is too large"
            raise RecordError(f"the field {quote(field)} has {problem}, which JSON cannot hold")
        return None if math.isnan(value) else value
    if not depth:
        raise RecordError(f"the field {quote(field)} is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, list | tuple):
        return [_check_value(item, field, depth - 1, nan=nan) for item in value]
    if isinstance(value, Mapping):
        _check_keys(value)
        return {key: _check_value(item, field, depth - 1, nan=nan) for key, item in value.items()}
    raise RecordError(f"the field {quote(field)} must be JSON, got {describe(value)}")


def _check_keys(fields: Mapping[Any, Any]) -> None:
    for key in fields:
        if not isinstance(key, str):
            raise RecordError(f"names of fields must be strings, got {key!r}")


def describe(value: object) -> str:
    """Return the JSON type of a value in plain words."""
    types = {bool: "true or false", int: "a number", float: "a number", str: "a string", list: "a list"}
    if value is None:
        return "null"
    return "an object" if isinstance(value, dict) else types.get(type(value), type(value).__name__)


def _missing(role: str, name: str, fields: Iterable[str]) -> MissingFieldError:
    names = list(fields)
    listed = ", ".join(quote(field) for field in names[:MAX_LISTED]) or "none"
    return MissingFieldError(
        f"there is no field {quote(name)}{suggest(name, names)}; fields here: {listed}; "
        f"name the one that holds the {role} with {_option(role)}"
    )


def _option(role: str) -> str:
    return "--vectors" if role == "vectors" else f"--{role}-field"


def _vector_of(value: object, field: str) -> NDArray[np.float32]:
    import numpy as np

    try:
        vector = np.asarray(value)
    except ValueError:  # lists of several lengths
        vector = np.empty((0, 0))
    if vector.ndim != 1 or not len(vector) or vector.dtype.kind not in "fiu":
        got = "one with something else in it" if isinstance(value, list) else describe(value)
        raise RecordError(f"{quote(field)} must be a list of numbers, got {got}")
    return vector.astype(np.float32)


def _id_of(value: object, number: int, field: str) -> str:
    if value is None or value == "":
        return str(number)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RecordError(f'"{field}" must be a string or a number, got {describe(value)}')
    if isinstance(value, float) and not math.isfinite(value):
        raise RecordError(f'"{field}" must be a string or a number, got {value}')
    return _number_name(value)


def _number_name(value: int | float) -> str:
    # Tables with missing values often turn integers into floats: 7.0 means 7.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _labels_of(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    names = dict.fromkeys([_label_name(item) for item in items if item is not None])
    names.pop("", None)
    return tuple(names)


def _label_name(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return _number_name(value)
    raise RecordError(f"labels must be strings or numbers, or a list of them, got {describe(value)}")


def _split_of(value: object) -> str | None:
    if not isinstance(value, str):
        raise RecordError(f"split must be train, val or test, got {describe(value)}")
    if not value:
        return None
    split = SPLIT_NAMES.get(value) or SPLIT_NAMES.get(value.strip().lower())
    if split is None:
        raise RecordError(f"split must be train, val or test, got {quote(value)}")
    return split
