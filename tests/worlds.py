"""Toy corpora whose results are known by construction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

WORDS_PER_TOPIC = 40
SHARED_WORDS = 40
TOPIC_FRACTION = 0.7  # of the words of a document


def planted_topics(docs: int = 300, topics: int = 4, seed: int = 0) -> list[dict[str, Any]]:
    """Draw documents from topics with words of their own and words that all topics share.

    Topics alternate, so their sizes differ by at most one. The label is the topic. Of every ten documents of
    a topic eight are in the split train, one in val and one in test.
    """
    rng = np.random.default_rng(seed)
    shared = [f"common{number}" for number in range(SHARED_WORDS)]
    records = []
    for number in range(docs):
        topic = number % topics
        length = int(rng.integers(20, 40))
        own = _draw(rng, topic_words(topic), int(length * TOPIC_FRACTION))
        words = own + _draw(rng, shared, length - len(own))
        split = {8: "val", 9: "test"}.get(number // topics % 10, "train")
        records.append(
            {
                "id": f"doc-{number}",
                "text": " ".join(rng.permutation(words)),
                "labels": [f"topic{topic}"],
                "split": split,
            }
        )
    return records


def topic_words(topic: int) -> list[str]:
    """Return the words that only documents of a topic have."""
    return [f"t{topic}word{number}" for number in range(WORDS_PER_TOPIC)]


def write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    """Write records as JSON lines and return the path."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """Limit files to `size` bytes, as if the disk were full."""
    import resource  # not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _draw(rng: np.random.Generator, words: list[str], count: int) -> list[str]:
    # Some words are more frequent than others, as in real texts.
    weights = 1.0 / np.arange(2, len(words) + 2)
    return [str(word) for word in rng.choice(words, size=count, p=weights / weights.sum())]
