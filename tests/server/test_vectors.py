"""Vectors in requests and responses, without a server: the functions behind the routes and the client."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from snuh.client import calls, responses
from snuh.collection import Collection
from snuh.collection.results import info_to_json
from snuh.corpus import Document
from snuh.errors import InputError
from snuh.server.schemas import BatchRequest, NewDocument, SearchRequest
from snuh.server.service import explanation_to_json, search_texts
from snuh.spark.encoding import _encode_batch
from tests.collection.test_vectors import EAST, NORTH, model_of_vectors


def test_documents_and_queries_carry_vectors_over_http(tmp_path: Path) -> None:
    line = responses.document_line(Document("far", "ship", vector=np.array(EAST, dtype=np.float32)))
    records = [NewDocument.model_validate_json(line).record, {"id": "near", "text": "rope", "vector": NORTH}]
    with Collection.create(tmp_path / "c", model_of_vectors()) as collection:
        collection.add(records)
        bodies = [calls.search("fog", {"mode": "codes"}, vector=vector).json for vector in (NORTH, EAST)]
        bodies.append({"text": "fog", "mode": "codes", "vector": [1.0]})
        found = search_texts(
            collection, [SearchRequest.model_validate(body) for body in bodies], max_bytes=sys.maxsize
        )
        assert [json.loads(found[row])["hits"][0]["id"] for row in (0, 1)] == ["near", "far"]
        assert isinstance(found[2], InputError)  # an error is about one's own vector
        info = collection.info()
        payload = json.loads(json.dumps(info_to_json(info, {})))
        read = responses.parse_info(payload | {"has_words": True}, name=info.name)
        assert (read.vectors, read.vector_fraction) == (info.vectors, info.vector_fraction)
        explained = explanation_to_json(collection.model, "fog", "ship", query_vector=NORTH)
        assert "[vector]" in [word["word"] for word in explained["query_words"]]
        assert "words alone" in explained["note"]


def test_a_batch_has_a_vector_or_null_for_each_text() -> None:
    (call,) = calls.search_many(["a", "b"], {"k": 3}, vectors=[None, np.array(NORTH)])
    assert BatchRequest.model_validate(call.json).vectors == [None, NORTH]
    (call,) = calls.search_many(["a", "b"], {"k": 3})
    assert "vectors" not in (call.json or {})
    with pytest.raises(InputError, match="finite"):
        calls.search("a", {}, vector=[float("nan")])


def test_spark_encodes_a_column_of_vectors() -> None:
    model = model_of_vectors()
    columns = {"id": ["a", "b"], "text": ["ship", "rope"]}
    with_vectors = pa.RecordBatch.from_pydict({**columns, "vector": [NORTH, None]})
    codes = _encode_batch(model, with_vectors).codes
    alone = _encode_batch(model, pa.RecordBatch.from_pydict(columns)).codes
    assert (codes[0] != alone[0]).any() and (codes[1] == alone[1]).all()
    np.testing.assert_array_equal(codes[:1], model.encode(["ship"], vectors=[NORTH]))
