from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snuh.explain import term_spans
from snuh.features import TfidfFeatures
from snuh.features.tokenizer_numba import NumbaTermCounter
from snuh.features.vocabulary import DEFAULT_PATTERN, word_splitter

# Letters whose lower case is longer (İ), depends on what follows (Σ) or has no upper case (ß); combining
# marks, scripts without case, digits, underscores, characters beyond the basic plane, white space.
AWKWARD = "aBcÉéİıßẞΣσςΑ\u0307\u0301жЖ日本語ไทยहि1_²ⅣǅŒ😀𐐀𐐨 .-'\n\t\ud83d"
TEXTS = st.one_of(st.text(alphabet=AWKWARD, max_size=60), st.text(max_size=60))


def features_of(words: set[str], **settings: object) -> TfidfFeatures:
    """Return features whose vocabulary is exactly these words."""
    features = TfidfFeatures(min_df=1, max_df=1.0, stop_words=None, **settings)  # type: ignore[arg-type]
    state = features.to_json() | {"terms": sorted(words), "idf": [1.0] * len(words), "documents": 1}
    return TfidfFeatures.from_json(state)


def plain(text: str) -> str:
    """Lower-case one word; whether a sigma is final depends on the text around it."""
    return text.lower().replace("ς", "σ")


@given(text=TEXTS, lowercase=st.booleans())
def test_spans_are_the_words_that_the_features_count(text: str, lowercase: bool) -> None:
    words = Counter(word_splitter(DEFAULT_PATTERN, lowercase=lowercase)(text))
    features = features_of({*words, "unused"}, lowercase=lowercase)
    spans = term_spans(text, features)
    assert {word: len(offsets) for word, offsets in spans.items()} == dict(words)
    counted = NumbaTermCounter(features.terms, lowercase=lowercase).count([text])
    assert {features.terms[term] for term in counted.indices} == set(spans)
    for word, offsets in spans.items():
        for start, end in offsets:
            found = text[start:end]
            # The combining dot of a lower-case İ is no word character, but belongs to the same capital.
            assert plain(found).removesuffix("\u0307") == plain(word) if lowercase else found == word


@given(text=TEXTS, pattern=st.sampled_from([r"\w", r"\S+", r"(\w+)-", r"(?:a|b)\w*", r"\w+\s\w+"]))
def test_spans_follow_a_custom_token_pattern(text: str, pattern: str) -> None:
    words = Counter(word for word in re.findall(pattern, text.lower()) if word)
    spans = term_spans(text, features_of({*words, "unused"}, token_pattern=pattern))
    assert {word: len(offsets) for word, offsets in spans.items()} == dict(words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("İSTANBUL'da Çay, çay!", {"stanbul": ["STANBUL"], "da": ["da"], "çay": ["Çay", "çay"]}),
        ("ΟΔΟΣ στην ΟΔΟΣ", {"οδος": ["ΟΔΟΣ", "ΟΔΟΣ"], "στην": ["στην"]}),
        ("Straße STRAẞE", {"straße": ["Straße", "STRAẞE"]}),
        ("İİ 日本語 Москва москва", {"日本語": ["日本語"], "москва": ["Москва", "москва"]}),
        ("naïve NAÏVE e\u0301te\u0301", {"naïve": ["naïve", "NAÏVE"], "te": ["te"]}),
    ],
)
def test_spans_point_into_the_original_text(text: str, expected: dict[str, list[str]]) -> None:
    features = features_of(
        {"stanbul", "da", "çay", "οδος", "στην", "straße", "日本語", "москва", "naïve", "te"}
    )
    found = {
        word: [text[start:end] for start, end in offsets]
        for word, offsets in term_spans(text, features).items()
    }
    assert found == expected


def test_words_outside_the_vocabulary_have_no_spans() -> None:
    features = TfidfFeatures(min_df=1, max_df=1.0).fit(["the ship left the harbour"])  # "the" is a stop word
    assert term_spans("The SHIP the whale", features) == {"ship": [(4, 8)]}


def test_lower_case_has_at_least_one_character_in_any_context() -> None:
    # The mapping back from the lower-cased text relies on this.
    for code in range(0x110000):
        assert len(chr(code).lower()) >= 1
        assert len(f"a{chr(code)}b".lower()) == 2 + len(chr(code).lower())
