"""A start for the approximate search of documents with dense rows: those of nearby cells are compared.

Cells are clusters of the dense rows (spherical k-means, learnt on a sample). The documents of a cell are
compared with all those of the nearest cells, by the whole similarity. How many that are does not grow with
the documents, so neither does the work for one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from snuh.graph.exact import Columns
from snuh.graph.joined import JoinedRows
from snuh.graph.neighbors import Floats, Neighbors

CELL_DOCS = 200  # documents of a cell, on average
COLUMNS = 10_000  # documents that each is compared with, at least
LARGEST_CELL = 4 * CELL_DOCS  # larger ones are cut
SAMPLE_PER_CELL = 40
ROUNDS = 6

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Documents in the order of their cells, and which cells each cell is compared with."""

    order: Places  # (docs,), the row of each
    starts: Places  # (cells + 1,), places in the order
    near: list[Places]  # of each cell, itself first

    @property
    def of_places(self) -> npt.NDArray[np.int32]:
        """The cell of each place in the order (docs,)."""
        return np.repeat(np.arange(len(self.near), dtype=np.int32), np.diff(self.starts))


def make_cells(dense: Floats, *, rng: np.random.Generator) -> Cells:
    """Cluster dense rows, and choose for each cell as many near ones as have enough documents."""
    centres = _find_centres(dense, count=max(1, len(dense) // CELL_DOCS), rng=rng)
    owners = nearest_centres(dense, centres)
    order = np.argsort(owners, kind="stable")
    firsts = np.searchsorted(owners[order], np.arange(len(centres)))
    pieces = (np.arange(len(order)) - firsts[owners[order]]) // LARGEST_CELL
    keys, starts = np.unique(owners[order] * (len(order) + 1) + pieces, return_index=True)
    centres = centres[keys // (len(order) + 1)]
    starts = np.append(starts, len(order))
    return Cells(order, starts, _near_cells(centres, np.diff(starts)))


def compare_cells(
    rows: JoinedRows, cells: Cells, *, k: int, on_progress: Callable[[float], None] | None
) -> Neighbors:
    """Find the k nearest of each row among those of the near cells; the rows are in the order of cells."""
    found = np.full((len(rows), k), -1, dtype=np.int32)
    similarity = np.zeros((len(rows), k), dtype=np.float32)
    places = [np.arange(*cells.starts[cell : cell + 2]) for cell in range(len(cells.near))]
    for cell, near in enumerate(cells.near):
        others = np.concatenate([places[other] for other in near])
        own = np.arange(len(places[cell]))  # it is the first among the near ones
        part = Columns(rows.take(others)).nearest(rows.take(places[cell]), own=own, k=k)
        found[places[cell]] = np.where(part.rows >= 0, others[part.rows], -1)
        similarity[places[cell]] = part.similarity
        if on_progress is not None:
            on_progress(cells.starts[cell + 1] / len(rows))
    return Neighbors(found, similarity)


def nearest_centres(dense: Floats, centres: Floats) -> Places:
    """Return the number of the centre with the largest product for each row."""
    blocks = range(0, len(dense), 4096)
    return np.concatenate([(dense[b : b + 4096] @ centres.T).argmax(axis=1) for b in blocks])


def _find_centres(dense: Floats, *, count: int, rng: np.random.Generator) -> Floats:
    size = min(len(dense), SAMPLE_PER_CELL * count)
    sample = dense[np.sort(rng.choice(len(dense), size=size, replace=False))]
    centres = sample[rng.choice(size, size=min(count, size), replace=False)]
    for _ in range(ROUNDS):
        owners = nearest_centres(sample, centres)
        shape = (len(centres), size)
        members = sparse.csr_matrix((np.ones(size, np.float32), (owners, np.arange(size))), shape=shape)
        sums: Floats = members @ sample
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0, sums / np.maximum(lengths, np.finfo(np.float32).tiny), centres)
    return centres


def _near_cells(centres: Floats, sizes: Places) -> list[Places]:
    near = []
    for cell, centre in enumerate(centres):
        closeness = centres @ centre
        closeness[cell] = np.inf
        ranked = np.argsort(-closeness, kind="stable")
        enough = np.searchsorted(np.cumsum(sizes[ranked]), COLUMNS) + 1
        near.append(ranked[:enough])
    return near
