"""What a run ran on and with, to be kept beside its figures."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import snuh

RESULTS = "results"  # the folder of a checkout that measurements are kept in
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch")


def machine_facts() -> dict[str, Any]:
    """Return processor, its vector instructions as NumPy uses them, cores, threads used, load and system."""
    import numba

    return {
        "cpu": _processor(),
        "simd": _vector_instructions(),  # sums are added up in another order: the last digits differ
        "cores": os.cpu_count(),
        "threads": numba.get_num_threads(),
        "load": round(os.getloadavg()[0], 2),  # well below the cores, or the seconds say little
        "system": platform.platform(),
    }


def versions(also: Sequence[str] = ()) -> dict[str, str]:
    """Return the versions of Python, of the packages that figures may depend on, and of others installed."""
    found = {"python": platform.python_version()}
    for package in (*PACKAGES, *also):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str | None:
    """Return the commit of the checkout that this package runs from, with "-dirty" where it was changed.

    Its folder of results does not count: what is measured is added there.
    """
    root = Path(snuh.__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head = _git("rev-parse", "HEAD", cwd=root)
        changes = _git("diff", "--quiet", "HEAD", "--", ".", f":(exclude){RESULTS}", cwd=root)
    except FileNotFoundError:  # no git on this machine
        return None
    if head.returncode:  # git does not say, as where nothing is committed yet
        return None
    return head.stdout.strip() + ("-dirty" if changes.returncode else "")


def _git(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True)


def forget_peak() -> None:
    """Let `peak_megabytes` begin anew, where the system can (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_megabytes() -> int:
    """Return the most memory that this process has had at once, since it began or since `forget_peak`."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kibibytes elsewhere
    return round(peak * unit / 1e6)


def _vector_instructions() -> list[str]:
    import numpy as np

    known: Any = np.show_config(mode="dicts")  # typed as if it only printed
    extensions = known.get("SIMD Extensions", {})  # what is empty is left out
    return [*extensions.get("baseline", []), *extensions.get("found", [])]


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    if described.exists():
        for line in described.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
