"""Find Chromium, or install it if possible."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str:
    """Return the path of a browser; without one, skip the tests, or fail them if CI=true."""
    path = _on_path()
    if path is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
        path = _on_path()
    if path is None:
        message = (
            f"these tests need a browser ({', '.join(NAMES)}): run them as root to install Debian's chromium"
        )
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return path


def _on_path() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _install() -> None:
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        subprocess.run(["apt-get", "-qq", *command], env=quiet, check=False, capture_output=True, timeout=600)
