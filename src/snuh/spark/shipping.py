"""Arrays that every executor gets as files of its own, and maps into memory instead of reading them whole."""

from __future__ import annotations

import atexit
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from snuh.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CSR_PARTS = ("data", "indices", "indptr")


@dataclass(frozen=True)
class Shipment:
    """Where the arrays are: by their names in an executor's working folder, or in the driver's folder."""

    token: str
    folder: str  # the driver's, for masters that run everything in one place

    def array(self, name: str) -> NDArray[Any]:
        """Map an array into memory."""
        file = f"{self.token}-{name}.npy"
        # Spark puts the files added to it into the working folder of each executor.
        for place in (Path.cwd(), Path(self.folder)):
            if (place / file).is_file():
                found: NDArray[Any] = np.load(place / file, mmap_mode="r")
                return found
        raise InputError(f"{file} did not reach this executor: look at its log")

    def rows(self, name: str, *, columns: int) -> sparse.csr_matrix:
        """Return sparse rows over mapped arrays."""
        data, indices, indptr = (self.array(f"{name}-{part}") for part in CSR_PARTS)
        return sparse.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, columns))


def send_arrays(
    spark: SparkSession,
    arrays: Mapping[str, NDArray[Any] | sparse.csr_matrix],
    *,
    after: Shipment | None = None,
) -> Shipment:
    """Send arrays and sparse rows to the executors, with what was sent before."""
    if after is None:
        after = Shipment(f"snuh-{secrets.token_hex(4)}", tempfile.mkdtemp(prefix="snuh-shipment-"))
        # An executor that starts later asks for every file that was ever added, so they stay to the end.
        atexit.register(shutil.rmtree, after.folder, ignore_errors=True)
    for name, array in arrays.items():
        parts = {name: array}
        if sparse.issparse(array):
            parts = {f"{name}-{part}": getattr(array, part) for part in CSR_PARTS}
        for part, values in parts.items():
            path = Path(after.folder) / f"{after.token}-{part}.npy"
            np.save(path, values, allow_pickle=False)
            spark.sparkContext.addFile(str(path))
    return after
