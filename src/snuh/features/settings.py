"""The settings of TF-IDF features, checked when they are made."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from snuh.errors import InputError, MissingExtraError
from snuh.features.vocabulary import Frequency


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `TfidfFeatures` takes; InputError for what cannot work, whatever the texts."""

    max_terms: int
    min_df: Frequency
    max_df: Frequency
    stop_words: str | tuple[str, ...] | None
    token_pattern: str
    lowercase: bool
    sublinear_tf: bool

    def __post_init__(self) -> None:
        if type(self.max_terms) is not int or self.max_terms < 1:
            raise InputError(f"max_terms must be a whole number from 1, got {self.max_terms!r}")
        _check_frequency("min_df", self.min_df)
        _check_frequency("max_df", self.max_df)
        if type(self.min_df) is type(self.max_df) and self.min_df > self.max_df:
            raise InputError(f"min_df must not be above max_df, got {self.min_df} and {self.max_df}")
        _check_stop_words(self.stop_words)
        _check_pattern(self.token_pattern)
        for name in ("lowercase", "sublinear_tf"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise InputError(f"{name} must be True or False, got {value!r}")

    def stop_list(self) -> Collection[str]:
        """Return the words to leave out; the English ones are scikit-learn's, needed only when fitting."""
        if self.stop_words != "english":
            return frozenset(self.stop_words or ())
        try:
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
        except ImportError as error:
            raise MissingExtraError(
                'the English stop words come with scikit-learn: pip install "snuh[train]"'
            ) from error
        words: frozenset[str] = ENGLISH_STOP_WORDS
        return words


def _check_frequency(name: str, value: object) -> None:
    if type(value) is int and value >= 1:
        return
    if type(value) is float and 0.0 <= value <= 1.0:
        return
    raise InputError(
        f"{name} must be a number of documents (a whole number from 1) or a fraction of them (0.0 to 1.0), "
        f"got {value!r}"
    )


def _check_stop_words(value: object) -> None:
    if value is None or value == "english":
        return
    if not isinstance(value, tuple) or not all(isinstance(word, str) for word in value):
        raise InputError(f'stop_words must be "english", None or a list of words, got {value!r}')


def _check_pattern(value: object) -> None:
    if not isinstance(value, str):
        raise InputError(f"token_pattern must be a regular expression (str), got {value!r}")
    try:
        groups = re.compile(value).groups
    except re.error as error:
        raise InputError(f"token_pattern {value!r} is no regular expression: {error}") from error
    if groups > 1:
        raise InputError(f"token_pattern may have 1 capturing group, got {groups}: use (?:...) for others")
