"""The contract, in folders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.collection.contract import *  # noqa: F403
from tests.collection.engines import Engine, folders
from tests.collection.promises import FOLDER
from tests.collection.ways_in import *  # noqa: F403

PROMISES = FOLDER


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with folders() as one:
        yield one
