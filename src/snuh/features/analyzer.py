r"""The analyzer: from a text to the terms that everything else counts, compares and highlights.

It works in two steps. `segment` finds the words of a text as they are written; it only looks at the kinds of
characters, so words carry exact spans. `expand` turns one written word into terms: Unicode normalization
(NFKC), case folding, stop words, stemming, parts of identifiers. It depends on nothing but the word, so it is
computed once per distinct word; `snuh.features.tokenizer_numba` does the same in bulk.

Scripts with spaces give words: letters, digits and combining marks, with apostrophes and underscores inside
("don't", "read_csv"), and with the hyphen of "e-mail" or "x-ray" ("well-known" is two words). Scripts without
spaces, and Hangul, give overlapping pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snuh.errors import InputError, ModelError

# Kinds of characters. Anything else separates words.
OTHER, LETTER, DIGIT, IDEOGRAPH, MARK, INVISIBLE, APOSTROPHE, UNDERSCORE, HYPHEN, HASH, PLUS = range(11)

MAX_WORD = 100  # characters; longer ones, such as base64, are cut into pieces
MAX_MARKS = 8  # combining marks after an ideograph
CACHED_WORDS = 200_000

# Scripts written without spaces (letters only: their digits and marks keep their kinds), and Hangul.
_IDEOGRAPHS = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F),  # Burmese
    (0x1100, 0x115F), (0x3131, 0x318E), (0xA960, 0xA97C), (0xAC00, 0xD7A3), (0xFFA0, 0xFFDC),  # Hangul
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF), (0x1A20, 0x1AAF),  # Tai scripts
    (0x3005, 0x3007), (0x3021, 0x3029), (0x3038, 0x303B), (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFD),
    (0x3041, 0x3096), (0x309D, 0x309F), (0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF),  # Kana
    (0xFF66, 0xFF9D), (0x1B000, 0x1B16F),
)  # fmt: skip
_RADICALS = (0x2E80, 0x2FD5)  # symbols that NFKC turns into Han characters, found in text from PDF
# Vowels and finals of decomposed Hangul, and the voicing marks of half-width Kana.
_LIKE_MARKS = ((0x1160, 0x11FF), (0xD7B0, 0xD7FB), (0xFF9E, 0xFF9F))
_INVISIBLES = ((0xAD, 0xAD), (0x61C, 0x61C), (0x200C, 0x200F), (0x202A, 0x202E), (0x2060, 0x2064),
               (0x2066, 0x2069), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xE0100, 0xE01EF))  # fmt: skip
_APOSTROPHES = "'\u2019\uff07\u05f3\u05f4\u00b7"  # typographic, full-width, geresh, gershayim, Catalan l·l
_HYPHENS = "-\u2010\u2011"
# Removed from words: Hebrew points, Arabic vowel signs and the tatweel, which most texts leave out.
_POINTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]"
)

_INVISIBLE = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in _INVISIBLES) + "]")
_MARKS = ("Mn", "Mc", "Me")  # categories of Unicode
_SPECIAL = {APOSTROPHE: _APOSTROPHES, HYPHEN: _HYPHENS, UNDERSCORE: "_", HASH: "#", PLUS: "+"}

# Words are found in the symbols of the kinds of a text's characters.
SYMBOLS = " LDIMV'_-#+"
_WORD = re.compile(
    r"(?:L-(?=LL))?[LD](?:[LDMV]|['_](?=[LD]))"
    f"{{0,{MAX_WORD - 1}}}"
    r"(?:(?:\+\+|\#)(?![LDMV_+#]))?"
    rf"|(?P<run>(?:I[MV]{{0,{MAX_MARKS}}})+)"
)
_CLUSTER = re.compile(rf"I[MV]{{0,{MAX_MARKS}}}")
_WORD_ASCII = re.compile(
    r"(?:[A-Za-z]-(?=[A-Za-z]{2}))?[A-Za-z0-9](?:[A-Za-z0-9]|['_](?=[A-Za-z0-9]))"
    f"{{0,{MAX_WORD - 1}}}"
    r"(?:(?:\+\+|\#)(?![A-Za-z0-9_+#]))?"
)
_PARTS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\x00-\x7f]+")
_NUMBER = re.compile(r"[0-9]+")
_HEX = re.compile(r"(?:0x[0-9a-f]+|(?=[a-f]*[0-9])[0-9a-f]{8,})")
NUMBER, HEX = "0", "0x"  # what folded numbers and hexadecimal ids become


SNOWBALL = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian",
    "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian",
    "id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "st": "sesotho",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
_ELISION = re.compile(
    r"^(?:[cdjlmnst]|qu|jusqu|quoiqu|lorsqu|puisqu|un|all|dall|dell|nell|sull|coll|quell|quest|gl|agl|dagl|degl)"
    r"'(?=\w)"
)
_ELIDING = frozenset({"ca", "fr", "it"})


class Token(NamedTuple):
    """A term and the span of the written word in the text."""

    term: str
    start: int
    end: int


class Analyzer:
    """Turns texts into terms.

    Args:
        languages: codes of the languages (ISO 639-1) whose stemmers and elisions are applied, such as
            `("en", "de")`; those without a Snowball stemmer are left as they are.
        stop_words: words that are left out, in lower case.
        stemming: whether words are reduced to their stems.
        identifiers: whether the parts of `RandomForestClassifier` and `read_csv` are terms as well.
        fold_numbers: whether all numbers become one term, and all hexadecimal ids another.
    """

    def __init__(
        self,
        *,
        languages: Sequence[str] = (),
        stop_words: Iterable[str] = (),
        stemming: bool = True,
        identifiers: bool = False,
        fold_numbers: bool = False,
    ) -> None:
        self.languages = check_languages(languages)
        self.stop_words = frozenset(stop_words)
        self.stemming = stemming
        self.identifiers = identifiers
        self.fold_numbers = fold_numbers
        self._stemmers = Stemmers(self.languages, stemming=stemming)
        self._cache: dict[str, tuple[str, ...]] = {}
        self._keeping: Analyzer | None = None

    def terms(self, text: str) -> list[str]:
        """Return the terms of a text in order."""
        return [term for start, end in segment(text) for term in self.expand(text[start:end])]

    def tokens(self, text: str) -> list[Token]:
        """Return the terms of a text with the spans of their words in it."""
        return [
            Token(term, start, end) for start, end in segment(text) for term in self.expand(text[start:end])
        ]

    def expand(self, word: str) -> tuple[str, ...]:
        """Return the terms of one word that `segment` found."""
        known = self._cache.get(word)
        if known is None:
            if len(self._cache) >= CACHED_WORDS:
                self._cache.clear()
            known = self._cache[word] = self._expand(word)
        return known

    def expand_all(self, words: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the terms of many distinct words, without keeping them in memory."""
        return [self._expand(word) for word in words]

    def without_stop_words(self) -> Analyzer:
        """Return the same analyzer, but for stop words, which it keeps."""
        if self._keeping is None:  # kept for its cache of terms
            self._keeping = Analyzer(
                languages=self.languages,
                stemming=self.stemming,
                identifiers=self.identifiers,
                fold_numbers=self.fold_numbers,
            )
        return self._keeping

    def to_json(self) -> dict[str, Any]:
        """Return the settings, ready for JSON; the stop words are spelt out."""
        return {
            "languages": list(self.languages),
            "stop_words": sorted(self.stop_words),
            "stemming": self.stemming,
            "identifiers": self.identifiers,
            "fold_numbers": self.fold_numbers,
        }

    @classmethod
    def from_json(cls, state: object) -> Analyzer:
        """Restore an analyzer from `to_json`; raise ModelError if the state is invalid."""
        if not isinstance(state, Mapping):
            raise ModelError(f"the analyzer must be a JSON object, got {type(state).__name__}")
        expected = {"languages": list, "stop_words": list} | dict.fromkeys(
            ("stemming", "identifiers", "fold_numbers"), bool
        )
        for name, kind in expected.items():
            if not isinstance(state.get(name), kind):
                raise ModelError(f"the analyzer's {name} must be a {kind.__name__}, got {state.get(name)!r}")
        for name in ("languages", "stop_words"):
            if not all(isinstance(word, str) for word in state[name]):
                raise ModelError(f"the analyzer's {name} must be strings")
        try:
            return cls(**{name: state[name] for name in expected})
        except InputError as error:
            raise ModelError(f"the analyzer has unusable settings: {error}") from error

    def _expand(self, word: str) -> tuple[str, ...]:
        if word.isascii():
            return self._terms_of(word, word.lower().replace("-", ""))
        folded = fold(word)
        if is_ideograph(word[0]):
            return (folded,) if folded and folded not in self.stop_words else ()
        spans = segment(folded)  # normalization may split a word: ½ is 1⁄2
        if len(spans) == 1 and spans[0] == (0, len(folded)):
            return self._terms_of(word, folded.replace("-", ""))
        return tuple(
            term for start, end in spans for term in self._terms_of("", folded[start:end].replace("-", ""))
        )

    def _terms_of(self, written: str, word: str) -> tuple[str, ...]:
        if self.fold_numbers:
            if _NUMBER.fullmatch(word):
                return (NUMBER,)
            if _HEX.fullmatch(word):
                return (HEX,)
        if self.identifiers and written.replace("_", "").isalnum():
            parts = _PARTS.findall(unicodedata.normalize("NFKC", written))
            if len(parts) > 1:
                terms = [term for part in parts for term in self._term(part.casefold())]
                return (word, *terms)
        return self._term(word)

    def _term(self, word: str) -> tuple[str, ...]:
        if word in self.stop_words:
            return ()
        bare = self._stemmers.strip(word)
        if bare != word and bare in self.stop_words:
            return ()
        return (self._stemmers.stem(bare),)


