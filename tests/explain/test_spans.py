from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from snuh.explain import term_spans
from snuh.features import TfidfFeatures
from snuh.features.analyzer import Analyzer
from snuh.features.weighting import TermCounter
from tests.features.test_analyzer import TEXTS


def features_of(terms: set[str], **settings: object) -> TfidfFeatures:
    """Return features whose vocabulary is exactly these terms."""
    state = TfidfFeatures().to_json() | {
        "analyzer": Analyzer(**settings).to_json(),  # type: ignore[arg-type]
        "terms": sorted(terms),
        "words": sorted(terms),
        "idf": [1.0] * len(terms),
        "documents": 1,
    }
    return TfidfFeatures.from_json(state)


@given(text=TEXTS)
def test_spans_are_the_terms_that_the_features_count(text: str) -> None:
    terms = Counter(Analyzer(languages=["en"]).terms(text))
    features = features_of({*terms, "unused"}, languages=["en"])
    spans = term_spans(text, features)
    assert {term: len(offsets) for term, offsets in spans.items()} == dict(terms)
    counted = TermCounter(features.terms, features.analyzer).count([text])
    assert {features.terms[term] for term in counted.indices} == set(spans)
    for term, offsets in spans.items():
        for start, end in offsets:
            assert term in features.analyzer.expand(text[start:end])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("İSTANBUL'da Çay, çay!", {"istanbul'da": ["İSTANBUL'da"], "çay": ["Çay", "çay"]}),
        ("ΟΔΟΣ στην ΟΔΟΣ", {"οδοσ": ["ΟΔΟΣ", "ΟΔΟΣ"]}),
        ("Straße STRAẞE", {"strasse": ["Straße", "STRAẞE"]}),
        ("日本語 Москва москва", {"日本": ["日本"], "本語": ["本語"], "москва": ["Москва", "москва"]}),
        ("naïve NAÏVE e\u0301te\u0301", {"naïve": ["naïve", "NAÏVE"], "été": ["e\u0301te\u0301"]}),
    ],
)
def test_spans_point_into_the_original_text(text: str, expected: dict[str, list[str]]) -> None:
    terms = {"istanbul'da", "çay", "οδοσ", "strasse", "日本", "本語", "москва", "naïve", "été"}
    found = {
        term: [text[start:end] for start, end in offsets]
        for term, offsets in term_spans(text, features_of(terms)).items()
    }
    assert found == expected


def test_words_outside_the_vocabulary_have_no_spans() -> None:
    features = TfidfFeatures(min_df=1, max_df=1.0, language="en").fit(["the ships left the harbour"])
    assert term_spans("The SHIP the whale", features) == {"ship": [(4, 8)]}
