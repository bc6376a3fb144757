"""The contract, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.collection.contract import *  # noqa: F403
from tests.collection.engines import Engine, postgres
from tests.collection.promises import POSTGRESQL
from tests.collection.ways_in import *  # noqa: F403

PROMISES = POSTGRESQL


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with postgres() as one:
        yield one
