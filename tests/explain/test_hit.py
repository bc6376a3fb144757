from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snuh.codes import hamming, unpack
from snuh.encoder import Activation, Encoder, Layer
from snuh.errors import InputError
from snuh.explain import bit_meanings, explain, word_contributions
from snuh.features import TfidfFeatures
from snuh.model import Model
from tests.worlds import topic_words

WORDS = ["harbour", "ship", "dawn", "market", "price", "straße", "москва", "naïve"]
TEXTS = st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=12).map(" ".join)
INVERSES = {
    "identity": lambda t: t,
    "relu": lambda t: t,
    "sigmoid": lambda t: np.log(t / (1 - t)),
    "tanh": np.arctanh,
}


def toy(*, activation: Activation = "sigmoid", unit_rows: bool = False, threshold: Any = None) -> Model:
    """A model over eight words with random weights, and thresholds from 0.2 to 0.8."""
    features = TfidfFeatures(min_df=1, max_df=1.0).fit([" ".join(WORDS), *WORDS[:4]])
    rng = np.random.default_rng(5)
    layer = Layer(rng.normal(size=(len(WORDS), 16)) * 3, rng.normal(size=16), activation)
    thresholds = rng.uniform(0.2, 0.8, size=16) if threshold is None else np.full(16, threshold)
    return Model(Encoder((layer,), thresholds, unit_rows), features)


@given(text=TEXTS, activation=st.sampled_from(sorted(INVERSES)), unit_rows=st.booleans())
def test_margins_are_the_contributions_of_the_words_and_a_constant(
    text: str, activation: Activation, unit_rows: bool
) -> None:
    model = toy(activation=activation, unit_rows=unit_rows)
    assert model.features is not None
    layer, parts = model.encoder.layers[0], word_contributions(model, text)
    row = model.features.transform([text]).toarray()[0].astype(np.float64)
    expected = (
        row @ layer.weight + layer.bias - INVERSES[activation](model.encoder.threshold.astype(np.float64))
    )
    # Rows and weights are float32, sums float64: only the rounding of the inverse remains.
    np.testing.assert_allclose(
        parts.contributions.sum(axis=0) + parts.constant, expected, rtol=1e-5, atol=1e-5
    )
    np.testing.assert_array_equal(parts.margins, parts.contributions.sum(axis=0) + parts.constant)
    decided = np.abs(expected) > 1e-4
    np.testing.assert_array_equal((expected > 0)[decided], parts.bits[decided])


@given(query=TEXTS, hit=TEXTS)
def test_an_explanation_has_the_bits_of_the_codes(query: str, hit: str) -> None:
    model = toy()
    explanation = explain(model, query, hit)
    codes = model.encode([query, hit])
    assert explanation.distance == hamming(codes[:1], codes[1:])[0, 0]
    assert [[pair.query for pair in explanation.bits], [pair.hit for pair in explanation.bits]] == unpack(
        codes
    ).tolist()
    assert [pair.bit for pair in explanation.bits] == list(range(16))
    assert sum(not pair.agrees for pair in explanation.bits) == explanation.distance
    values = model.values([query, hit]).astype(np.float64)
    logits = np.log(values / (1 - values)) - INVERSES["sigmoid"](model.encoder.threshold.astype(np.float64))
    margins = [
        [pair.query_margin for pair in explanation.bits],
        [pair.hit_margin for pair in explanation.bits],
    ]
    # A value of 1 - 1e-4 in float32 gives its logit to about 1e-3.
    seen = (values > 1e-4) & (values < 1 - 1e-4)
    np.testing.assert_allclose(np.array(margins)[seen], logits[seen], atol=1e-2)


@given(query=TEXTS, hit=TEXTS)
def test_the_contributions_of_the_words_add_up_to_the_margins(query: str, hit: str) -> None:
    model = toy()
    explanation = explain(model, query, hit)
    constant = word_contributions(model, "").constant
    for agrees in (True, False):
        pairs = [pair for pair in explanation.bits if pair.agrees is agrees]
        expected = sum((pair.hit_margin - constant[pair.bit]) * (1 if pair.hit else -1) for pair in pairs)
        contributions = [word.agreeing if agrees else word.differing for word in explanation.hit_words]
        assert sum(contributions) == pytest.approx(expected, abs=1e-9)
    assert sorted(explanation.query_words, key=lambda word: (-word.agreeing, word.word)) == list(
        explanation.query_words
    )


def test_each_word_of_a_text_is_listed_once_with_all_its_spans() -> None:
    text = "Ship, naïve SHIP: unknown Straße"
    explanation = explain(toy(), text, "dawn")
    spans = {word.word: [text[slice(*span)] for span in word.spans] for word in explanation.query_words}
    assert spans == {"ship": ["Ship", "SHIP"], "naïve": ["naïve"], "strasse": ["Straße"]}
    assert [word.word for word in explanation.hit_words] == ["dawn"]


def test_a_text_without_known_words_is_explained_by_the_constant_alone() -> None:
    model = toy()
    explanation = explain(model, "nothing known", "ship at dawn")
    assert explanation.query_words == ()
    np.testing.assert_array_equal(
        [pair.query_margin for pair in explanation.bits], word_contributions(model, "").constant
    )
    assert explain(model, "", "").distance == 0


@pytest.mark.parametrize(
    ("activation", "threshold", "margin"),
    [("sigmoid", 1.0, -np.inf), ("sigmoid", 0.0, np.inf), ("tanh", 1.0, -np.inf), ("relu", -1.0, np.inf)],
)
def test_a_bit_that_no_text_can_change_has_an_infinite_margin(
    activation: Activation, threshold: float, margin: float
) -> None:
    explanation = explain(toy(activation=activation, threshold=threshold), "ship", "market price")
    assert {pair.query_margin for pair in explanation.bits} == {margin}
    assert {pair.query for pair in explanation.bits} == {margin > 0}
    assert all(np.isfinite(word.agreeing) for word in explanation.hit_words)


def test_words_of_the_topic_make_two_of_its_documents_agree(
    planted: Model, records: list[dict[str, Any]]
) -> None:
    for topic in range(4):
        query, hit = (str(records[topic + 4 * number]["text"]) for number in (0, 1))
        explanation = explain(planted, query, hit)
        assert explanation.distance < 8
        own = set(topic_words(topic))
        for words in (explanation.query_words, explanation.hit_words):
            assert {word.word for word in words[:5]} <= own
            assert sum(word.agreeing for word in words if word.word in own) > sum(
                word.agreeing for word in words if word.word not in own
            )


def test_a_model_trained_on_a_matrix_is_refused() -> None:
    with pytest.raises(InputError, match="only models of texts can be explained by words"):
        explain(Model(toy().encoder), "ship", "ship")


def test_a_deeper_encoder_is_refused() -> None:
    one, features = toy().encoder, toy().features
    deep = Encoder((*one.layers, Layer(np.eye(16), np.zeros(16))), one.threshold)
    with pytest.raises(InputError, match="expected an encoder of one linear layer, got 2 layers"):
        explain(Model(deep, features), "ship", "ship")


def test_an_encoder_with_a_periodic_activation_is_refused() -> None:
    for refused in (lambda model: explain(model, "ship", "dawn"), bit_meanings):
        with pytest.raises(InputError, match="expected an encoder with an increasing activation, got cos"):
            refused(toy(activation="cos"))


def test_anything_but_a_text_is_refused() -> None:
    with pytest.raises(InputError, match=r"expected a text \(str\), got list"):
        explain(toy(), ["ship"], "ship")  # type: ignore[arg-type]
