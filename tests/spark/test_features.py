"""Features by Spark equal those of one machine."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from snuh.features import TfidfFeatures
from snuh.spark.documents import normalize_columns
from snuh.spark.features import fit_features, gather_rows


def test_vocabulary_and_rows_equal_those_of_one_machine(spark: Any, records: list[dict[str, Any]]) -> None:
    odd = ["Straße STRASSE ΣΊΣΥΦΟΣ σίσυφος", "common0 İstanbul x y_z 42", "", "Common0 COMMON0 t0word1"]
    texts = [record["text"] for record in records[:200]] + odd * 2
    ids = [f"{number:04d}" for number in range(len(texts))]
    splits = ["test" if number % 7 == 0 else "train" for number in range(len(texts))]
    table = pa.table({"id": ids, "text": texts, "split": splits})
    frame = normalize_columns(spark.createDataFrame(table).repartition(5))
    settings: dict[str, Any] = {"max_terms": 60, "max_df": 0.9}
    train = [text for text, split in zip(texts, splits, strict=True) if split == "train"]
    local, distributed = TfidfFeatures(**settings).fit(train), TfidfFeatures(**settings)
    fit_features(frame, distributed)
    assert distributed.to_json() == local.to_json()  # terms, their order, and every bit of the idf
    rows, expected = gather_rows(frame, distributed).X, local.transform(train)
    assert (rows.indptr == expected.indptr).all() and (rows.indices == expected.indices).all()
    assert rows.data.tobytes() == expected.data.tobytes()
