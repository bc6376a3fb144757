from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.worlds import planted_topics

import snuh
from snuh.errors import InputError
from snuh.features.vectors import append_columns, check_vectors, join_rows, split_rows
from snuh.hasher import TextHasher
from snuh.metrics import precision_at_k

QUICK = {"epochs": 4, "neighbors": 6, "trees": 3}
DIMS = 6


def world() -> tuple[list[str], list[tuple[str, ...]], NDArray[np.float32]]:
    """Return texts, labels, and vectors that know the topic."""
    records = planted_topics(docs=240, topics=4, seed=0)
    labels = [tuple(record["labels"]) for record in records]
    rng = np.random.default_rng(1)
    vectors = np.array([np.eye(DIMS)[int(names[0][-1])] for names in labels])
    noisy = (vectors + 0.1 * rng.standard_normal(vectors.shape)).astype(np.float32)
    return [record["text"] for record in records], labels, noisy


def test_the_cosine_of_joined_rows_is_the_weighted_mean_of_both() -> None:
    rng = np.random.default_rng(0)
    from scipy import sparse

    dense = check_vectors(rng.random((3, 5)), documents=3)
    words, vectors = sparse.csr_matrix(dense), check_vectors(rng.standard_normal((3, 4)), documents=3)
    joined = join_rows(words, vectors, weight=0.3)
    expected = 0.7 * dense @ dense.T + 0.3 * vectors @ vectors.T
    np.testing.assert_allclose((joined @ joined.T).toarray(), expected, atol=1e-6)
    parts = split_rows(joined, 4)
    np.testing.assert_allclose(parts.words.toarray(), dense, atol=1e-6)
    np.testing.assert_allclose(parts.vectors, vectors, atol=1e-6)
    vectors[1] = 0
    alone = join_rows(words, vectors, weight=0.3)[1]
    np.testing.assert_allclose(alone.toarray(), append_columns(words[1], 4).toarray())


@pytest.mark.parametrize(
    ("vectors", "problem"),
    [
        (np.full((240, 3), np.nan), "NaN"),
        (np.zeros((240, 3)), "all zeros"),
        (np.ones((239, 3)), "a row for each document"),
        (np.full((240, 3), "a"), "numbers"),
        ([[1.0, 2.0]] * 239 + [[1.0]], "2 dimensions, got 1"),
    ],
)
def test_unusable_vectors_are_refused(vectors: object, problem: str) -> None:
    texts, _, _ = world()
    with pytest.raises(InputError, match=problem):
        TextHasher("itq", bits=16).fit(texts, vectors=vectors)


@pytest.mark.parametrize("method", ["itq", "snuh", "snuh-plus"])
def test_a_model_with_vectors_encodes_with_and_without_them(method: str, tmp_path: Path) -> None:
    texts, labels, vectors = world()
    hasher = TextHasher(method, bits=16, parameters={} if method == "itq" else QUICK)
    hasher.fit(texts, vectors=vectors).save(tmp_path / "model")
    model = snuh.load(tmp_path / "model")
    assert model.vectors is not None and model.vectors.dims == DIMS
    codes = model.encode(texts, vectors=vectors)
    np.testing.assert_array_equal(codes, hasher.encode(texts, vectors=vectors))
    assert precision_at_k(codes, labels, codes, labels, k=20) > 0.8
    words_alone = model.encode(texts)
    assert (words_alone != codes).any()
    assert precision_at_k(codes, labels, words_alone, labels, k=20) > 0.6
    with pytest.raises(InputError, match="6 dimensions, got 5"):
        model.encode(texts, vectors=vectors[:, :5])


@pytest.mark.parametrize("method", ["lsh", "sph", "sth"])
def test_closed_forms_read_joined_rows(method: str) -> None:
    texts, labels, vectors = world()
    hasher = TextHasher(method, bits=16).fit(texts, vectors=vectors)
    codes = hasher.encode(texts, vectors=vectors)
    assert (codes != hasher.encode(texts)).any()
    words = TextHasher(method, bits=16).fit(texts).encode(texts)
    assert precision_at_k(codes, labels, codes, labels, k=20) > precision_at_k(
        words, labels, words, labels, k=20
    )


def test_embed_makes_the_vectors() -> None:
    texts, _, vectors = world()
    by_text = dict(zip(texts, vectors, strict=True))

    def static(batch: list[str]) -> NDArray[np.float32]:
        return np.array([by_text[text] for text in batch])

    hasher = TextHasher("itq", bits=16, embed=static).fit(texts)
    assert hasher.model_ is not None and hasher.model_.vectors is not None
    assert hasher.model_.vectors.name == "static"
    given = TextHasher("itq", bits=16).fit(texts, vectors=vectors)
    np.testing.assert_array_equal(hasher.encode(texts), given.encode(texts, vectors=vectors))


def test_methods_that_read_words_alone_refuse_vectors() -> None:
    texts, _, vectors = world()
    with pytest.raises(InputError, match="vdsh reads words alone"):
        TextHasher("vdsh", bits=16).fit(texts, vectors=vectors)
    words = TextHasher("itq", bits=16).fit(texts)
    with pytest.raises(InputError, match="reads words alone"):
        words.encode(texts, vectors=vectors)
