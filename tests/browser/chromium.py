"""A real Chromium: found, or installed where that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str:
    """Return the path of a browser; without one the tests are skipped, but under CI=true they fail."""
    found = _on_path()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
        found = _on_path()
    if found is None:
        told = f"these tests need a browser ({', '.join(NAMES)}): as root they install Debian's chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)
    return found


def _on_path() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _install() -> None:
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        subprocess.run(["apt-get", "-qq", *command], env=quiet, check=False, capture_output=True, timeout=600)
