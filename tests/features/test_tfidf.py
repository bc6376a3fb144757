from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snuh.errors import InputError, ModelError
from snuh.features import TfidfFeatures, tfidf

TEXTS = ["red apple pie", "green apple tart", "red wine", "", "green tea and red tea"]


def fitted(**options: Any) -> TfidfFeatures:
    return TfidfFeatures(**{"min_df": 1, "max_df": 1.0, "stop_words": None, **options}).fit(TEXTS)


def test_rows_have_unit_length_and_empty_texts_have_empty_rows() -> None:
    rows = fitted().transform([*TEXTS, "nothing known"])
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1)).A1
    np.testing.assert_allclose(lengths, [1, 1, 1, 0, 1, 0], rtol=1e-6)
    assert rows.has_sorted_indices


def test_no_texts_give_no_rows() -> None:
    assert fitted().transform([]).shape == (0, len(fitted().terms))


def test_texts_are_streamed_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfidf, "BATCH_TEXTS", 2)
    whole = fitted().transform(TEXTS * 5)
    for threads in (1, 3):
        alive, most_alive = 0, 0

        class Text(str):
            __slots__ = ()

            def __del__(self) -> None:
                nonlocal alive
                alive -= 1

        def texts(make: Callable[[str], str] = Text) -> Iterator[str]:
            nonlocal alive, most_alive
            for text in TEXTS * 40:
                alive += 1
                most_alive = max(most_alive, alive)
                yield make(text)

        features = fitted()
        rows = features.transform(texts(), threads=threads)
        np.testing.assert_array_equal(rows[:25].toarray(), whole.toarray())
        assert most_alive < 20, "texts must not be kept"


def test_rows_do_not_depend_on_batches_or_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    features = fitted()
    expected = features.transform(TEXTS * 20, threads=1).toarray()
    monkeypatch.setattr(tfidf, "BATCH_TEXTS", 3)
    np.testing.assert_array_equal(features.transform(iter(TEXTS * 20), threads=3).toarray(), expected)


def test_saving_and_loading_through_json_keeps_every_bit() -> None:
    features = fitted(stop_words=["and"], sublinear_tf=True, max_terms=6)
    again = TfidfFeatures.from_json(json.loads(json.dumps(features.to_json())))
    assert again.to_json() == features.to_json()
    np.testing.assert_array_equal(again.transform(TEXTS).toarray(), features.transform(TEXTS).toarray())


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format", "other", "format"),
        ("format_version", 3, "version 3"),
        ("format_version", 1, "older snuh.*fit it again"),
        ("format_version", "1", "format_version"),
        ("parameters", [], "parameters"),
        ("parameters", {"min_df": -1}, "min_df"),
        ("parameters", {"language": "klingon"}, "two letters"),
        ("parameters", {"stop_words": "some"}, "stop_words"),
        ("analyzer", {}, "languages"),
        ("words", ["a"], "words"),
        ("words", [1], "words"),
        ("parameters", {"colour": "red"}, "colour"),
        ("documents", -1, "documents"),
        ("terms", "red", "terms"),
        ("terms", ["b", 1], "terms"),
        ("terms", ["b", "a"], "'a' after 'b'"),
        ("terms", ["a", "a"], "'a' after 'a'"),
        ("terms", ["a"], "1 term"),
        ("terms", [], "terms"),
        ("idf", {"a": 1}, "idf"),
        ("idf", [True], "idf"),
        ("idf", [1.0, float("nan")], "idf"),
        ("idf", [10**400], "idf"),
    ],
)
def test_a_tampered_vocabulary_is_refused_in_one_line(key: str, value: object, message: str) -> None:
    state = fitted().to_json()
    if key == "idf" and isinstance(value, list):
        state["terms"] = state["words"] = ["a", "b"][: len(value)]
    with pytest.raises(ModelError, match=message) as caught:
        TfidfFeatures.from_json({**state, key: value})
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelError):
        TfidfFeatures.from_json({name: part for name, part in state.items() if name != key})


def test_features_saved_before_they_were_fitted_are_refused() -> None:
    with pytest.raises(ModelError, match="no terms"):
        TfidfFeatures.from_json(TfidfFeatures().to_json())


