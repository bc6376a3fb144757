"""Collections whose model reads vectors beside the words; vectors are not stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from snuh.cli.manage import _describe_vectors
from snuh.collection import Collection
from snuh.collection.copy import copy_collection
from snuh.collection.results import info_to_json
from snuh.corpus import Document
from snuh.encoder import Encoder, Layer
from snuh.errors import InputError
from snuh.explain.hit import VECTOR
from snuh.features import TfidfFeatures
from snuh.features.vectors import VectorInfo
from snuh.model import Model
from tests.collection.worlds import WORDS, toy_model

DIMS = 3
NORTH, EAST = [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]


def model_of_vectors() -> Model:
    """Return a model with random weights, of which those of the vector are large."""
    features = TfidfFeatures(min_df=1, max_df=1.0, language=None).fit(WORDS)
    terms = len(features.terms)
    weight = np.random.default_rng(0).normal(size=(terms + DIMS, 32)).astype(np.float32)
    weight[terms:] *= 5
    encoder = Encoder((Layer(weight, np.zeros(32), "sigmoid"),), np.full(32, 0.5), vector_dims=DIMS)
    return Model(encoder, features, "toy", vectors=VectorInfo("compass", DIMS))


def compass(texts: list[str]) -> NDArray[np.float32]:
    """Embed texts: those with ice in the north, others in the east."""
    return np.array([NORTH if "ice" in text else EAST for text in texts], dtype=np.float32)


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    with Collection.create(tmp_path / "c", model_of_vectors()) as created:
        yield created


def test_documents_are_found_by_the_vectors_that_they_came_with(collection: Collection) -> None:
    rows = [
        {"id": "far", "text": "ship", "vector": EAST, "year": 1},
        {"id": "near", "text": "market", "vector": NORTH},
    ]
    collection.add([*rows, {"id": "words", "text": "coin"}])
    assert collection.get("far").metadata == {"year": 1}  # the vector is not metadata
    hits = collection.search("fog", vector=NORTH, mode="codes")
    assert hits[0].document.id == "near"
    assert collection.search("fog", vector=EAST, mode="codes")[0].document.id == "far"
    assert collection.search("fog", vector=NORTH)[0].document.id == "near"  # by words and codes
    assert collection.search("fog", vector=EAST, rerank="cosine")[0].document.id == "far"
    info = collection.info()
    assert info.vectors == VectorInfo("compass", DIMS) and info.vector_fraction == pytest.approx(2 / 3)
    assert info_to_json(info, {})["vectors"]["embedding"] is None
    assert "words alone" in _describe_vectors(info)
    assert collection.check() == []


def test_vectors_of_queries_may_be_an_array(collection: Collection) -> None:
    collection.add(
        [{"id": "far", "text": "ship", "vector": EAST}, {"id": "near", "text": "ice", "vector": NORTH}]
    )
    listed = collection.search_many(["fog", "coin"], vectors=[NORTH, EAST], mode="codes")
    assert [hits[0].document.id for hits in listed] == ["near", "far"]
    assert collection.search_many(["fog", "coin"], vectors=np.array([NORTH, EAST]), mode="codes") == listed


def test_a_change_of_metadata_keeps_the_code_of_a_vector(collection: Collection) -> None:
    collection.add([{"id": "a", "text": "ship", "vector": NORTH}])
    before = collection.codes(["a"])
    collection.update("a", {"year": 2})
    assert collection.codes(["a"]) == before and collection.get("a").metadata == {"year": 2}
    collection.update("a", {"vector": EAST})
    by_vector = collection.codes(["a"])
    assert by_vector != before
    collection.update("a", {"text": "ship market"})
    assert collection.codes(["a"])["a"] == collection.model.encode(["ship market"])[0].tobytes() != by_vector


def test_a_document_of_unknown_words_has_the_code_of_its_vector(collection: Collection) -> None:
    assert collection.add([{"id": "a", "text": "zzz", "vector": NORTH}]).without_code == 0
    assert collection.add([{"id": "b", "text": "zzz"}]).without_code == 1


def test_an_embedding_makes_the_vectors(tmp_path: Path) -> None:
    Collection.create(tmp_path / "c", model_of_vectors()).close()
    with Collection(tmp_path / "c", embed=compass) as collection:
        collection.add([Document("cold", "ice ship"), Document("warm", "market")])
        assert collection.info().embedding == "compass"
        assert collection.search("ice", mode="codes")[0].document.id == "cold"
        explanation = collection.explain("ice fog", "cold")
        assert explanation.note is None
        assert [word.word for word in explanation.query_words].count(VECTOR) == 1
        stored = collection.codes(["cold", "warm"])
    with Collection(tmp_path / "c") as collection:
        assert "words alone" in str(collection.explain("ice fog", "cold").note)
        collection.rehash(model_of_vectors())  # without the embedding: words alone
        assert collection.info().vector_fraction == 0
    with Collection(tmp_path / "c", embed=compass) as collection:
        collection.rehash(model_of_vectors())
        assert collection.codes(["cold", "warm"]) == stored
        copy_collection(tmp_path / "c", tmp_path / "copy")
    with Collection(tmp_path / "copy") as copy:
        assert copy.codes(["cold", "warm"]) == stored


@pytest.mark.parametrize(
    ("vector", "problem"),
    [
        ([1.0, 2.0], "3 dimensions, got 2"),
        ([0.0, 0.0, 0.0], "all zeros"),
        ([0.0, float("nan"), 1.0], "NaN"),
        (["a", "b", "c"], "list of numbers"),
        ("abc", "list of numbers, got a string"),
    ],
)
def test_nothing_is_written_if_a_vector_is_unusable(
    collection: Collection, vector: object, problem: str
) -> None:
    rows = [{"id": "a", "text": "ship", "vector": NORTH}, {"id": "b", "text": "ship", "vector": vector}]
    with pytest.raises(InputError, match=problem):
        collection.add(rows)
    assert len(collection) == 0


def test_a_model_of_words_refuses_vectors(tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c", toy_model()) as collection:
        with pytest.raises(InputError, match="reads words alone"):
            collection.add([Document("a", "ship", vector=np.array(NORTH))])
        with pytest.raises(InputError, match="reads words alone"):
            collection.search("ship", vector=NORTH)
        collection.add([{"id": "a", "text": "ship", "vector": NORTH}])  # metadata, as before
        assert collection.get("a").metadata == {"vector": NORTH}
