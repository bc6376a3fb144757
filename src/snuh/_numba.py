"""numba with the project's defaults, and when it is worth importing.

Importing numba takes half a second, and compiling kernels takes some more, once per installation. So what a
single search needs exists twice, as functions of the same names in two modules: one compiled by numba, the
other on NumPy alone. `Kernels` chooses between them; both return the same.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

from snuh.errors import import_extra

# A kernel's types are those of its arguments when it runs; numba has no type stubs.
Kernel: TypeAlias = Callable[..., Any]

# What fastmath may change: the order of floating-point operations. Infinities and NaN stay exact.
FASTMATH = {"contract", "reassoc", "nsz", "arcp"}
IMPORT_SECONDS = 1.0  # of importing numba and loading kernels

logger = logging.getLogger(__name__)


class Kernels:
    """Functions that exist in two modules, compiled by numba and on NumPy alone.

    NumPy is used until its versions have taken about as long as importing numba takes, so that nothing takes
    much more than twice the time of the better choice; and where numba is missing or cannot keep what it
    compiles.

    Args:
        compiled: name of the module to use from then on.
        plain: name of the module without numba.
    """

    _seconds = 0.0  # that plain kernels of all modules have taken

    def __init__(self, *, compiled: str, plain: str) -> None:
        self._compiled, self._plain = compiled, plain

    def __call__(self, seconds: float) -> Any:  # Any: one of two modules with the same functions
        """Return the module to use for work that takes the plain kernels about this long."""
        Kernels._seconds += seconds
        is_due = "numba" in sys.modules or Kernels._seconds >= IMPORT_SECONDS
        return import_module(self._compiled if is_due and can_compile() else self._plain)


def prefer_compiled() -> None:
    """Use compiled kernels from now on, where possible, as a process that runs for long does."""
    Kernels._seconds = IMPORT_SECONDS


@cache
def can_compile() -> bool:
    """Return whether numba is installed and has a folder to keep what it compiles in; imports it."""
    try:
        import numba
    except ModuleNotFoundError:
        return False
    try:
        numba.njit(cache=True)(usable_processors)  # any function: it is not compiled before it is called
    except RuntimeError:
        logger.warning("compiled code cannot be kept, so NumPy is used: set NUMBA_CACHE_DIR to a folder")
        return False
    return True


def njit(
    signature: str | None = None, *, parallel: bool = False, fastmath: bool = False
) -> Callable[[Kernel], Kernel]:
    """Compile a kernel with `numba.njit`: at import with a signature, on the first call without one.

    Compiled code is cached on disk, and kernels release the GIL.

    Args:
        signature: types of the arguments.
        parallel: run `prange` loops on several threads.
        fastmath: let sums be reordered, so that they can be vectorised.
    """
    numba = import_extra("numba")
    _announce_compilation()
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


@cache
def _announce_compilation() -> None:
    """Log when the first kernel of this package is compiled rather than loaded."""
    from numba.core import event

    class Announcement(event.Listener):
        is_pending = True

        def on_start(self, event: Any) -> None:
            module = event.data["dispatcher"].py_func.__module__
            if self.is_pending and module.startswith("snuh."):
                self.is_pending = False
                logger.info("compiling kernels, once per installation")

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcement())  # type: ignore[no-untyped-call]


def usable_processors() -> int:
    """Return the number of processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return len(affinity(0)) if affinity else os.cpu_count() or 1