def test_a_vocabulary_that_is_not_an_object_is_refused() -> None:
    with pytest.raises(ModelError, match="got list"):
        TfidfFeatures.from_json([])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_terms": 0}, "max_terms .* got 0"),
        ({"max_terms": True}, "max_terms"),
        ({"min_df": 0}, "min_df .* got 0"),
        ({"min_df": "2"}, "min_df .* got '2'"),
        ({"max_df": 1.5}, "max_df .* got 1.5"),
        ({"max_df": float("nan")}, "max_df .* got nan"),
        ({"min_df": 5, "max_df": 2}, "min_df must not be above max_df, got 5 and 2"),
        ({"min_df": 0.5, "max_df": 0.2}, "min_df must not be above max_df"),
        ({"language": "english"}, "two letters"),
        ({"language": ["en", 3]}, "two letters"),
        ({"stop_words": "french"}, "stop_words .* got 'french'"),
        ({"stop_words": [1]}, "stop_words"),
        ({"stemming": "yes"}, "stemming"),
        ({"sublinear_tf": 1}, "sublinear_tf"),
    ],
)
def test_an_invalid_setting_is_refused_by_the_constructor(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TfidfFeatures(**options)


def test_an_empty_vocabulary_is_explained() -> None:
    removed = "being a single letter removed 1, min_df=2 removed 2, max_df=2 removed 1"
    with pytest.raises(InputError, match=f"3 documents held 4 distinct words; {removed}$"):
        TfidfFeatures(stop_words=["and"], max_df=2).fit(["and red x", "and red x", "green red blue"])
    with pytest.raises(InputError, match=r"2 documents held 0 distinct words .*: check the texts"):
        TfidfFeatures(max_df=1.0).fit(["", "."])
    with pytest.raises(InputError, match=r"at least 1 document.*got 0"):
        TfidfFeatures().fit([])
    with pytest.raises(InputError, match=r"at least 2 \(min_df=2\) and at most 1.5 \(max_df=0.5\) of 3"):
        TfidfFeatures().fit(["red", "red", "red"])


def test_too_few_or_equal_documents_are_explained() -> None:
    for options in ({}, {"min_df": 1}, {"max_df": 1.0}):
        with pytest.raises(InputError, match=r"only 1 document .*: give more documents$"):
            TfidfFeatures(**options).fit(["red green"])
    with pytest.raises(InputError, match=r"of 3 documents: give more documents, or raise max_df$"):
        TfidfFeatures().fit(["red", "red", "red"])
    with pytest.raises(InputError, match=r"of 9 documents: lower min_df or raise max_df$"):
        TfidfFeatures(min_df=0.9, max_df=3).fit(["red"] * 9)
    with pytest.raises(InputError, match=r"1 document held 0 distinct words that are not stop words"):
        TfidfFeatures(stop_words=["red"], min_df=1, max_df=1.0).fit(["red"])
    same = r"max_df=0.5 removed 2: every document has the same words, give documents that differ$"
    with pytest.raises(InputError, match=same):
        TfidfFeatures(stop_words=["and"]).fit(["red and green", "red green", "green red", "red green"])
    with pytest.raises(InputError, match=r"min_df=3 removed 2, max_df=0.5 removed 1$"):
        TfidfFeatures(stop_words=None, min_df=3).fit(["red", "red", "red", "red", "red green", "red blue"])


def test_anything_but_an_iterable_of_texts_is_refused() -> None:
    features = fitted()
    with pytest.raises(InputError, match="got one str"):
        features.transform("one text")
    with pytest.raises(InputError, match="got one int"):
        features.fit(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"document 1: expected a text \(str\), got bytes"):
        features.transform(["fine", b"not"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="threads"):
        features.transform(TEXTS, threads=0)
    with pytest.raises(InputError, match="fit"):
        TfidfFeatures().transform(TEXTS)


def test_fitting_again_replaces_the_vocabulary() -> None:
    features = fitted()
    features.transform(TEXTS)
    features.fit(["brand new", "words only"])
    assert features.transform(["brand red"]).nnz == 1


def test_loading_and_a_few_texts_import_nothing_heavy(tmp_path: Path) -> None:
    saved = tmp_path / "vocabulary.json"
    saved.write_text(json.dumps(fitted().to_json()))
    program = (
        "import json, sys; from snuh.features import TfidfFeatures;"
        f"features = TfidfFeatures.from_json(json.load(open({str(saved)!r})));"
        "heavy = {'sklearn', 'numba', 'scipy'} & set(sys.modules);"
        "print(features.rows(['red apple']).nnz, heavy or 'none')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": str(Path(__file__).parents[2] / "src")})  # fmt: skip
    assert done.stdout.split() == ["2", "none"]
