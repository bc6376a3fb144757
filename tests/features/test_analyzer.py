"""The analyzer: hand-checked words of many scripts, and laws that hold for any text."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snuh.errors import InputError, ModelError
from snuh.features.analyzer import MAX_WORD, Analyzer, character_kinds, kind_of, segment

LITERAL = Analyzer(stemming=False)

# Letters whose lower case is longer (İ), depends on what follows (Σ) or has no upper case (ß); joiners;
# scripts with and without spaces, decomposed Hangul, several kinds of digits, characters beyond the BMP.
AWKWARD = (
    "aBcÉéİıßẞΣσςжЖ日本語ไทยहि한국어\u1112\u1161\u11abｶﾞ\u0307\u0301\u064bاکـ\u05b8שא"
    "1²½Ⅳ４_'’-\u2010#+·㎏ﷺǅ😀𐐀𠀀 .\n\t\u200d\u200c\u00ad\ufe0f\x00\ud83d"
)
TEXTS = st.one_of(st.text(alphabet=AWKWARD, max_size=60), st.text(max_size=60))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat's e-mail, don't x-ray it!", ["the", "cat's", "email", "don't", "xray", "it"]),
        ("State-of-the-art: well-known", ["state", "of", "the", "art", "well", "known"]),
        ("'quoted' rock 'n' roll O’Brien", ["quoted", "rock", "n", "roll", "o'brien"]),
        ("read_csv(__init__) _x_", ["read_csv", "init", "x"]),
        ("C++ and C#, not C ++ or a#b", ["c++", "and", "c#", "not", "c", "or", "a", "b"]),
        ("Ａｐｐｌｅ ﬁne 5㎏ ½", ["apple", "fine", "5", "1", "2"]),
        ("Straße STRASSE Füße", ["strasse", "strasse", "füsse"]),
        ("e\u0301te\u0301 ÉTÉ", ["été", "été"]),
        ("İstanbul IŞIK", ["istanbul", "işik"]),
        ("ΟΔΥΣΣΕΥΣ οδυσσεύς", ["οδυσσευσ", "οδυσσεύσ"]),
        ("Москва, объявление", ["москва", "объявление"]),
        ("हिन्दी में लिखा", ["हिन्दी", "में", "लिखा"]),
        ("বাংলা ভাষা", ["বাংলা", "ভাষা"]),
        ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
        ("مُحَمَّد كتاب كـتـاب", ["محمد", "كتاب", "كتاب"]),
        ("می‌خواهم", ["میخواهم"]),
        ("שָׁלוֹם צה״ל", ["שלום", "צה״ל"]),
        ("ქართული ენა", ["ქართული", "ენა"]),
        ("Հայերեն լեզու", ["հայերեն", "լեզու"]),
        ("አማርኛ ቋንቋ", ["አማርኛ", "ቋንቋ"]),
        ("今天天气很好,猫", ["今天", "天天", "天气", "气很", "很好", "猫"]),
        ("iPhone手机2023年", ["iphone", "手机", "2023", "年"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("ｶﾞｷﾞｸﾞ", ["ガギ", "ギグ"]),
        ("한국어 책", ["한국", "국어", "책"]),
        (unicodedata.normalize("NFD", "한국어"), ["한국", "국어"]),
        ("ภาษาไทย ๒๕", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย", "๒๕"]),
        ("ພາສາລາວ", ["ພາ", "າສ", "ສາ", "າລ", "ລາ", "າວ"]),
        ("ខ្មែរ", ["ខ្មែ", "មែរ"]),
        ("မြန်မာ", ["မြန်", "န်မာ"]),
        ("col·lecció", ["col·lecció"]),
        ("go'aan ẹ̀tọ́", ["go'aan", "ẹ̀tọ́"]),
        ("🎉 !!! — …", []),
    ],
)
def test_words_of_many_scripts(text: str, expected: list[str]) -> None:
    assert LITERAL.terms(text) == [unicodedata.normalize("NFKC", term) for term in expected]


@pytest.mark.parametrize(
    ("languages", "text", "expected"),
    [
        (["en"], "The companies' runners were running", ["the", "compani", "runner", "were", "run"]),
        (["de"], "Die Häuser der Drucker", ["die", "haus", "der", "druck"]),
        (["fr"], "L’homme qu'elle aime", ["homm", "elle", "aim"]),
        (["it"], "dell'amico nell’acqua", ["amic", "acqua"]),
        (["ru"], "Книги и книгами", ["книг", "и", "книг"]),
        (["ar"], "كتابهم الكِتاب", ["كتاب", "كتاب"]),
        (["de", "en"], "houses Häuser", ["hous", "haus"]),
        (["so"], "go'aan", ["go'aan"]),  # no stemmer
        ([], "houses", ["houses"]),
    ],
)
def test_words_are_stemmed_by_their_languages(languages: list[str], text: str, expected: list[str]) -> None:
    assert Analyzer(languages=languages).terms(text) == expected


def test_stop_words_are_left_out_before_and_after_an_elision() -> None:
    analyzer = Analyzer(languages=["fr", "en"], stop_words=["the", "elle", "don't"], stemming=False)
    assert analyzer.terms("The cat, qu'elle don’t l'eau dog's") == ["cat", "eau", "dog"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RandomForestClassifier", ["randomforestclassifier", "random", "forest", "classifi"]),
        ("read_csv", ["read_csv", "read", "csv"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("simple words, don't", ["simpl", "word", "don't"]),
    ],
)
def test_identifiers_give_their_parts_as_well(text: str, expected: list[str]) -> None:
    analyzer = Analyzer(languages=["en"], identifiers=True)
    assert analyzer.terms(text) == expected
    assert {(token.start, token.end) for token in analyzer.tokens(text)} == set(segment(text))


def test_numbers_and_hexadecimal_ids_are_folded() -> None:
    analyzer = Analyzer(fold_numbers=True)
    text = "worker 17 died at 0x7f8542d1 id deadbeef00 facade 3rd"
    assert analyzer.terms(text) == ["worker", "0", "died", "at", "0x", "id", "0x", "facade", "3rd"]


@given(TEXTS)
def test_spans_are_in_range_and_in_order(text: str) -> None:
    spans = segment(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert spans == sorted(spans) and len(set(spans)) == len(spans)
    analyzer = Analyzer(languages=["en", "fr"], identifiers=True, fold_numbers=True)
    tokens = analyzer.tokens(text)
    assert [token.term for token in tokens] == analyzer.terms(text) == Analyzer.terms(analyzer, text)
    assert all(token.term and (token.start, token.end) in spans for token in tokens)


@given(TEXTS)
def test_case_and_normal_form_make_no_difference(text: str) -> None:
    composed = unicodedata.normalize("NFC", text)
    decomposed = unicodedata.normalize("NFD", composed)
    if unicodedata.normalize("NFC", decomposed) == composed and len(text) < MAX_WORD // 4:
        assert LITERAL.terms(composed) == LITERAL.terms(decomposed)


@given(st.text(alphabet="aé今ก\u0301'_", min_size=MAX_WORD, max_size=5 * MAX_WORD))
def test_words_have_a_limited_length(text: str) -> None:
    assert all(end - start <= MAX_WORD + 2 for start, end in segment(text))


def test_an_analyzer_survives_json() -> None:
    analyzer = Analyzer(languages=["en"], stop_words=["the"], identifiers=True)
    again = Analyzer.from_json(json.loads(json.dumps(analyzer.to_json())))
    assert again.to_json() == analyzer.to_json()
    assert again.terms("The HttpServers") == analyzer.terms("The HttpServers")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"languages": "en"}, "languages must be a list"),
        ({"languages": ["english"]}, "two letters"),
        ({"stop_words": [1]}, "stop_words must be strings"),
        ({"stemming": 1}, "stemming must be a bool"),
    ],
)
def test_a_tampered_analyzer_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Analyzer.from_json({**Analyzer().to_json(), **change})
    with pytest.raises(ModelError, match="JSON object"):
        Analyzer.from_json([])


def test_a_language_is_a_code_of_two_letters() -> None:
    with pytest.raises(InputError, match=r"two letters .* got 'english'"):
        Analyzer(languages=["english"])


def test_the_kind_of_a_character_is_that_of_the_table() -> None:
    kinds = character_kinds()
    codes = [*range(0x30000), *range(0xE0000, 0xE0200), 0x10FFFF]
    assert [kind_of(code) for code in codes] == kinds[codes].tolist()
