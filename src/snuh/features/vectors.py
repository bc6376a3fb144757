"""Words joined with vectors, such as sentence embeddings: checks, and joined rows.

A joined row is the TF-IDF row and the vector, both of unit length, multiplied by sqrt(1 - w) and sqrt(w). It
has unit length, and the cosine of two joined rows is (1 - w) times that of the words plus w times that of the
vectors. A document without a vector has the TF-IDF row alone, of unit length as well; a document without a
known word has the vector alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError, ModelError
from snuh.features.weighting import SparseRows, unit_rows
from snuh.text import quote

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Floats: TypeAlias = NDArray[np.float32]
Embed: TypeAlias = Callable[[list[str]], Any]  # texts to an array (texts, dims) of any library

VECTOR_WEIGHT = 0.5  # w of new models: both cosines count alike
EMBED_BATCH = 256  # texts in one call of an embedding model


def check_vectors(
    vectors: Any,
    *,
    documents: int,
    dims: int | None = None,
    ids: Sequence[str] | None = None,
    zeros: bool = False,
) -> Floats:
    """Return vectors (documents, dims) of unit length; InputError names the first invalid one, by its id.

    With `zeros`, vectors of zeros are missing ones, and stay as they are.
    """
    try:
        array = np.asarray(vectors)
    except ValueError as error:
        raise InputError(f"vectors must be an array of shape (documents, dims): {error}") from None
    if array.dtype.kind not in "fiu":
        raise InputError(f"vectors must be an array of numbers, got {array.dtype}")
    if array.ndim != 2 or len(array) != documents or not array.shape[1]:
        raise InputError(f"vectors must have the shape ({documents}, dims), got {array.shape}")
    if dims is not None and array.shape[1] != dims:
        raise _other_dims(dims, array.shape[1])
    norms = np.linalg.norm(array.astype(np.float64), axis=1, keepdims=True)
    valid = np.isfinite(norms[:, 0]) & (zeros | (norms[:, 0] > 0))
    if not valid.all():
        row = int(np.argmin(valid))
        which = f"row {row} (counted from 0)" if ids is None else quote(ids[row])
        problem = "is all zeros" if norms[row] == 0 else "has NaN or infinity"
        raise InputError(f"the vector of {which} {problem}: expected finite numbers, not all of them 0")
    unit: Floats = (array / np.where(norms > 0, norms, 1)).astype(np.float32)
    return unit


def complete_vectors(
    vectors: Sequence[Any],
    *,
    ids: Sequence[str],
    texts: Sequence[str] = (),
    embed: Embed | None = None,
    dims: int | None = None,
) -> Floats:
    """Return the vectors of documents as unit rows (documents, dims), zeros for those that have none.

    `embed` makes those that are None, of their texts. The first vector decides the dimension unless it is
    given.
    """
    missing = [row for row, vector in enumerate(vectors) if vector is None]
    given = [row for row, vector in enumerate(vectors) if vector is not None]
    made = None
    if embed is not None and missing:
        made = embed_texts(embed, [texts[row] for row in missing], dims=dims)
        dims = made.shape[1]
    dims = dims or (len(vectors[given[0]]) if given else 1)
    rows = np.zeros((len(vectors), dims), dtype=np.float32)
    if made is not None:
        rows[missing] = made
    if given:
        for row in given:
            if len(vectors[row]) != dims:
                raise InputError(f"document {quote(ids[row])}: {_other_dims(dims, len(vectors[row]))}")
        stacked = np.stack([np.asarray(vectors[row]) for row in given])
        rows[given] = check_vectors(stacked, documents=len(given), ids=[ids[row] for row in given])
    return rows


def _other_dims(expected: int, got: int) -> InputError:
    return InputError(f"expected vectors of {expected} dimensions, got {got}: use one embedding model")


def embed_texts(embed: Embed, texts: Sequence[str], *, dims: int | None = None) -> Floats:
    """Return the unit vectors (texts, dims) of texts, embedded in batches.

    Zeros stay zeros: a static embedding gives them for a text of which it knows no word.
    """
    batches = [np.zeros((0, dims or 1), dtype=np.float32)]
    for start in range(0, len(texts), EMBED_BATCH):
        batch = list(texts[start : start + EMBED_BATCH])
        try:
            vectors = check_vectors(embed(batch), documents=len(batch), dims=dims, ids=batch, zeros=True)
        except InputError as error:
            raise InputError(f"the embedding {name_of(embed)} gave unusable vectors: {error}") from None
        batches.append(vectors)
        dims = vectors.shape[1]
    return np.concatenate(batches[min(1, len(batches) - 1) :])


def name_of(embed: Embed) -> str:
    """Return the name of an embedding model for messages and model folders."""
    return str(getattr(embed, "name", None) or getattr(embed, "__name__", None) or type(embed).__name__)


def join_rows(
    words: csr_matrix | SparseRows, vectors: Floats, *, weight: float = VECTOR_WEIGHT
) -> csr_matrix:
    """Append unit vectors (docs, dims) to unit TF-IDF rows; a row of zeros is a missing vector."""
    from scipy import sparse

    rows = words.tocsr()
    has_words, has_vector = np.diff(rows.indptr) > 0, vectors.any(axis=1)
    by_words = np.where(has_vector, np.sqrt(1.0 - weight), 1.0).astype(np.float32)
    by_vector = np.where(has_words, np.sqrt(weight), 1.0).astype(np.float32)
    data = rows.data * np.repeat(by_words, np.diff(rows.indptr))
    scaled = sparse.csr_matrix((data, rows.indices, rows.indptr), shape=rows.shape)
    return sparse.hstack([scaled, sparse.csr_matrix(vectors * by_vector[:, None])], format="csr")


def append_columns(words: csr_matrix, dims: int) -> csr_matrix:
    """Return rows of words as joined rows without a vector."""
    shape = (words.shape[0], words.shape[1] + dims)
    return type(words)((words.data, words.indices, words.indptr), shape=shape)


class Parts(NamedTuple):
    """The words and the vectors of joined rows, both of unit length, or zero where they are missing."""

    words: csr_matrix
    vectors: Floats


def split_rows(X: csr_matrix, dims: int) -> Parts:
    """Take joined rows apart; the last `dims` columns are the vector."""
    terms = X.shape[1] - dims
    vectors: Floats = X[:, terms:].toarray()
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return Parts(unit_rows(X[:, :terms]), (vectors / np.where(norms > 0, norms, 1)).astype(np.float32))


@dataclass(frozen=True, slots=True)
class VectorInfo:
    """The vectors that a model was trained on, as its folder records them."""

    name: str  # of the embedding model, or of the field
    dims: int
    weight: float = VECTOR_WEIGHT
    sha256: str | None = None  # of the embedding model's files; None if only its vectors were given

    def check_embedding(self, embed: Embed) -> None:
        """Raise InputError if an embedding model of a folder is not the one of training."""
        digest = getattr(embed, "sha256", None)
        if self.sha256 is not None and digest is not None and digest != self.sha256:
            raise InputError(
                f"this model was trained on vectors of {self.name}, got {name_of(embed)}: use the same model"
            )

    def to_json(self) -> dict[str, Any]:
        """Return the description for model.json."""
        return asdict(self)

    @classmethod
    def from_json(cls, state: Any) -> VectorInfo:  # state: any JSON value
        """Restore `to_json`; ModelError if it is invalid."""
        types = {"name": str, "dims": int, "weight": float, "sha256": str | None}
        if not isinstance(state, Mapping) or set(state) != set(types):
            raise ModelError(f"the model's vectors must be an object with {', '.join(types)}")
        for name, expected in types.items():
            if not isinstance(state[name], expected) or isinstance(state[name], bool):
                raise ModelError(f"the model's vectors have an invalid {name}: {state[name]!r}")
        if not 0 < state["weight"] < 1:
            raise ModelError(f"the weight of the model's vectors must be from 0 to 1, got {state['weight']}")
        return cls(**state)
