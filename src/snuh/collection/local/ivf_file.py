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

from snuh.collection.results import CodeRows, Fast
from snuh.errors import InputError
from snuh.index.ivf import Clusters, choose_probes, nearest_centres
from snuh.io import atomic_write, load_arrays, save_arrays

LISTS_FILE = "lists.safetensors"


@dataclass(frozen=True, slots=True)
class FastLists:
    """Clusters of the base of a table, and what was measured on them."""

    clusters: Clusters
    probes: int  # lists that a search reads
    k: int  # for which the recall was measured
    recall: float  # share of the exact answer found
    documents: int  # there were then

    def facts(self) -> Fast:
        """Return what is worth telling of them."""
        count = len(self.clusters.centres)
        words = f"{self.probes:,} of {count:,} lists are read"
        return Fast({"lists": count, "read": self.probes}, words, self.k, self.recall, self.documents)


def make_lists(codes: NDArray[np.uint8], *, k: int, recall: float) -> FastLists:
    """Cluster codes and choose how many lists to read for the wanted recall at k."""
    clusters = Clusters.build(codes)
    probes, reached = choose_probes(clusters, codes, k=k, wanted=recall)
    return FastLists(clusters, probes, k, reached, len(codes))


def move_lists(
    lists: FastLists, old_seqs: NDArray[np.int64], alive: NDArray[np.bool_] | None, new: CodeRows
) -> FastLists:
    """Let lists follow their documents into a new code file; those that are new go to their nearest centre.

    Args:
        lists: of the old file.
        old_seqs: the seqs of the old file.
        alive: which of them have kept their code; None: all.
        new: the new file.
    """
    clusters = lists.clusters
    stayed = slice(None) if alive is None else alive
    owners = np.full(len(new.seqs), -1, dtype=np.int32)
    owners[np.searchsorted(new.seqs, old_seqs[stayed])] = clusters.owners()[stayed]
    arrived = np.flatnonzero(owners < 0)
    owners[arrived] = nearest_centres(new.codes[arrived], clusters.centres)
    return replace(lists, clusters=Clusters.of_owners(clusters.centres, owners))


def write_lists(path: Path, lists: FastLists, *, token: str) -> None:
    """Save lists for the code file with this token."""
    facts = np.array([lists.probes, lists.k, lists.documents], dtype=np.int64)
    arrays = {**lists.clusters.arrays(), "facts": facts, "recall": np.array([lists.recall])}
    arrays["token"] = np.frombuffer(token.encode(), dtype=np.uint8)
    arrays["checksum"] = np.array([_checksum_of_arrays(arrays)])
    with atomic_write(path) as beside:
        save_arrays(beside, arrays)


def read_lists(path: Path, *, token: str) -> FastLists | None:
    """Load the lists of the code file with this token; None where there are none, or they are damaged."""
    if not path.exists():
        return None
    try:
        arrays = load_arrays(path)
        checksum = int(arrays.pop("checksum")[0])
        if checksum != _checksum_of_arrays(arrays) or bytes(arrays["token"]).decode() != token:
            return None
        probes, k, documents = arrays["facts"].tolist()
        return FastLists(Clusters.from_arrays(arrays), probes, k, float(arrays["recall"][0]), documents)
    except (InputError, KeyError, IndexError, TypeError, ValueError):
        return None


def _checksum_of_arrays(arrays: Mapping[str, NDArray[Any]]) -> int:
    found = 0
    for name in sorted(arrays):
        found = zlib.crc32(np.ascontiguousarray(arrays[name]).data, zlib.crc32(name.encode(), found))
    return found
