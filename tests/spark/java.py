"""A real Java: found, or installed where that is possible."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

PACKAGE = "openjdk-17-jre-headless"


def need_java() -> None:
    """Make sure of a Java; without one the tests are skipped, but under CI=true they fail."""
    if _is_there():
        return
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
    if not _is_there():
        told = f"these tests need Java 17: as root they install Debian's {PACKAGE}"
        if os.environ.get("CI") == "true":
            pytest.fail(told)
        pytest.skip(told)


def _is_there() -> bool:
    return bool(os.environ.get("JAVA_HOME") or shutil.which("java"))


def _install() -> None:
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", PACKAGE]):
        subprocess.run(["apt-get", "-qq", *command], env=quiet, check=False, capture_output=True, timeout=600)
