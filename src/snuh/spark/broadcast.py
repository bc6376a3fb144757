"""What the driver sends to every executor: arrays as files that are memory-mapped there, and models."""

from __future__ import annotations

import atexit
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import snuh
from snuh.collection.model_files import files_of, model_of
from snuh.errors import InputError
from snuh.model import Model, load
from snuh.spark.jobs import SparkError, check_version

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession

CSR_ARRAYS = ("data", "indices", "indptr")


@dataclass(frozen=True)
class BroadcastArrays:
    """A handle to arrays on the executors, found by name in the working folder or in the driver's folder."""

    token: str
    driver_folder: str  # the one to use where driver and executors are the same process

    def array(self, name: str) -> NDArray[Any]:
        """Memory-map an array."""
        filename = f"{self.token}-{name}.npy"
        # SparkContext.addFile copies files into the working folder of each executor.
        for folder in (Path.cwd(), Path(self.driver_folder)):
            if (folder / filename).is_file():
                array: NDArray[Any] = np.load(folder / filename, mmap_mode="r")
                return array
        raise SparkError(f"{filename} did not reach this executor: see its log")

    def csr_matrix(self, name: str, *, columns: int) -> sparse.csr_matrix:
        """Return a sparse matrix over memory-mapped arrays."""
        data, indices, indptr = (self.array(f"{name}-{part}") for part in CSR_ARRAYS)
        return sparse.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, columns))


def broadcast_arrays(
    spark: SparkSession,
    arrays: Mapping[str, NDArray[Any] | sparse.csr_matrix],
    *,
    extend: BroadcastArrays | None = None,
) -> BroadcastArrays:
    """Send arrays and sparse matrices to the executors, under the handle `extend` if given."""
    handle = extend
    if handle is None:
        handle = BroadcastArrays(f"snuh-{secrets.token_hex(4)}", tempfile.mkdtemp(prefix="snuh-broadcast-"))
        # An executor that starts later fetches every file ever added, so they stay until the driver exits.
        atexit.register(shutil.rmtree, handle.driver_folder, ignore_errors=True)
    for name, array in arrays.items():
        parts = {name: array}
        if sparse.issparse(array):
            parts = {f"{name}-{part}": getattr(array, part) for part in CSR_ARRAYS}
        for part, values in parts.items():
            path = Path(handle.driver_folder) / f"{handle.token}-{part}.npy"
            np.save(path, values, allow_pickle=False)
            spark.sparkContext.addFile(str(path))
    return handle


class BroadcastModel(NamedTuple):
    """A handle to a model's files on the executors."""

    fingerprint: str
    files: Broadcast[Mapping[str, bytes]]
    version: str  # of snuh, on the driver


def broadcast_model(spark: SparkSession, model: Model | Path | str) -> BroadcastModel:
    """Send a model of texts, or the one in a folder, to the executors."""
    loaded = model if isinstance(model, Model) else load(model)
    if loaded.features is None:
        raise InputError("this model was trained on a feature matrix: it cannot encode texts")
    files = files_of(loaded)
    return BroadcastModel(files.fingerprint, spark.sparkContext.broadcast(files.content), snuh.__version__)


_loaded: dict[str, Model] = {}  # a Python process of an executor runs many tasks


def load_model(handle: BroadcastModel) -> Model:
    """Load the model on an executor, once per process."""
    check_version(handle.version)
    if handle.fingerprint not in _loaded:
        _loaded.clear()
        _loaded[handle.fingerprint] = model_of(handle.files.value, where="this Spark job")
    return _loaded[handle.fingerprint]
