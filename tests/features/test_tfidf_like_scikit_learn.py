"""Given the same terms of a text, vocabulary, idf and rows are those of scikit-learn."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from tests.features.test_analyzer import TEXTS
from tests.kernels import VERSIONS, using

from snuh.features import TfidfFeatures
from snuh.features.analyzer import is_ideograph

MANY_LANGUAGES = [
    "今天天气很好,我们去公园散步。 今天 天气 很好",
    "مُحَمَّد كَتَبَ رِسَالَةً طويلة، كتب رسالة",
    "İstanbul'da IŞIK ışık İĞDE iğde DİYARBAKIR",
    "Die Straße ist größer als STRASSE; Füße, ẞ und ß",
    "ΟΔΥΣΣΕΥΣ ὈΔΥΣΣΕΎΣ Σ ΣΑΣ. ΣΑΣ",
    "emoji 👩‍👩‍👧 party 🎉party🎉 ok👍🏽ok x🎈",
    "snake_case __init__ _ a_ 9 42 ４２ ²³ ½¼ Ⅷ",
    "हिन्दी में लिखा हुआ पाठ हिन्दी",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐐀𐐨 beyond the BMP",
    "tab\tnew\nline\x00nul\x1cfs\x85nel\u2028ls \ud800lone surrogate\udfff",
    "",
    " . ! a b c",
    "the the the and of",
    "Die Straße beyond Istanbul, 今天天气, party",
    "the STRASSE beyond the party",
]


def both(texts: list[str], **options: Any) -> tuple[TfidfFeatures, TfidfVectorizer]:
    options = {"max_terms": 100_000, "min_df": 1, "max_df": 1.0, "sublinear_tf": True, **options}
    ours = TfidfFeatures(**options).fit(texts)

    def terms(text: str) -> list[str]:
        return [term for term in ours.analyzer.terms(text) if len(term) > 1 or is_ideograph(term)]

    theirs = {
        ("max_features" if name == "max_terms" else name): value
        for name, value in options.items()
        if name in ("max_terms", "min_df", "max_df", "sublinear_tf")
    }
    return ours, TfidfVectorizer(analyzer=terms, **theirs).fit(texts)


def assert_same_rows(ours: Any, theirs: Any) -> None:
    theirs = theirs.tocsr()
    theirs.sort_indices()
    assert ours.shape == theirs.shape
    assert ours.dtype == np.float32 and ours.indices.dtype == np.int32
    np.testing.assert_array_equal(ours.indptr, theirs.indptr)
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_allclose(ours.data, theirs.data, rtol=2e-7)  # float32 of the same float64


@pytest.fixture(params=VERSIONS)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Count in Python or with numba, whatever the size of the input."""
    with using(request.param):
        yield


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sublinear_tf": False},
        {"min_df": 2},
        {"max_df": 0.15},
        {"min_df": 0.1, "max_df": 3},
        {"language": ["en", "de"]},
        {"stop_words": ["strasse", "今天"]},
        {"identifiers": True, "fold_numbers": True},
    ],
    ids=str,
)
def test_every_setting_gives_the_vocabulary_and_rows_of_scikit_learn(
    options: dict[str, Any], way: None
) -> None:
    ours, theirs = both(MANY_LANGUAGES, **options)
    assert ours.terms == theirs.get_feature_names_out().tolist()
    np.testing.assert_allclose(ours.idf, theirs.idf_, rtol=1e-15)
    assert_same_rows(ours.transform(MANY_LANGUAGES), theirs.transform(MANY_LANGUAGES))
    unseen = [text[::-1] for text in MANY_LANGUAGES]
    assert_same_rows(ours.transform(unseen), theirs.transform(unseen))


@settings(max_examples=100)
@given(texts=st.lists(TEXTS, min_size=1, max_size=6))
def test_any_text_gives_the_rows_of_scikit_learn(texts: list[str]) -> None:
    texts = ["always here", *texts]
    ours, theirs = both(texts)
    assert ours.terms == theirs.get_feature_names_out().tolist()
    assert_same_rows(ours.transform(texts), theirs.transform(texts))


def test_max_terms_keeps_the_most_frequent_terms_like_scikit_learn() -> None:
    # Word i occurs i times, so there are no ties.
    texts = [" ".join(f"word{number:02}" for number in range(40) if number > text) for text in range(39)]
    ours, theirs = both(texts, max_terms=7)
    assert len(ours.terms) == 7
    assert ours.terms == theirs.get_feature_names_out().tolist()


def test_equally_frequent_terms_are_chosen_by_the_alphabet() -> None:
    features = TfidfFeatures(max_terms=3, min_df=1, max_df=1.0)
    assert features.fit(["delta beta alpha", "gamma delta omega"]).terms == ["alpha", "beta", "delta"]


@pytest.mark.skipif("SNUH_DATA" not in os.environ, reason="SNUH_DATA names no folder with corpora")
@pytest.mark.parametrize("name", ["ng20", "agnews", "thucnews_zh"])
def test_real_corpora_give_the_rows_of_scikit_learn(name: str) -> None:
    path = Path(os.environ["SNUH_DATA"]) / f"{name}.jsonl.gz"
    if not path.exists():
        pytest.skip(f"SNUH_DATA has no {name}.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line, _ in zip(lines, range(1500), strict=False)]
    ours, theirs = both(texts, min_df=2, max_df=0.5)
    assert ours.terms == theirs.get_feature_names_out().tolist()
    assert_same_rows(ours.transform(texts), theirs.transform(texts))
