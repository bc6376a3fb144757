"""Words joined with vectors, such as sentence embeddings: checks, joined rows, and where vectors come from.

A joined row is the TF-IDF row and the vector, both of unit length, multiplied by sqrt(1 - w) and sqrt(w). It
has unit length, and the cosine of two joined rows is (1 - w) times that of the words plus w times that of the
vectors. A document without a vector has the TF-IDF row alone, of unit length as well; a document without a
known word has the vector alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError, ModelError, import_extra
from snuh.features.weighting import SparseRows, unit_rows
from snuh.io import read_json, sha256
from snuh.text import quote

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Floats: TypeAlias = NDArray[np.float32]
Embed: TypeAlias = Callable[[list[str]], Any]  # texts to an array (texts, dims) of any library

VECTOR_WEIGHT = 0.5  # w of new models: both cosines count alike
EMBED_BATCH = 256  # texts in one call of an embedding model


def check_vectors(vectors: Any, *, documents: int, dims: int | None = None) -> Floats:
    """Return vectors (documents, dims) of unit length; InputError names the first invalid one by its row."""
    try:
        array = np.asarray(vectors)
    except ValueError as error:
        raise InputError(f"vectors must be an array of shape (documents, dims): {error}") from None
    if array.dtype.kind not in "fiu":
        raise InputError(f"vectors must be an array of numbers, got {array.dtype}")
    if array.ndim != 2 or len(array) != documents or not array.shape[1]:
        raise InputError(f"vectors must have the shape ({documents}, dims), got {array.shape}")
    if dims is not None and array.shape[1] != dims:
        raise InputError(
            f"expected vectors of {dims} dimensions, got {array.shape[1]}: use one embedding model"
        )
    norms = np.linalg.norm(array.astype(np.float64), axis=1, keepdims=True)
    valid = np.isfinite(norms[:, 0]) & (norms[:, 0] > 0)
    if not valid.all():
        row = int(np.argmin(valid))
        problem = "is all zeros" if norms[row] == 0 else "has NaN or infinity"
        where = f" of row {row} (counted from 0)" if documents > 1 else ""
        raise InputError(f"the vector{where} {problem}: expected finite numbers, not all of them 0")
    unit: Floats = (array / norms).astype(np.float32)
    return unit


def stack_vectors(vectors: Sequence[Any], ids: Sequence[str], *, dims: int | None = None) -> Floats:
    """Return the vectors of documents as unit rows (documents, dims), zeros for those that are None.

    The first vector decides the dimension unless it is given.
    """
    given = [row for row, vector in enumerate(vectors) if vector is not None]
    dims = dims or (len(vectors[given[0]]) if given else 1)
    rows = np.zeros((len(vectors), dims), dtype=np.float32)
    for row in given:
        try:
            rows[row] = check_vectors([vectors[row]], documents=1, dims=dims)[0]
        except InputError as error:
            raise InputError(f"document {quote(ids[row])}: {error}") from None
    return rows


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


# Vectors made by an embedding model.


def name_of(embed: Embed) -> str:
    """Return the name of an embedding model for messages and model folders."""
    return str(getattr(embed, "name", None) or getattr(embed, "__name__", None) or type(embed).__name__)


def embed_texts(embed: Embed, texts: Iterable[str], *, dims: int | None = None) -> list[Floats]:
    """Return the unit vectors of texts, embedded in batches."""
    texts = list(texts)
    vectors: list[Floats] = []
    for start in range(0, len(texts), EMBED_BATCH):
        batch = texts[start : start + EMBED_BATCH]
        try:
            vectors += list(check_vectors(embed(batch), documents=len(batch), dims=dims))
        except InputError as error:
            raise InputError(f"the embedding {name_of(embed)} gave unusable vectors: {error}") from None
        dims = len(vectors[0])
    return vectors


@dataclass(frozen=True, slots=True)
class FolderEmbedding:
    """An embedding model of a local folder: a callable from texts to vectors, with name and checksum."""

    name: str
    sha256: str
    encode: Callable[[list[str]], Any]

    def __call__(self, texts: list[str]) -> Any:
        """Return the vectors (texts, dims)."""
        return self.encode(texts)


def load_embedding(folder: Path | str) -> FolderEmbedding:
    """Load a model2vec or sentence-transformers model from its folder; nothing is downloaded."""
    path = Path(folder)
    weights = sorted(path.rglob("*.safetensors")) or sorted(path.rglob("*.bin"))
    if not weights:
        raise InputError(f"{folder} is not the folder of an embedding model: it has no .safetensors file")
    digest = hashlib.sha256("".join(map(sha256, weights)).encode()).hexdigest()
    return FolderEmbedding(path.resolve().name, digest, _load_encode(path))


def _load_encode(path: Path) -> Callable[[list[str]], Any]:
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
