from __future__ import annotations

import pytest

from snuh.errors import InputError
from snuh.methods import METHODS, make
from snuh.tuning.search_space import SEARCH_SPACES, build_search_space, check_tunable


def test_every_method_has_a_row() -> None:
    assert set(SEARCH_SPACES) == set(METHODS)


@pytest.mark.parametrize("method", [method for method, row in SEARCH_SPACES.items() if row])
@pytest.mark.parametrize("bits", [16, 24])
def test_every_value_is_one_that_the_method_takes_and_the_default_is_among_them(
    method: str, bits: int
) -> None:
    space = build_search_space(method, bits=bits, seed=0, fixed={}, docs=5000)
    for name, values in space.values.items():
        assert list(values) == sorted(set(values))
        assert space.defaults[name] in values
        for value in values:
            make(method, bits=bits, seed=0, parameters={name: value}).check_parameters()


def test_snuh_has_the_values_of_the_paper() -> None:
    space = build_search_space("snuh", bits=16, seed=0, fixed={}, docs=5000)
    assert space.values["learning_rate"] == (0.0005, 0.001, 0.003)
    assert space.values["batch_size"] == (32, 64, 128)
    assert space.values["tau"] == space.values["alpha"] == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    assert space.values["beta"] == (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1)
    assert space.values["neighbors"] == space.values["trees"] == tuple(range(1, 21))


def test_the_defaults_are_those_of_a_fit_of_so_many_documents() -> None:
    space = build_search_space("snuh", bits=64, seed=0, fixed={}, docs=300)
    assert (space.defaults["neighbors"], space.defaults["batch_size"]) == (5, 32)


def test_a_parameter_that_is_fixed_is_not_tried() -> None:
    assert "tau" not in build_search_space("snuh", bits=16, seed=0, fixed={"tau": 0.3}, docs=5000).values


@pytest.mark.parametrize(
    ("method", "fixed", "why"),
    [("lsh", {}, "no parameters to tune"), ("itq", {"iterations": 3}, "--set fixes all")],
)
def test_a_method_without_anything_to_try_is_refused(method: str, fixed: dict[str, int], why: str) -> None:
    with pytest.raises(InputError, match=f"{method} cannot be tuned: .*{why}"):
        check_tunable(method, bits=16, seed=0, fixed=fixed)


def test_indices_and_values_are_a_round_trip() -> None:
    space = build_search_space("snuh-plus", bits=24, seed=0, fixed={}, docs=5000)
    assert space.from_indices(space.to_indices(space.defaults)) == space.defaults
    assert space.size == 6 * 3 * 10 * 10 * len(space.values["beta"]) * 20 * 20
