"""Lists of neighbouring codes, for searches that read only a part of a large collection.

They belong to one code file: what was written since is scanned in full. How much of the exact answer they
give is measured on the collection's own codes when they are made.
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

LISTS_FILE = "lists.safetensors"


@dataclass(frozen=True, slots=True)
class IVFSnapshot:
    """Clusters of the base of a table, and what was measured on them."""

    clusters: IVF
    probes: int  # lists that a search reads
    k: int  # for which the recall was measured
    recall: float  # share of the exact answer found
    documents: int  # there were then

    def facts(self) -> IndexInfo:
        """Return what is worth telling of them."""
        count = len(self.clusters.centroids)
        words = f"{self.probes:,} of {count:,} lists are read"
        return IndexInfo({"lists": count, "read": self.probes}, words, self.k, self.recall, self.documents)


def build_index(codes: NDArray[np.uint8], *, k: int, recall: float) -> IVFSnapshot:
    """Cluster codes and choose how many lists to read for the wanted recall at k."""
    clusters = IVF.build(codes)
    probes, reached = choose_n_probe(clusters, codes, k=k, target_recall=recall)
    return IVFSnapshot(clusters, probes, k, reached, len(codes))


def move_lists(
    lists: IVFSnapshot, old_seqs: NDArray[np.int64], alive: NDArray[np.bool_] | None, new: CodeRows
) -> IVFSnapshot:
    """Let lists follow their documents into a new code file; those that are new go to their nearest centre.

    Args:
        lists: of the old file.
        old_seqs: the seqs of the old file.
        alive: which of them have kept their code; None: all.
        new: the new file.
    """
    clusters = lists.clusters
    stayed = slice(None) if alive is None else alive
    assignments = np.full(len(new.seqs), -1, dtype=np.int32)
    assignments[np.searchsorted(new.seqs, old_seqs[stayed])] = clusters.assignments()[stayed]
    arrived = np.flatnonzero(assignments < 0)
    assignments[arrived] = nearest_centroids(new.codes[arrived], clusters.centroids)
    return replace(lists, clusters=IVF.from_assignments(clusters.centroids, assignments))


def write_lists(path: Path, lists: IVFSnapshot, *, token: str) -> None:
    """Save lists for the code file with this token."""
    facts = np.array([lists.probes, lists.k, lists.documents], dtype=np.int64)
    arrays = {**lists.clusters.arrays(), "facts": facts, "recall": np.array([lists.recall])}
    arrays["token"] = np.frombuffer(token.encode(), dtype=np.uint8)
    arrays["checksum"] = np.array([_checksum_of_arrays(arrays)])
    with atomic_write(path) as beside:
        save_arrays(beside, arrays)


def read_lists(path: Path, *, token: str) -> IVFSnapshot | None:
    """Load the lists of the code file with this token; None where there are none, or they are damaged."""
    if not path.exists():
        return None
    try:
        arrays = load_arrays(path)
        checksum = int(arrays.pop("checksum")[0])
        if checksum != _checksum_of_arrays(arrays) or bytes(arrays["token"]).decode() != token:
            return None
        probes, k, documents = arrays["facts"].tolist()
        return IVFSnapshot(IVF.from_arrays(arrays), probes, k, float(arrays["recall"][0]), documents)
    except (InputError, KeyError, IndexError, TypeError, ValueError):
        return None


def _checksum_of_arrays(arrays: Mapping[str, NDArray[Any]]) -> int:
    found = 0
    for name in sorted(arrays):
        found = zlib.crc32(np.ascontiguousarray(arrays[name]).data, zlib.crc32(name.encode(), found))
    return found
