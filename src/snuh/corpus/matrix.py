"""Feature rows instead of texts: TF-IDF matrices in MATLAB files with the layout of the paper's data."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from snuh.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Keys of the splits in the file; the labels have the same keys with the prefix "gnd_".
KEYS = {"train": "train", "val": "cv", "test": "test"}
OPTIONAL_SPLIT = "val"

Pair: TypeAlias = tuple[Any, Any]  # features and labels as loaded, sparse or dense: scipy has no types


@dataclass(frozen=True, slots=True)
class MatrixSplit:
    """The rows of a split with their ids and labels."""

    X: csr_matrix  # (docs, features), float32
    ids: list[str]
    labels: list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class MatrixSource:
    """Feature rows by split: train, test and optionally val."""

    name: str
    splits: Mapping[str, MatrixSplit]

    @property
    def features(self) -> int:
        """The number of columns, the same in every split."""
        return int(self.splits["train"].X.shape[1])


def read_matrix(path: Path, *, name: str | None = None) -> MatrixSource:
    """Read a .mat file; ids are split and row number, such as train-1, and labels are column numbers from 0.

    Dense matrices, documents in columns and one class number per document are accepted, too.
    """
    pairs = _orient(_load(path), path.name)
    splits = {split: _to_split(split, pair, path.name) for split, pair in pairs.items()}
    return MatrixSource(name or path.name, splits)


def _load(path: Path) -> dict[str, Pair]:
    from scipy.io import loadmat
    from scipy.sparse import issparse

    try:
        content: dict[str, Any] = loadmat(path)
        for matrix in filter(issparse, content.values()):
            # Wrong indices would make scipy read and write outside its arrays.
            matrix.check_format(full_check=True)
    except NotImplementedError:
        raise InputError(f"{path.name}: saved as MATLAB 7.3, which is not read: save it with -v7") from None
    except Exception as error:  # scipy raises many kinds of exceptions for damaged files
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path.name}: not a MATLAB file, or a damaged one ({reason})") from None
    splits = {
        split: (key, "gnd_" + key)
        for split, key in KEYS.items()
        if split != OPTIONAL_SPLIT or key in content or "gnd_" + key in content
    }
    expected = [key for keys in splits.values() for key in keys]
    missing = [key for key in expected if key not in content]
    if missing:
        present = ", ".join(key for key in content if not key.startswith("__")) or "none"
        raise InputError(
            f"{path.name}: there is no {', '.join(missing)} in it; "
            f"expected the keys {', '.join(expected)}, got {present}"
        )
    for key in expected:
        if getattr(content[key], "ndim", 0) != 2 or content[key].dtype.kind not in "buif":
            raise InputError(f"{path.name}: {key} must be a matrix of numbers")
    return {split: (content[key], content[labels]) for split, (key, labels) in splits.items()}


def _orient(pairs: dict[str, Pair], file: str) -> dict[str, Pair]:
    """Transpose features and labels, if necessary, so that documents are rows in all splits."""
    for transpose_features, transpose_labels in itertools.product((False, True), repeat=2):
        oriented = {
            split: (X.T if transpose_features else X, labels.T if transpose_labels else labels)
            for split, (X, labels) in pairs.items()
        }
        rows_match = all(X.shape[0] == labels.shape[0] for X, labels in oriented.values())
        columns_match = all(len({pair[side].shape[1] for pair in oriented.values()}) == 1 for side in (0, 1))
        if rows_match and columns_match:
            return oriented
    shapes = ", ".join(
        f"{KEYS[split]} {_shape(X)} with labels {_shape(labels)}" for split, (X, labels) in pairs.items()
    )
    raise InputError(
        f"{file}: the shapes do not match ({shapes}): every split needs one row of labels per document, "
        "and as many columns as the others"
    )


def _shape(matrix: Any) -> str:
    return " x ".join(str(size) for size in matrix.shape)


def _to_split(split: str, pair: Pair, file: str) -> MatrixSplit:
    import numpy as np
    from scipy.sparse import csr_matrix

    with np.errstate(over="ignore"):  # values too large for float32 become infinity, which is checked below
        X = csr_matrix(pair[0], dtype=np.float32)
    if not X.shape[0]:
        raise InputError(f"{file}: {KEYS[split]} has no rows")
    X.sum_duplicates()
    X.eliminate_zeros()
    broken = np.flatnonzero(~np.isfinite(X.data))
    if broken.size:
        row = int(np.searchsorted(X.indptr, broken[0], side="right"))
        raise InputError(
            f"{file}: {KEYS[split]} row {row} holds NaN or infinity: features must be finite numbers"
        )
    ids = [f"{split}-{row}" for row in range(1, X.shape[0] + 1)]
    return MatrixSplit(X, ids, _labels(pair[1], f"{file}: gnd_{KEYS[split]}"))


def _labels(matrix: Any, name: str) -> list[tuple[str, ...]]:
    import numpy as np
    from scipy.sparse import csr_matrix, issparse

    if matrix.shape[1] == 1:
        column = matrix.toarray() if issparse(matrix) else matrix
        if not np.array_equal(column, np.floor(column)):
            raise InputError(f"{name} must hold integer class numbers or 0 and 1")
        return [(str(int(value)),) for value in column[:, 0]]
    rows = csr_matrix(matrix)
    rows.eliminate_zeros()
    if np.any(rows.data != 1):
        raise InputError(f"{name} must hold 0 and 1, or one class number per document")
    rows.sort_indices()
    names = [str(column) for column in range(rows.shape[1])]
    return [
        tuple(names[column] for column in rows.indices[start:end])
        for start, end in itertools.pairwise(rows.indptr.tolist())
    ]