class Stemmers:
    """The stemmers of some languages, applied one after the other.

    A word is stemmed without looking at its neighbours, so it has the same stem in a document and in a query
    of one word; what a stemmer does to words of another language is little and consistent.
    """

    def __init__(self, languages: Sequence[str], *, stemming: bool) -> None:
        self._elides = not _ELIDING.isdisjoint(languages)
        self._possessive = "en" in languages
        self._stem: list[Any] = []  # PyStemmer has no stubs
        names = [SNOWBALL[language] for language in languages if language in SNOWBALL]
        if stemming and names:
            from Stemmer import Stemmer  # a compiled module without stubs

            # The terms of distinct words are remembered by the analyzer.
            self._stem = [Stemmer(name, 0).stemWord for name in names]

    def strip(self, word: str) -> str:
        """Remove an elided article, as in l'homme, and the English possessive 's."""
        if "'" in word:
            if self._elides:
                word = _ELISION.sub("", word)
            if self._possessive:
                word = word.removesuffix("'s")
        return word

    def stem(self, word: str) -> str:
        """Return the stem of a word."""
        for stem in self._stem:
            word = stem(word) or word
        return word


def check_languages(languages: Iterable[str]) -> tuple[str, ...]:
    """Return language codes as a tuple; raise InputError for one that is not a code of two letters."""
    codes = tuple(languages)
    for code in codes:
        if not (isinstance(code, str) and re.fullmatch("[a-z]{2}", code)):
            raise InputError(
                f'a language is a code of two letters (ISO 639-1), such as "en" or "de", got {code!r}'
            )
    return codes


