"""A collection for the server benchmarks: documents of planted topics, encoded by a model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from snuh.collection import Collection
from snuh.corpus import Document
from snuh.encoder import Encoder, Layer
from snuh.features import TfidfFeatures
from snuh.model import Model

BITS, TOPICS, WORDS_PER_TOPIC, COMMON = 64, 2_000, 10, 2_000
OWN_WORDS, COMMON_WORDS, QUERY_WORDS = 8, 2, 5
SCATTER = 1.8  # of the words of a topic around its code


def make(folder: Path, *, documents: int) -> None:
    """Create and fill a collection; deterministic for a number of documents."""
    with Collection.create(folder, random_model()) as collection:
        collection.add(drawn(documents))


def random_model() -> Model:
    """Return a model in which each topic has a code, and the words of a topic point roughly to it.

    The codes of texts therefore lie around those of topics, and differ from them in about one bit of twelve.
    """
    words = [*(topic_word(t, w) for t in range(TOPICS) for w in range(WORDS_PER_TOPIC)), *common_words()]
    features = TfidfFeatures(min_df=1, max_df=1.0, max_terms=100_000, language=None).fit(words)
    rng = np.random.default_rng(0)
    centroids = {topic: rng.choice([-1.0, 1.0], size=BITS) for topic in range(TOPICS)}
    weight = rng.normal(scale=SCATTER, size=(len(features.terms), BITS))
    for row, term in enumerate(features.terms):
        if match := re.fullmatch(r"topic(\d+)word\d+", term):
            weight[row] += centroids[int(match[1])]
    layer = Layer(weight, np.zeros(BITS), "sigmoid")
    return Model(Encoder((layer,), np.full(BITS, 0.5, dtype=np.float32)), features)


def drawn(count: int) -> Iterator[Document]:
    """Yield documents of a few words, with two fields."""
    rng = np.random.default_rng(1)
    common = common_words()
    for number in range(count):
        topic = int(rng.integers(TOPICS))
        own = [topic_word(topic, word) for word in rng.integers(WORDS_PER_TOPIC, size=OWN_WORDS).tolist()]
        other = [common[word] for word in rng.integers(COMMON, size=COMMON_WORDS).tolist()]
        yield Document(
            f"doc-{number}", " ".join(own + other), metadata={"kind": topic % 10, "number": number}
        )


def queries(count: int) -> list[str]:
    """Return texts of a few words on the topics."""
    rng = np.random.default_rng(2)
    return [
        " ".join(topic_word(topic, word) for word in rng.integers(WORDS_PER_TOPIC, size=QUERY_WORDS).tolist())
        for topic in rng.integers(TOPICS, size=count).tolist()
    ]


def topic_word(topic: int, word: int) -> str:
    """Return a word that only texts of one topic have."""
    return f"topic{topic}word{word}"


def common_words() -> list[str]:
    """Return the words that all texts share."""
    return [f"common{word}" for word in range(COMMON)]
