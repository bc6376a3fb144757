"""What a measurement ran on, to be kept beside its numbers."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "snuh",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "torch",
    "faiss-cpu",
    "sparse-dot-topn",
    "usearch",
    "datasketch",
)


def facts() -> dict[str, object]:
    """Return processor, cores, load, Python, package versions and date, ready for JSON."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),  # well below the cores, or the times say little
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    if described.exists():
        for line in described.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
