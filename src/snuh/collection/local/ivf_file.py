"""The file of the IVF index of a local collection.

An index belongs to one code file; codes written later are scanned in full. Its recall is measured on the
collection's own codes when it is built.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snuh.collection.results import CodeRows, IndexInfo
from snuh.errors import InputError
from snuh.index.ivf import IVF, choose_n_probe, nearest_centroids
from snuh.io import atomic_write, load_arrays, save_arrays

INDEX_FILE = "lists.safetensors"


@dataclass(frozen=True, slots=True)
class TunedIVF:
    """The IVF index of a code file, and its measured recall."""

    ivf: IVF
    n_probe: int  # lists that a search scans
    k: int  # at which the recall was measured
    recall: float  # fraction of the exact results found
    documents: int  # when it was measured

    def info(self) -> IndexInfo:
        """Describe the index."""
        lists = len(self.ivf.centroids)
        return IndexInfo(
            settings={"n_lists": lists, "n_probe": self.n_probe},
            description=f"{self.n_probe:,} of {lists:,} lists are scanned",
            k=self.k,
            recall=self.recall,
            documents=self.documents,
        )


def build_index(codes: NDArray[np.uint8], *, k: int, recall: float) -> TunedIVF:
    """Cluster codes, and choose the number of probes that reaches a recall at k."""
    ivf = IVF.build(codes)
    n_probe, reached = choose_n_probe(ivf, codes, k=k, target_recall=recall)
    return TunedIVF(ivf, n_probe, k, reached, len(codes))


def update_index(
    index: TunedIVF, old_seqs: NDArray[np.int64], live: NDArray[np.bool_] | None, new: CodeRows
) -> TunedIVF:
    """Carry an index over to a new code file; new codes are assigned to their nearest centroid.

    Args:
        index: of the old file.
        old_seqs: the seqs of the old file.
        live: which of them have kept their code; None for all.
        new: the rows of the new file.
    """
    ivf = index.ivf
    unchanged = slice(None) if live is None else live
    assignments = np.full(len(new.seqs), -1, dtype=np.int32)
    assignments[np.searchsorted(new.seqs, old_seqs[unchanged])] = ivf.assignments()[unchanged]
    added = np.flatnonzero(assignments < 0)
    assignments[added] = nearest_centroids(new.codes[added], ivf.centroids)
    return replace(index, ivf=IVF.from_assignments(ivf.centroids, assignments))


def write_index(path: Path, index: TunedIVF, *, token: str) -> None:
    """Save the index of the code file with this token."""
    facts = np.array([index.n_probe, index.k, index.documents], dtype=np.int64)
    arrays = {**index.ivf.arrays(), "facts": facts, "recall": np.array([index.recall])}
    arrays["token"] = np.frombuffer(token.encode(), dtype=np.uint8)
    arrays["checksum"] = np.array([_checksum(arrays)])
    with atomic_write(path) as temporary:
        save_arrays(temporary, arrays)


def read_index(path: Path, *, token: str) -> TunedIVF | None:
    """Load the index of the code file with this token; None if it is missing, damaged or of another file."""
    if not path.exists():
        return None
    try:
        arrays = load_arrays(path)
        checksum = int(arrays.pop("checksum")[0])
        if checksum != _checksum(arrays) or bytes(arrays["token"]).decode() != token:
            return None
        n_probe, k, documents = arrays["facts"].tolist()
        return TunedIVF(IVF.from_arrays(arrays), n_probe, k, float(arrays["recall"][0]), documents)
    except (InputError, KeyError, IndexError, TypeError, ValueError):
        return None


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> int:
    checksum = 0
    for name in sorted(arrays):
        checksum = zlib.crc32(np.ascontiguousarray(arrays[name]).data, zlib.crc32(name.encode(), checksum))
    return checksum
