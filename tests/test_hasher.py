from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import snuh
from snuh.corpus import open_source
from snuh.errors import InputError, MissingExtraError
from snuh.hasher import TextHasher
from snuh.metrics import precision_at_k
from snuh.progress import Progress
from tests.worlds import planted_topics, write_jsonl

QUICK = {"epochs": 4, "neighbors": 6, "trees": 3}


def texts_and_labels(docs: int = 240) -> tuple[list[str], list[tuple[str, ...]]]:
    records = planted_topics(docs=docs, topics=4, seed=0)
    return [record["text"] for record in records], [tuple(record["labels"]) for record in records]


def test_texts_become_codes_that_find_their_topic() -> None:
    texts, labels = texts_and_labels()
    codes = TextHasher(bits=32, parameters=QUICK).fit(texts).encode(texts)
    assert codes.shape == (240, 4)
    assert precision_at_k(codes, labels, codes, labels, k=20) > 0.8


def test_a_saved_hasher_is_loaded_as_a_model_with_the_same_codes(tmp_path: Path) -> None:
    texts, _ = texts_and_labels()
    hasher = TextHasher("snuh", bits=16, seed=3, parameters=QUICK).fit(texts)
    hasher.save(tmp_path / "model")
    model = snuh.load(tmp_path / "model")
    np.testing.assert_array_equal(model.encode(texts), hasher.encode(texts))
    assert model.method == "snuh"
    assert model.parameters["neighbors"] == 6
    assert model.training["seed"] == 3
    assert model.training["versions"]["torch"]


def test_train_is_for_training_val_is_held_out_and_test_is_not_used(tmp_path: Path) -> None:
    records = planted_topics(docs=240, topics=4, seed=0)
    for number, record in enumerate(records):
        record["split"] = ("train", "train", "val", "test")[number % 4]
        record["text"] += f" only{record['split']} only{record['split']}"
    write_jsonl(tmp_path / "docs.jsonl", records)
    features = {"max_df": 1.0}
    hasher = TextHasher(bits=16, features=features, parameters=QUICK)
    model = hasher.fit_source(open_source(tmp_path / "docs.jsonl")).model_
    assert model is not None and model.features is not None
    assert model.training["documents"] == 120
    assert "onlytrain" in model.features.terms
    assert not {"onlyval", "onlytest"} & set(model.features.terms)


def test_every_stage_reports_its_progress() -> None:
    reports: list[Progress] = []
    TextHasher(bits=16, parameters=QUICK).fit(texts_and_labels()[0], on_progress=reports.append)
    stages = list(dict.fromkeys(report.stage for report in reports))
    assert stages == ["similarity", "graph", "trees", "training"]  # a list in memory is read at once
    assert sum(report.epoch is not None for report in reports) == 4


def test_documents_without_a_known_word_are_counted_in_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    texts, _ = texts_and_labels()
    with caplog.at_level(logging.WARNING, logger="snuh"):
        TextHasher(bits=16, parameters=QUICK).fit([*texts, "", "!!!"])
    assert "2 of 242 documents have no known word" in caplog.text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bits": 12}, "bits must be a multiple of 8"),
        ({"method": "snu"}, r'unknown method "snu" \(did you mean "snuh"'),
        ({"parameters": {"tree": 3}}, r'no "tree" \(did you mean "trees"'),
        ({"features": {"max_term": 3}}, r'no "max_term" \(did you mean "max_terms"'),
        ({"parameters": {"beta": -1}}, "beta must be 0 or more, got -1"),
    ],
)
def test_bad_settings_are_refused_before_any_text_is_read(changes: dict[str, object], message: str) -> None:
    class Unreadable:
        def __iter__(self) -> None:
            raise AssertionError("the texts were read")

    with pytest.raises(InputError, match=message):
        TextHasher(**{"bits": 16, **changes}).fit(Unreadable())


def test_a_wrong_field_is_reported_before_words_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "news.csv").write_text("number;headline\n1;rain\n", encoding="utf-8")
    monkeypatch.setattr("snuh.hasher.TfidfFeatures", lambda: None)  # whose kernels take long to compile
    with pytest.raises(InputError, match='there is no field "text"'):
        TextHasher().fit(open_source(tmp_path / "news.csv"))


def test_documents_of_any_kind_give_the_same_codes() -> None:
    texts, _ = texts_and_labels()
    frame = pd.DataFrame({"id": range(len(texts)), "text": texts})
    expected = TextHasher("itq", bits=16).fit(texts).encode(texts)
    for documents in (frame, pa.table(frame), frame.to_dict("records"), frame["text"]):
        hasher = TextHasher("itq", bits=16).fit(documents)
        assert (hasher.encode(documents) == expected).all()
    hasher = TextHasher("itq", bits=16).fit(text for text in texts)
    assert (hasher.encode(text for text in texts) == expected).all()


@pytest.mark.parametrize("documents", ["one text", 7, {"text": "one"}])
def test_a_single_document_is_refused(documents: object) -> None:
    with pytest.raises(InputError, match="expected several documents, got one"):
        TextHasher("itq").fit(documents)


def test_encoding_before_fitting_says_what_to_do() -> None:
    with pytest.raises(InputError, match="call fit"):
        TextHasher().encode(["text"])


def test_training_without_torch_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [name for name in sys.modules if name.startswith(("snuh.methods.", "snuh.training."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r'training needs PyTorch: pip install "snuhash\[train\]"'):
        TextHasher().fit(["a", "b"])
