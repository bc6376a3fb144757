from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import snuh

ROOT = Path(__file__).parents[1]


def test_import_snuh_imports_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "torch", "sklearn", "numba", "pyarrow", "typer", "rich", "safetensors")
    program = f"import sys, snuh; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT / "src")},
        check=True,
    )
    assert result.stdout.strip() == "[]"


def test_every_public_name_leads_to_something() -> None:
    for name in snuh.__all__:
        assert getattr(snuh, name) is not None
    assert set(snuh.__all__) <= set(dir(snuh))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'snuh' has no attribute 'nonsense'"):
        snuh.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_the_version_is_the_one_in_the_project_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert snuh.__version__ == project["version"]
