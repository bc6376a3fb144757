from __future__ import annotations

import pytest

from snuh.errors import InputError, MissingExtraError, ModelError, SnuhError, suggest


def test_a_similar_name_is_suggested() -> None:
    assert suggest("ng2o", ["reuters", "ng20"]) == ' (did you mean "ng20"?)'
    assert suggest("SNUH", ["snuh", "vdsh"]) == ' (did you mean "snuh"?)'


def test_nothing_is_suggested_for_a_dissimilar_name() -> None:
    assert suggest("wikipedia", ["reuters", "ng20"]) == ""
    assert suggest("x", []) == ""


@pytest.mark.parametrize(
    ("kind", "builtin"), [(InputError, ValueError), (ModelError, Exception), (MissingExtraError, ImportError)]
)
def test_every_kind_is_a_snuh_error(kind: type[SnuhError], builtin: type[Exception]) -> None:
    assert issubclass(kind, SnuhError)
    assert issubclass(kind, builtin)
