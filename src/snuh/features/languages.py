"""Languages: recognising those of a corpus, and their stop words.

A language is recognised by its function words, which make up a fifth to a half of any running text, or by its
script. The lists come from `stopwordsiso`.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache

from snuh.errors import MissingExtraError

# Scripts that name a language by themselves. Han is Chinese unless there is Kana as well.
SCRIPTS = {
    "HANGUL": "ko", "HIRAGANA": "ja", "KATAKANA": "ja", "CJK": "zh", "THAI": "th", "LAO": "lo", "KHMER": "km",
    "MYANMAR": "my", "GEORGIAN": "ka", "ARMENIAN": "hy", "GREEK": "el", "HEBREW": "he", "TAMIL": "ta",
    "TELUGU": "te", "KANNADA": "kn", "MALAYALAM": "ml", "GUJARATI": "gu", "GURMUKHI": "pa", "BENGALI": "bn",
    "SINHALA": "si", "ETHIOPIC": "am", "TIBETAN": "bo",
}  # fmt: skip
UNRECOGNIZED = frozenset({"br"})  # its list of 1,203 words has many of other languages
MAX_LANGUAGES = 4
MIN_SCRIPT = 0.05  # fraction of the words in the script
MIN_FUNCTION_WORDS = 0.08  # fraction of the words of a script that must be function words of a language
MIN_DISTINCT = 5  # function words
MIN_KANA = 0.1  # of the Han and Kana characters, for Japanese

# The list of stopwordsiso has 73 words, most of which are Russian as well.
_UKRAINIAN = frozenset([
    "і", "й", "у", "в", "з", "та", "що", "це", "як", "із", "від", "але", "або", "які", "який", "яка",
    "щоб", "ми", "ви", "він", "вона", "вони", "його", "її", "їх", "був", "була", "було", "були", "є",
    "для", "про", "після", "також", "може", "має", "тільки", "дуже", "ще", "вже", "коли", "де", "якщо",
    "під", "над", "між", "через", "своїй", "до", "не", "на",
])  # fmt: skip


def stop_words(languages: Iterable[str]) -> frozenset[str]:
    """Return the stop words of languages; none for a language without a list."""
    words: set[str] = set()
    for language in languages:
        listed = _function_words().get(language, frozenset())
        if language == "en":
            # The list of stopwordsiso has 1,298 words, many of them about something.
            words |= _english() | {word for word in listed if "'" in word}
        else:
            words |= listed
    return frozenset(words)


def recognize(counts: Mapping[str, int], scripts: Mapping[str, int] | None = None) -> list[str]:
    """Return the languages of a corpus, the most frequent first, from how often each word occurs in it.

    A language is added as long as its function words, without those of the languages before it, are a large
    enough part of the words of its script.

    Args:
        counts: of the words in lower case; those in `function_words` are enough if `scripts` is given.
        scripts: how many words each script has.
    """
    by_script: Counter[str] = Counter(scripts or {})
    if scripts is None:
        for word, count in counts.items():
            by_script[script(word[0])] += count
    total = sum(by_script.values())
    found: Counter[str] = Counter()
    kana = by_script["HIRAGANA"] + by_script["KATAKANA"]
    if kana and kana >= MIN_KANA * (kana + by_script["CJK"]):
        by_script["HIRAGANA"] += by_script.pop("CJK", 0)
    for name, language in SCRIPTS.items():
        if by_script[name] >= MIN_SCRIPT * total > 0:
            found[language] += by_script[name]
    rest = {
        # Single letters are in formulas and lists, too.
        language: {word for word in words if len(word) > 1 or not word.isascii()}
        for language, words in _function_words().items()
        if language not in SCRIPTS.values() and language not in UNRECOGNIZED
    }
    while rest and len(found) < MAX_LANGUAGES:
        scores = {language: sum(counts.get(word, 0) for word in words) for language, words in rest.items()}
        best = max(scores, key=lambda language: scores[language])
        words = by_script[script(min(rest[best])[0])] if rest[best] else 0
        if not words or words < MIN_SCRIPT * total or scores[best] < MIN_FUNCTION_WORDS * words:
            break
        if sum(word in counts for word in rest[best]) < MIN_DISTINCT:
            break
        found[best] += scores[best] * 3
        explained = rest.pop(best)
        for others in rest.values():
            others -= explained
    return [language for language, _ in found.most_common(MAX_LANGUAGES)]


def function_words() -> frozenset[str]:
    """Return the function words of all languages."""
    return frozenset().union(*_function_words().values())


@cache
def script(character: str) -> str:
    """Return the first word of a character's Unicode name, which is its script for letters."""
    return "LATIN" if character.isascii() else unicodedata.name(character, "NONE").split()[0]


@cache
def _function_words() -> dict[str, frozenset[str]]:
    try:
        import stopwordsiso
    except ImportError as error:
        raise MissingExtraError(
            'recognising languages needs stopwordsiso: pip install "snuhash[train]"'
        ) from error
    lists = {
        language: frozenset(
            unicodedata.normalize("NFKC", word).casefold() for word in stopwordsiso.stopwords(language)
        )
        for language in sorted(stopwordsiso.langs())
    }
    lists["uk"] |= _UKRAINIAN
    return lists


@cache
def _english() -> frozenset[str]:
    try:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
    except ImportError as error:
        raise MissingExtraError(
            'the English stop words come with scikit-learn: pip install "snuhash[train]"'
        ) from error
    words: frozenset[str] = ENGLISH_STOP_WORDS
    return words
