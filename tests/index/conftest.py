from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kernels import VERSIONS, using


@pytest.fixture(params=VERSIONS, scope="module", autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test twice: on NumPy alone, and compiled."""
    with using(request.param):
        yield
