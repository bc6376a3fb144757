from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snuh.codes import unpack
from snuh.encoder import Encoder, Layer
from snuh.errors import InputError
from snuh.explain import bit_meanings
from snuh.features import TfidfFeatures
from snuh.model import Model
from tests.worlds import topic_words

TOPIC_OF = {word: topic for topic in range(4) for word in topic_words(topic)}


@pytest.mark.parametrize("has_decoder", [True, False])
def test_words_of_a_topic_describe_the_bits_of_its_documents(
    planted: Model, records: list[dict[str, Any]], has_decoder: bool
) -> None:
    model = planted if has_decoder else replace(planted, decoder=None)
    bits = unpack(model.encode([record["text"] for record in records]))
    ones = np.array([bits[topic::4].mean(axis=0) for topic in range(4)])  # (topics, bits)
    meanings = bit_meanings(model)
    assert [meaning.bit for meaning in meanings] == list(range(32))
    right = wrong = 0
    for meaning in meanings:
        assert meaning.uses_decoder is has_decoder
        for themes, is_one in ((meaning.on, True), (meaning.off, False)):
            for word in (word for theme in themes for word in theme):
                if word in TOPIC_OF and (ones[TOPIC_OF[word], meaning.bit] > 0.5) == is_one:
                    right += 1
                else:
                    wrong += 1
    assert right / (right + wrong) > (0.95 if has_decoder else 0.9)  # below one half at random


def test_the_words_of_a_theme_are_of_one_topic(planted: Model) -> None:
    themes = [theme for meaning in bit_meanings(planted) for theme in (*meaning.on, *meaning.off)]
    long = [theme for theme in themes if len(theme) > 1]
    assert len(long) > 60
    # By chance 4 words of 200 would hardly ever be.
    pure = [len({TOPIC_OF.get(word) for word in theme}) == 1 for theme in long]
    assert np.mean(pure) > 0.95


def test_the_balance_is_the_fraction_of_ones_in_training(
    planted: Model, records: list[dict[str, Any]]
) -> None:
    bits = unpack(planted.encode([record["text"] for record in records]))
    np.testing.assert_allclose(
        [meaning.balance for meaning in bit_meanings(planted)], bits.mean(axis=0), atol=0.0006
    )  # stored with three digits
    older = replace(planted, training={})
    assert {meaning.balance for meaning in bit_meanings(older)} == {None}


@pytest.mark.parametrize("words", [1, 3, 10, 60])
def test_no_more_words_are_returned_than_requested(planted: Model, words: int) -> None:
    for meaning in bit_meanings(planted, words=words):
        for themes in (meaning.on, meaning.off):
            listed = [word for theme in themes for word in theme]
            assert 0 < len(listed) <= words
            assert len(set(listed)) == len(listed)


def two_words(weights: list[float], embedding: list[float] | None) -> Model:
    """A model of 8 equal bits over "rare" (1 of 100 documents) and "typical" (50 of 100)."""
    features = TfidfFeatures(min_df=1, max_df=1.0)
    features.fit(["rare", *["typical"] * 50, *[""] * 49])
    weight = np.repeat(np.array(weights)[:, None], 8, axis=1)
    decoder = None if embedding is None else np.repeat(np.array(embedding)[:, None], 8, axis=1)
    return Model(
        Encoder((Layer(weight, np.zeros(8), "sigmoid"),), np.full(8, 0.5)), features, decoder=decoder
    )


def test_a_rare_word_does_not_rank_first_with_a_slightly_larger_weight() -> None:
    assert bit_meanings(two_words([1.3, 1.0], None), words=1)[0].on == (("typical",),)
    assert bit_meanings(two_words([9.0, 1.0], None), words=1)[0].on == (("rare",),)


def test_a_word_on_which_encoder_and_decoder_disagree_is_left_out() -> None:
    meaning = bit_meanings(two_words([1.0, -1.0], [-2.0, 2.0]))[0]
    assert (meaning.on, meaning.off) == ((), ())
    meaning = bit_meanings(two_words([1.0, -1.0], [2.0, -2.0]))[0]
    assert (meaning.on, meaning.off) == ((("rare",),), (("typical",),))


def test_zero_weights_give_no_words() -> None:
    meaning = bit_meanings(two_words([0.0, 0.0], [0.0, 0.0]))[0]
    assert (meaning.on, meaning.off) == ((), ())


def test_zero_words_and_models_without_words_are_refused(planted: Model) -> None:
    with pytest.raises(InputError, match="words must be at least 1, got 0"):
        bit_meanings(planted, words=0)
    with pytest.raises(InputError, match="trained on a matrix of features"):
        bit_meanings(Model(planted.encoder))
