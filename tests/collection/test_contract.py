"""The contract, in folders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.collection.contract import *  # noqa: F403
from tests.collection.engines import Engine, folders


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with folders() as one:
        yield one
