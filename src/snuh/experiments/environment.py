"""The environment of a measurement: machine, package versions, commit and memory."""

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

RESULTS_FOLDER = "results"  # of the checkout; changes there do not make it dirty
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch")


def machine_info() -> dict[str, Any]:
    """Return processor, SIMD extensions used by NumPy, cores, threads used, load and system."""
    import numba

    return {
        "cpu": _processor(),
        "simd": _simd_extensions(),  # they change the order of floating-point sums, so the last digits
        "cores": os.cpu_count(),
        "threads": numba.get_num_threads(),
        "load": round(os.getloadavg()[0], 2),  # timings are reliable only if it is well below the cores
        "system": platform.platform(),
    }


def versions(extra: Sequence[str] = ()) -> dict[str, str]:
    """Return the versions of Python, of the packages that results depend on, and of `extra` if installed."""
    installed = {"python": platform.python_version()}
    for package in (*PACKAGES, *extra):
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


def commit() -> str | None:
    """Return the commit of the checkout that the package runs from, with "-dirty" if files were changed.

    Changes in the results folder do not count: measurements are added there.
    """
    root = Path(snuh.__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head = _git("rev-parse", "HEAD", cwd=root)
        changes = _git("diff", "--quiet", "HEAD", "--", ".", f":(exclude){RESULTS_FOLDER}", cwd=root)
    except FileNotFoundError:  # git is not installed
        return None
    if head.returncode:  # for example before the first commit
        return None
    return head.stdout.strip() + ("-dirty" if changes.returncode else "")


def _git(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True)


def reset_peak_memory() -> None:
    """Restart `peak_megabytes` from the current memory, where the system supports it (Linux)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_megabytes() -> int:
    """Return the peak memory of this process, since it started or since `reset_peak_memory`."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, kibibytes elsewhere
    return round(peak * unit / 1e6)


def _simd_extensions() -> list[str]:
    import numpy as np

    config: Any = np.show_config(mode="dicts")  # typed as if it only printed
    extensions = config.get("SIMD Extensions", {})  # empty lists are left out
    return [*extensions.get("baseline", []), *extensions.get("found", [])]


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
