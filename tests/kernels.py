"""Running a test on both versions of the kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

import pytest

from snuh import _numba

Version = Literal["numpy", "numba"]
VERSIONS: tuple[Version, ...] = get_args(Version)


@contextmanager
def using(version: Version) -> Iterator[None]:
    """Use one version of all kernels, however much there is to do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_numba, "can_compile", lambda: version == "numba")
        patch.setattr(_numba.Kernels, "_seconds", math.inf)
        yield
