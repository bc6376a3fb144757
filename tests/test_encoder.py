from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from snuh.codes import pack, unpack
from snuh.encoder import Activation, Encoder, Layer
from snuh.errors import InputError


def small_encoder(*, inputs: int = 12, hidden: int = 5, bits: int = 16) -> Encoder:
    rng = np.random.default_rng(3)
    return Encoder(
        (
            Layer(rng.normal(size=(inputs, hidden)), rng.normal(size=hidden), "relu"),
            Layer(rng.normal(size=(hidden, bits)), rng.normal(size=bits), "sigmoid"),
        ),
        rng.uniform(0.3, 0.7, bits),
    )


def sparse_rows(documents: int, *, inputs: int = 12) -> sp.csr_matrix:
    return sp.random(documents, inputs, density=0.4, format="csr", dtype=np.float32, random_state=0)


def test_values_are_the_layers_one_after_the_other() -> None:
    encoder, X = small_encoder(), sparse_rows(7).toarray().astype(np.float64)
    first, second = encoder.layers
    hidden = np.maximum(X @ first.weight + first.bias, 0)
    expected = 1 / (1 + np.exp(-(hidden @ second.weight + second.bias)))
    assert encoder.values(X).dtype == np.float32
    np.testing.assert_allclose(encoder.values(X), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("identity", [-2, 0, 2]),
        ("relu", [0, 0, 2]),
        ("tanh", np.tanh([-2, 0, 2])),
        ("sigmoid", [0.1192029, 0.5, 0.8807971]),
        ("cos", [-0.4161468, 1, -0.4161468]),
    ],
)
def test_activations_are_their_textbook_functions(activation: str, expected: list[float]) -> None:
    layer = Layer(np.eye(3), np.zeros(3), activation)  # type: ignore[arg-type]
    np.testing.assert_allclose(layer(np.array([[-2.0, 0, 2]])), [expected], atol=1e-6)


def test_a_sigmoid_does_not_overflow_at_its_ends() -> None:
    layer = Layer(np.eye(2), np.zeros(2), "sigmoid")
    assert layer(np.array([[-1e30, 1e30]], dtype=np.float32)).tolist() == [[0.0, 1.0]]


def test_a_bit_is_set_only_above_its_threshold() -> None:
    encoder = Encoder((Layer(np.eye(8), np.zeros(8)),), np.full(8, 0.5))
    codes = encoder.encode(np.array([[0.4, 0.5, 0.6, 0, 1, -1, 0.5, 0.7]]))
    assert unpack(codes).tolist() == [[False, False, True, False, True, False, False, True]]


@pytest.mark.parametrize("activation", ["identity", "relu", "tanh", "sigmoid", "cos"])
def test_margins_are_above_zero_where_the_bit_is_set(activation: Activation) -> None:
    first, second = small_encoder().layers
    encoder = Encoder((first, Layer(second.weight, second.bias, activation)), np.full(16, 0.4))
    X = sparse_rows(200)
    margins = encoder.margins(X)
    decided = np.abs(encoder.values(X) - 0.4) > 1e-6  # float32 may put the rest on either side
    assert decided.mean() > 0.99
    np.testing.assert_array_equal((margins > 0)[decided], unpack(encoder.encode(X))[decided])


def test_margins_of_a_cosine_are_its_distance_to_the_threshold() -> None:
    encoder = Encoder((Layer(np.eye(8), np.zeros(8), "cos"),), np.full(8, 0.25))
    inputs = np.array([[-3, 0, 1.2, 1.4, 3, 6.2, 9, 12.6]])
    np.testing.assert_allclose(encoder.margins(inputs), np.cos(inputs) - 0.25, atol=1e-6)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_matrix, sp.coo_array, sp.csr_array, np.asarray])
def test_sparse_and_dense_rows_give_the_same_codes(kind: type) -> None:
    encoder, X = small_encoder(), sparse_rows(9)
    rows = kind(X.toarray()) if kind is np.asarray else kind(X)
    np.testing.assert_allclose(encoder.values(rows), encoder.values(X), atol=1e-6)
    np.testing.assert_array_equal(encoder.encode(rows), pack(encoder.values(X) > encoder.threshold))


def test_codes_do_not_depend_on_the_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, X = small_encoder(), sparse_rows(10)
    whole = encoder.encode(X)
    monkeypatch.setattr("snuh.encoder.BLOCK_ROWS", 3)
    np.testing.assert_array_equal(encoder.encode(X), whole)