def segment(text: str) -> list[tuple[int, int]]:
    """Return the spans of the words of a text: in order, overlapping only between paired ideographs."""
    if text.isascii():
        return [match.span() for match in _WORD_ASCII.finditer(text)]
    return list(_segment_unicode(text))


def _segment_unicode(text: str) -> Iterator[tuple[int, int]]:
    symbols = text.translate(_SYMBOL_OF)
    for match in _WORD.finditer(symbols):
        start, end = match.span()
        if match.lastgroup != "run":
            yield start, end
            continue
        before = None
        for cluster in _CLUSTER.finditer(symbols, start, end):
            if before is not None:
                yield before, cluster.end()
            before = cluster.start()
            if cluster.span() == (start, end):
                yield start, end


def fold(text: str) -> str:
    """Return a text in normal form: NFKC, case folded, without invisible characters and optional points."""
    text = unicodedata.normalize("NFKC", text)
    text = unicodedata.normalize("NFKC", text.replace("\u0130", "i").casefold())
    for variant, plain in (("\u2019", "'"), ("\u02bc", "'"), ("\u2010", "-")):
        text = text.replace(variant, plain)
    return _POINTS.sub("", _INVISIBLE.sub("", text))


def is_ideograph(character: str) -> bool:
    """Return whether a character belongs to a script whose characters are read in pairs."""
    return not character.isascii() and kind_of(ord(character[0])) == IDEOGRAPH


def kind_of(code: int) -> int:
    """Return the kind of one code point."""
    character = chr(code)
    for kind, members in _SPECIAL.items():
        if character in members:
            return kind
    if _is_within(code, _INVISIBLES):
        return INVISIBLE
    if _is_within(code, _LIKE_MARKS):
        return MARK
    if _is_within(code, (_RADICALS,)):
        return IDEOGRAPH
    if unicodedata.category(character) in _MARKS:
        return MARK
    if not character.isalnum():
        return OTHER
    if character.isdigit():
        return DIGIT
    return IDEOGRAPH if _is_within(code, _IDEOGRAPHS) else LETTER


def _is_within(code: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= code <= last for first, last in ranges)


class _Symbols(dict[int, str]):
    """The symbol of each code point's kind, for `str.translate`."""

    def __missing__(self, code: int) -> str:
        symbol = self[code] = SYMBOLS[kind_of(code)]
        return symbol


_SYMBOL_OF = _Symbols()


@cache
def character_kinds() -> NDArray[np.uint8]:
    """Return the kind of every code point."""
    characters = np.arange(0x110000, dtype=np.uint32).view("<U1")
    alnum = np.strings.isalnum(characters)
    kinds = np.where(alnum, LETTER, OTHER).astype(np.uint8)
    kinds[alnum & np.strings.isdigit(characters)] = DIGIT
    marks = (code for code in range(0x300, 0x20000) if unicodedata.category(chr(code)) in _MARKS)
    kinds[np.fromiter(marks, dtype=np.int64)] = MARK
    for first, last in _IDEOGRAPHS:
        part = kinds[first : last + 1]
        part[part == LETTER] = IDEOGRAPH
    kinds[_RADICALS[0] : _RADICALS[1] + 1] = IDEOGRAPH
    for first, last in _LIKE_MARKS:
        kinds[first : last + 1] = MARK
    for first, last in _INVISIBLES:
        kinds[first : last + 1] = INVISIBLE
    for kind, members in _SPECIAL.items():
        kinds[[ord(member) for member in members]] = kind
    return kinds
