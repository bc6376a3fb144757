"""Machine code from Python by numba, kept on disk where a folder for it can be written."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeAlias

# A kernel's types are those of its arguments when it runs; numba has no type stubs.
Kernel: TypeAlias = Callable[..., Any]


REORDERING = {"contract", "reassoc", "nsz", "arcp"}  # of floating-point operations; infinities and NaN stay


def compiled(
    signature: str | None = None, *, parallel: bool = False, reorder: bool = False
) -> Callable[[Kernel], Kernel]:
    """Decorate a kernel; with a signature it is compiled now, without one when it is first called.

    Args:
        signature: types of the arguments.
        parallel: run its `prange` loops on several threads.
        reorder: let sums be added up in another order, so that vector instructions can.
    """
    from numba import njit

    fastmath = REORDERING if reorder else False

    def decorate(function: Kernel) -> Kernel:
        kernel: Kernel
        try:
            kernel = njit(signature, nogil=True, parallel=parallel, fastmath=fastmath, cache=True)(function)
        except (RuntimeError, OSError):  # no writable folder, or a full disk
            kernel = njit(signature, nogil=True, parallel=parallel, fastmath=fastmath)(function)
        return kernel

    return decorate


# How many threads this process may use.


def usable_processors() -> int:
    """Return the number of processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1
