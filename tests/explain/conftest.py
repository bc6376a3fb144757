from __future__ import annotations

import pytest

from snuh.hasher import TextHasher
from snuh.model import Model
from tests.worlds import planted_topics

TOPICS = 4


@pytest.fixture(scope="session")
def records() -> list[dict[str, object]]:
    return planted_topics(docs=600, topics=TOPICS)


@pytest.fixture(scope="session")
def planted(records: list[dict[str, object]]) -> Model:
    """A model of four topics that each have words of their own.

    Started at random, so that all bits learn topics: of 32 directions of LSA most would be noise here.
    """
    quick = {
        "start": "random",
        "epochs": 12,
        "neighbors": 8,
        "trees": 4,
        "batch_size": 32,
        "learning_rate": 0.02,
    }
    model = TextHasher(bits=32, parameters=quick).fit([str(record["text"]) for record in records]).model_
    assert model is not None
    return model
