"""Feature rows instead of texts: TF-IDF in a MATLAB file, in the layout that the paper's data comes in."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from snuh.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# What the file calls our splits; the labels of each are under "gnd_" and the same name.
KEYS = {"train": "train", "val": "cv", "test": "test"}
OPTIONAL_SPLIT = "val"

Pair: TypeAlias = tuple[Any, Any]  # features and labels as loaded, sparse or dense: scipy has no types


@dataclass(frozen=True, slots=True)
class MatrixSplit:
    """The rows of one split with their ids and labels."""

    X: csr_matrix  # (docs, features), float32
    ids: list[str]
    labels: list[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class MatrixSource:
    """Feature rows by split: train, val where there is one, and test."""

    name: str
    splits: Mapping[str, MatrixSplit]

    @property
    def features(self) -> int:
        """The number of columns, the same in every split."""
        return int(self.splits["train"].X.shape[1])


def read_matrix(path: Path, *, name: str | None = None) -> MatrixSource:
    """Read a .mat file; rows are named by split and number, as in train-1, labels by their column from 0.

    Dense matrices, documents in columns instead of rows, and one class number a document are taken too.
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
    except Exception as error:  # scipy meets damaged files with exceptions of many kinds
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path.name}: not a MATLAB file, or a damaged one ({reason})") from None
    splits = {
        split: (key, "gnd_" + key)
        for split, key in KEYS.items()
        if split != OPTIONAL_SPLIT or key in content or "gnd_" + key in content
    }
    wanted = [key for keys in splits.values() for key in keys]
    missing = [key for key in wanted if key not in content]
    if missing:
        there = ", ".join(key for key in content if not key.startswith("__")) or "none"
        raise InputError(
            f"{path.name}: there is no {', '.join(missing)} in it; "
            f"expected the keys {', '.join(wanted)}, got {there}"
        )
    for key in wanted:
        if getattr(content[key], "ndim", 0) != 2 or content[key].dtype.kind not in "buif":
            raise InputError(f"{path.name}: {key} must be a matrix of numbers")
    return {split: (content[key], content[labels]) for split, (key, labels) in splits.items()}


def _orient(pairs: dict[str, Pair], file: str) -> dict[str, Pair]:
    """Put documents in rows, choosing the one way of turning that makes all splits fit together."""
    for turn_features, turn_labels in itertools.product((False, True), repeat=2):
        turned = {
            split: (X.T if turn_features else X, labels.T if turn_labels else labels)
            for split, (X, labels) in pairs.items()
        }
        rows_match = all(X.shape[0] == labels.shape[0] for X, labels in turned.values())
        columns_match = all(len({pair[side].shape[1] for pair in turned.values()}) == 1 for side in (0, 1))
        if rows_match and columns_match:
            return turned
    shapes = ", ".join(
        f"{KEYS[split]} {_shape(X)} with labels {_shape(labels)}" for split, (X, labels) in pairs.items()
    )
    raise InputError(
        f"{file}: the shapes do not fit together ({shapes}): every split needs one label row a document, "
        "and as many columns as the others"
    )


def _shape(matrix: Any) -> str:
    return " x ".join(str(size) for size in matrix.shape)


def _to_split(split: str, pair: Pair, file: str) -> MatrixSplit:
    import numpy as np
    from scipy.sparse import csr_matrix

    with np.errstate(over="ignore"):  # too large for float32 becomes infinity, found below
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


def _labels(matrix: Any, place: str) -> list[tuple[str, ...]]:
    import numpy as np
    from scipy.sparse import csr_matrix, issparse

    if matrix.shape[1] == 1:
        column = matrix.toarray() if issparse(matrix) else matrix
        if not np.array_equal(column, np.floor(column)):
            raise InputError(f"{place} must hold whole class numbers or 0 and 1")
        return [(str(int(value)),) for value in column[:, 0]]
    rows = csr_matrix(matrix)
    rows.eliminate_zeros()
    if np.any(rows.data != 1):
        raise InputError(f"{place} must hold 0 and 1, or one class number a document")
    rows.sort_indices()
    names = [str(column) for column in range(rows.shape[1])]
    return [
        tuple(names[column] for column in rows.indices[start:end])
        for start, end in itertools.pairwise(rows.indptr.tolist())
    ]
