from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import snuh
from snuh.collection import backend

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]


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


def test_the_version_is_written_in_one_place() -> None:
    assert "version" not in PROJECT
    assert PYPROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "snuh.__version__"}
    assert "\nversion:" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_changelog_has_the_version_or_changes_to_come() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d{2}-\d{2}))?$", changelog, re.MULTILINE)
    assert headings[0][0] in ("Unreleased", snuh.__version__)
    assert all(date for version, date in headings if version != "Unreleased")


def test_the_source_distribution_has_all_folders_of_the_repository() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("needs the repository")
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folders = {line.split("/")[0] for line in files.splitlines() if "/" in line and not line.startswith(".")}
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    assert folders - {"src"} == set(re.findall(r"^graft (\w+)$", manifest, re.MULTILINE))


HINT = re.compile(r"\b(snuh\w*)\[([a-z]+(?:,[a-z]+)*)\]")  # snuhash[train]
INSTALL = re.compile(r"pip install \\?\"?(snuh\w*)")
NEEDS = re.compile(r"(?:needs|come with) ([\w-]+): pip install \"snuhash\[(\w+)\]\"")


def hinting_files() -> dict[str, str]:
    """Return the files that may tell users what to install, with their text."""
    patterns = (
        "*.md",
        "pyproject.toml",
        "docs/**/*.md",
        "examples/**/*.*",
        "src/snuh/**/*.py",
        "src/snuh/**/*.js",
    )
    paths = [path for pattern in patterns for path in ROOT.glob(pattern)]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def test_every_hint_names_this_package_and_an_extra_that_it_has() -> None:
    for file, text in hinting_files().items():
        assert set(INSTALL.findall(text)) <= {PROJECT["name"]}, file
        for name, extras in HINT.findall(text):
            assert name == PROJECT["name"], file
            assert set(extras.split(",")) <= set(EXTRAS), f"{file}: {extras}"
    assert set(backend.EXTRAS.values()) <= set(EXTRAS)  # its message is put together from this table


def test_the_extra_of_a_hint_has_the_package_that_is_needed() -> None:
    pairs = {pair for text in hinting_files().values() for pair in NEEDS.findall(text)}
    assert len(pairs) >= 6
    for package, extra in pairs:
        requirement = {"PyTorch": "torch"}.get(package, package).lower()
        assert any(line.lower().startswith(requirement) for line in EXTRAS[extra]), f"{extra}: {package}"