def test_sparse_rows_never_become_one_dense_matrix() -> None:
    # Dense, these rows would take 80 gigabytes.
    X = sp.csr_matrix(
        (np.ones(5, np.float32), (np.arange(5) * 3999, np.arange(5))), shape=(20_000, 1_000_000)
    )
    encoder = Encoder((Layer(np.ones((1_000_000, 8), np.float32), np.zeros(8)),), np.full(8, 0.5))
    assert encoder.encode(X).sum() == 5 * 255


def test_no_rows_give_no_codes() -> None:
    encoder = small_encoder()
    assert encoder.encode(sparse_rows(0)).shape == (0, 2)
    assert encoder.values(np.zeros((0, 12))).shape == (0, 16)


def test_an_empty_document_has_a_code_too() -> None:
    assert small_encoder().encode(sp.csr_matrix((1, 12), dtype=np.float32)).shape == (1, 2)


def test_an_encoder_round_trips_through_its_arrays() -> None:
    encoder, X = small_encoder(), sparse_rows(20)
    again = Encoder.from_arrays(encoder.arrays(), encoder.meta())
    assert (again.bits, again.inputs) == (16, 12)
    np.testing.assert_array_equal(again.values(X), encoder.values(X))
    np.testing.assert_array_equal(again.threshold, encoder.threshold)


def test_a_transposed_weight_is_stored_in_order() -> None:
    weight = np.arange(24, dtype=np.float32).reshape(8, 3).T
    layer = Layer(weight, np.zeros(8))
    assert layer.weight.flags.c_contiguous
    np.testing.assert_array_equal(layer.weight, weight)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros((2, 11)), "rows with 12 columns, got an array of shape"),
        (sp.csr_matrix((2, 13), dtype=np.float32), "rows with 12 columns, got an array of shape"),
        (np.zeros(12), "rows with 12 columns, got an array of shape"),
        (np.full((1, 12), np.nan), "rows must be finite"),
        (np.full((1, 12), "word"), "rows must be numeric"),
    ],
)
def test_rows_that_do_not_fit_are_refused(X: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        small_encoder().encode(X)


def test_parts_that_do_not_fit_together_are_refused() -> None:
    layer = Layer(np.zeros((4, 8)), np.zeros(8))
    with pytest.raises(InputError, match="biases of shape"):
        Layer(np.zeros((4, 8)), np.zeros(7))
    with pytest.raises(InputError, match="weights must be finite"):
        Layer(np.full((4, 8), np.inf), np.zeros(8))
    with pytest.raises(
        InputError, match="activation must be one of identity, relu, tanh, sigmoid, cos, got 'gelu'"
    ):
        Layer(np.zeros((4, 8)), np.zeros(8), "gelu")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least one layer"):
        Encoder((), np.zeros(8))
    with pytest.raises(InputError, match="8 outputs cannot precede one with 4 inputs"):
        Encoder((layer, layer), np.zeros(8))
    with pytest.raises(InputError, match=r"one threshold per bit \(8\)"):
        Encoder((layer,), np.zeros(9))
    with pytest.raises(InputError, match="bits must be a multiple of 8"):
        Encoder((Layer(np.zeros((4, 7)), np.zeros(7)),), np.zeros(7))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threshold": None}, "expected the arrays"),
        ({"extra": np.zeros(1, np.float32)}, "expected the arrays"),
        ({"threshold": np.zeros(16)}, "must be float32, got float64"),
        ({"threshold": np.full(16, np.nan, np.float32)}, "thresholds must be finite"),
    ],
)
def test_arrays_that_are_not_an_encoder_are_refused(
    change: dict[str, np.ndarray | None], message: str
) -> None:
    encoder = small_encoder()
    arrays = {name: array for name, array in (encoder.arrays() | change).items() if array is not None}
    with pytest.raises(InputError, match=message):
        Encoder.from_arrays(arrays, encoder.meta())


@pytest.mark.parametrize("activations", [None, "relu", [1, 2], ["relu"], ["relu", "softmax"], []])
def test_invalid_activations_are_refused(activations: object) -> None:
    with pytest.raises(InputError):
        Encoder.from_arrays(small_encoder().arrays(), {"activations": activations})
