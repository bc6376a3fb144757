"""numba with the project's defaults: compiled code is cached on disk, and kernels release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeAlias

# A kernel's types are those of its arguments when it runs; numba has no type stubs.
Kernel: TypeAlias = Callable[..., Any]

# What fastmath may change: the order of floating-point operations. Infinities and NaN stay exact.
FASTMATH = {"contract", "reassoc", "nsz", "arcp"}


def njit(
    signature: str | None = None, *, parallel: bool = False, fastmath: bool = False
) -> Callable[[Kernel], Kernel]:
    """Compile a kernel with `numba.njit`: at import with a signature, on the first call without one.

    Args:
        signature: types of the arguments.
        parallel: run `prange` loops on several threads.
        fastmath: let sums be reordered, so that they can be vectorised.
    """
    import numba

    options: dict[str, Any] = {
        "nogil": True,
        "parallel": parallel,
        "fastmath": FASTMATH if fastmath else False,
    }

    def decorate(function: Kernel) -> Kernel:
        kernel: Kernel
        try:
            kernel = numba.njit(signature, cache=True, **options)(function)
        except (RuntimeError, OSError):  # no writable cache directory, or a full disk
            kernel = numba.njit(signature, **options)(function)
        return kernel

    return decorate


def usable_processors() -> int:
    """Return the number of processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1
