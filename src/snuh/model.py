"""A trained model: features and encoder, saved to a folder and loaded without torch.

The folder contains `model.json` (description, training summary, checksums of all files and of itself) and
`encoder.safetensors` (the arrays). A model that takes texts also has `vocabulary.json`; a model whose method
has a decoder also has `decoder.safetensors`, which is read on demand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snuh.corpus.document import Document
from snuh.corpus.rows import attach_vectors, is_table, iterate_documents, iterate_texts
from snuh.encoder import Encoder, Rows
from snuh.errors import InputError, ModelError, SnuhError
from snuh.features import TfidfFeatures
from snuh.features.tfidf import text_batches
from snuh.features.vectors import Embed, VectorInfo, complete_vectors, join_rows
from snuh.io import (
    DECODER_FILE,
    ENCODER_FILE,
    MANIFEST_FILE,
    MODEL_FILES,
    MODEL_FORMAT,
    VOCABULARY_FILE,
    complete_folder,
    dump_json,
    load_arrays,
    read_json,
    replace_folder,
    save_arrays,
    sha256,
    write_json,
)
from snuh.text import html_table

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FORMAT_VERSION = 2  # of models that read vectors; others are version 1, which older snuh read
BATCH_DOCUMENTS = 20_000  # with vectors
BATCH_CHARACTERS = 8_000_000  # enough to keep all processors busy

Embedding: TypeAlias = NDArray[
    np.float16
]  # (terms, bits): how much a bit raises the log-likelihood of each term


@dataclass(eq=False, repr=False)
class Model:
    """Turns texts (or, without `features`, feature rows) into codes."""

    encoder: Encoder
    features: TfidfFeatures | None = None
    method: str = "unknown"
    parameters: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    decoder: NDArray[np.floating[Any]] | Callable[[], Embedding] | None = None
    """The decoder's word embedding, or a function that reads it; use `word_embedding()`."""
    vectors: VectorInfo | None = None
    """The vectors that the encoder reads beside the words; None for words alone."""
    embed: Embed | None = None
    """Makes the vectors of documents that have none; without it, their words alone are encoded. Not saved."""

    def __post_init__(self) -> None:
        if self.decoder is not None and not callable(self.decoder):
            self.decoder = _check_embedding(self.decoder, self.encoder)
        if self.features is not None and len(self.features.terms) != self.encoder.terms:
            raise InputError(
                f"the vocabulary has {len(self.features.terms)} terms and the encoder {self.encoder.terms} "
                "inputs: they must come from the same training"
            )
        dims = 0 if self.vectors is None else self.vectors.dims
        if dims != self.encoder.vector_dims:
            raise InputError(
                f"the vectors have {dims} dimensions and the encoder reads {self.encoder.vector_dims}: "
                "they must come from the same training"
            )
        self.use_embedding(self.embed)

    def __repr__(self) -> str:
        takes = "texts" if self.features is not None else f"rows of {self.encoder.inputs} features"
        return f"Model({self.method}, {self.bits} bits, takes {takes})"

    def _repr_html_(self) -> str:
        takes = "texts" if self.features is not None else "feature rows"
        takes += "" if self.vectors is None else f" and vectors ({self.vectors.name})"
        facts = [("method", self.method), ("bits", self.bits), ("takes", takes)]
        summary = {name: self.training.get(name) for name in ("source", "documents", "score")}
        return html_table([*facts, *((name, value) for name, value in summary.items() if value is not None)])

    @property
    def bits(self) -> int:
        """The length of the codes."""
        return self.encoder.bits

    def use_embedding(self, embed: Embed | None) -> None:
        """Embed the documents that have no vector; InputError if it is not the embedding of training."""
        if embed is not None:
            if self.vectors is None:
                raise InputError(
                    "this model reads words alone: fit one with vectors, or leave the embedding out"
                )
            self.vectors.check_embedding(embed)
        self.embed = embed

    def encode(self, documents: Iterable[Any] | Rows, *, vectors: Any = None) -> NDArray[np.uint8]:
        """Return packed codes (documents, bits / 8).

        Documents are texts, or anything else that `open_source` takes; a generator is read in batches.
        `vectors` (documents, dims) are read beside the words, if the model was trained so.
        """
        codes = [self.encoder.encode(rows) for rows in self._rows(documents, vectors)]
        return np.concatenate([np.zeros((0, self.bits // 8), dtype=np.uint8), *codes])

    def values(self, documents: Iterable[Any] | Rows, *, vectors: Any = None) -> NDArray[np.float32]:
        """Return the real values (documents, bits) that the thresholds turn into bits."""
        values = [self.encoder.values(rows) for rows in self._rows(documents, vectors)]
        return np.concatenate([np.zeros((0, self.bits), dtype=np.float32), *values])

    def word_embedding(self) -> Embedding | None:
        """Return the decoder's array (terms, bits), read on first use; None if there is none."""
        if callable(self.decoder):
            self.decoder = self.decoder()
        return self.decoder

    def save(self, folder: Path | str) -> None:
        """Write the model folder; an existing model is replaced once the new one is complete."""
        replace_folder(folder, self._write)

    def document_rows(self, documents: Sequence[Document], *, threads: int | None = None) -> csr_matrix:
        """Return the rows of documents: words joined with their vectors, if the model reads vectors."""
        if self.features is None:
            raise InputError("this model was trained on a feature matrix: it cannot encode texts")
        words = self.features.transform([document.text for document in documents], threads=threads)
        if self.vectors is None:
            if any(document.vector is not None for document in documents):
                raise self._refuse_vectors()
            return words
        vectors = complete_vectors(
            [document.vector for document in documents],
            ids=[document.id for document in documents],
            texts=[document.text for document in documents],
            embed=self.embed,
            dims=self.vectors.dims,
        )
        return join_rows(words, vectors, weight=self.vectors.weight)

    def _rows(self, documents: Iterable[Any] | Rows, vectors: Any = None) -> Iterator[Rows]:
        if self.features is None:
            if _looks_like_texts(documents):
                raise InputError("this model takes feature rows, got texts: it was trained on a matrix")
            yield documents
            return
        if isinstance(documents, str):
            raise InputError("expected a list of texts, got a single string: put it into a list")
        shape = getattr(documents, "shape", (0,))
        if len(shape) != 1 and not is_table(documents):
            raise InputError(f"this model takes texts, got an array of shape {shape}")
        if vectors is not None or self.vectors is not None:
            yield from map(self.document_rows, self._documents_with(documents, vectors))
            return
        for batch in text_batches(iterate_texts(documents), limit=BATCH_CHARACTERS):
            yield self.features.transform(batch)

    @staticmethod
    def _refuse_vectors() -> InputError:
        return InputError("this model reads words alone: fit one with vectors, or leave the vectors out")

    def _documents_with(self, documents: Iterable[Any], vectors: Any) -> Iterator[list[Document]]:
        if self.vectors is None:
            raise self._refuse_vectors()
        found: Iterable[Document] = iterate_documents(documents)
        if vectors is not None:
            found = attach_vectors(found, vectors, "vectors")
        found = iter(found)
        while batch := list(islice(found, BATCH_DOCUMENTS)):
            yield batch

    def _write(self, folder: Path) -> None:
        save_arrays(folder / ENCODER_FILE, self.encoder.arrays())
        if self.features is not None:
            write_json(folder / VOCABULARY_FILE, self.features.to_json())
        embedding = self.word_embedding()
        if embedding is not None:
            save_arrays(folder / DECODER_FILE, {"embedding": embedding})
        manifest = {
            "format": MODEL_FORMAT,
            "format_version": 1 if self.vectors is None else FORMAT_VERSION,
            "method": self.method,
            "bits": self.bits,
            "encoder": self.encoder.meta(),
            "parameters": self.parameters,
            "training": self.training,
            **({} if self.vectors is None else {"vectors": self.vectors.to_json()}),
            "files": {file.name: _fingerprint(file) for file in sorted(folder.iterdir())},
        }
        write_json(folder / MANIFEST_FILE, manifest | {"sha256": _manifest_sha256(manifest)}, indent=2)


def load(folder: Path | str, *, embed: Embed | None = None) -> Model:
    """Load a model folder; ModelError if it is missing, damaged, modified, or of a newer format.

    `embed` makes the vectors of texts, for a model that was trained on vectors.
    """
    path = complete_folder(folder)
    if not path.is_dir():
        raise ModelError(f'there is no model folder {folder}: train one with "snuh fit"')
    try:
        manifest = _read_manifest(path)
        _check_files(path, manifest["files"])
        encoder = _load_encoder(path / ENCODER_FILE, manifest)
        takes_texts = VOCABULARY_FILE in manifest["files"]
        features = _load_features(path / VOCABULARY_FILE) if takes_texts else None
        decoder = _decoder_reader(path, manifest["files"], encoder)
        vectors = VectorInfo.from_json(manifest["vectors"]) if "vectors" in manifest else None
        model = Model(
            *(encoder, features, manifest["method"], manifest["parameters"], manifest["training"]),
            *(decoder, vectors),
        )
    except InputError as error:
        raise _unusable(path, error) from error
    model.use_embedding(embed)
    return model


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Return the content of model.json after checking its format, version, checksum and types."""
    path = folder / MANIFEST_FILE
    if not path.is_file():
        raise ModelError(
            f'{folder} is not a snuh model: it has no {MANIFEST_FILE}; train one with "snuh fit"'
        )
    manifest = read_json(path)
    if not isinstance(manifest, dict) or manifest.get("format") != MODEL_FORMAT:
        raise ModelError(f'{path} does not describe a snuh model: expected "format": "{MODEL_FORMAT}"')
    version = manifest.get("format_version")
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        advice = "upgrade snuh" if isinstance(version, int) and version > FORMAT_VERSION else "train again"
        raise ModelError(
            f"{path} has format version {version!r}, this snuh reads 1 to {FORMAT_VERSION}: {advice}"
        )
    if manifest.pop("sha256", None) != _manifest_sha256(manifest):
        raise InputError(f"{path} was changed after saving (its checksum differs)")
    types = {"method": str, "bits": int, "encoder": dict, "parameters": dict, "training": dict, "files": dict}
    for name, expected_type in types.items():
        if not isinstance(manifest.get(name), expected_type):
            raise InputError(f"{path} lacks a valid {name!r}")
    return manifest


def _check_files(folder: Path, files: Mapping[str, Any]) -> None:
    """Compare the listed files with those on disk; only names that this module writes are opened."""
    if not {ENCODER_FILE} <= set(files) <= MODEL_FILES - {MANIFEST_FILE}:
        raise InputError(
            f"{folder / MANIFEST_FILE} lists the wrong files: {', '.join(sorted(files)) or 'none'}"
        )
    for name, expected in files.items():
        # The decoder is not needed to encode: its checksum is verified when it is read.
        _check_file(folder / name, expected, content=name != DECODER_FILE)


def _check_file(path: Path, expected: Any, *, content: bool) -> None:
    if not path.is_file():
        raise InputError(f"{path} is missing")
    size = path.stat().st_size
    if not isinstance(expected, dict) or size != expected.get("bytes"):
        wanted = expected.get("bytes") if isinstance(expected, dict) else None
        raise InputError(f"{path} should have {wanted} bytes, but has {size}")
    if content and sha256(path) != expected.get("sha256"):
        raise InputError(f"{path} was changed after saving (its checksum differs)")


def _load_encoder(path: Path, manifest: Mapping[str, Any]) -> Encoder:
    arrays = load_arrays(path)
    try:
        encoder = Encoder.from_arrays(arrays, manifest["encoder"])
    except InputError as error:
        raise InputError(f"{path} is unusable: {error}") from error
    if encoder.bits != manifest["bits"]:
        raise InputError(f"{path} gives {encoder.bits}-bit codes, {MANIFEST_FILE} says {manifest['bits']}")
    return encoder


def _decoder_reader(
    folder: Path, files: Mapping[str, Any], encoder: Encoder
) -> Callable[[], Embedding] | None:
    """Return a function that reads the decoder (ModelError if it is damaged), or None if there is none."""
    if DECODER_FILE not in files:
        return None

    def read() -> Embedding:
        path = folder / DECODER_FILE
        try:
            _check_file(path, files[DECODER_FILE], content=True)
            arrays = load_arrays(path)
            if set(arrays) != {"embedding"}:
                got = ", ".join(sorted(arrays)) or "none"
                raise InputError(f"{path} is unusable: expected the array embedding, got {got}")
            return _check_embedding(arrays["embedding"], encoder)
        except InputError as error:
            raise _unusable(folder, error) from error

    return read


def _check_embedding(embedding: NDArray[Any], encoder: Encoder) -> Embedding:
    """Return the embedding as float16, which is precise enough to rank words."""
    array = np.asarray(embedding)
    expected = (encoder.terms, encoder.bits)
    if array.shape != expected or array.dtype.kind != "f":
        raise InputError(
            f"a decoder must be floats of shape {expected}, got {array.dtype} of shape {array.shape}"
        )
    if np.isnan(array).any():
        raise InputError("a decoder must contain numbers, got NaN")
    largest = np.finfo(np.float16).max
    return np.asarray(np.clip(array, -largest, largest), dtype=np.float16)


def _unusable(folder: Path, error: InputError) -> ModelError:
    return ModelError(f"{error}; restore {folder} from a backup, or train again")


def _load_features(path: Path) -> TfidfFeatures:
    content = read_json(path)
    try:
        return TfidfFeatures.from_json(content)
    except SnuhError as error:
        raise InputError(f"{path} is unusable: {error}") from error


def _fingerprint(file: Path) -> dict[str, Any]:
    return {"sha256": sha256(file), "bytes": file.stat().st_size}


def _manifest_sha256(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(dump_json(manifest).encode()).hexdigest()


def _looks_like_texts(documents: object) -> bool:
    if isinstance(documents, str):
        return True
    return isinstance(documents, list | tuple) and bool(documents) and isinstance(documents[0], str)
