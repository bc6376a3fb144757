from __future__ import annotations

import pytest

from snuh.dedup import default_radius
from snuh.errors import InputError


def test_the_default_radius_grows_with_the_code() -> None:
    assert [default_radius(bits) for bits in (16, 32, 64, 128)] == [3, 6, 12, 25]


def test_the_default_radius_of_an_invalid_code_length_is_refused() -> None:
    with pytest.raises(InputError, match="bits must be a multiple of 8"):
        default_radius(20)
