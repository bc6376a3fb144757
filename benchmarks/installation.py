"""The size of an installation: of the base, or with extras, by package.

python -m benchmarks.installation [--extras fast,parquet]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.machine import facts

ROOT = Path(__file__).parents[1]
MEGABYTE = 1e6
MAX_LISTED = 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--extras", default="", help="separated by commas")
    extras = parser.parse_args().extras
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        install(f"{ROOT}[{extras}]" if extras else str(ROOT), folder)
        sizes = {entry.name: megabytes(entry) for entry in folder.iterdir()}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:MAX_LISTED]
    result = {
        "extras": extras,
        "megabytes": round(sum(sizes.values()), 1),
        "largest": {name: round(sizes[name], 1) for name in largest},
        "machine": facts(),
    }
    print(json.dumps(result, indent=2))


def install(requirement: str, folder: Path) -> None:
    """Install a package with its dependencies, and nothing else, into a folder."""
    constraints = ("--constraint", str(ROOT / "constraints.txt"))
    command = (sys.executable, "-m", "pip", "install", "--quiet", *constraints, "--target", str(folder))
    subprocess.run([*command, requirement], check=True)


def megabytes(entry: Path) -> float:
    """Return the size of a file, or of all files in a folder, with the bytecode that pip compiles."""
    files = [entry] if entry.is_file() else [path for path in entry.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files) / MEGABYTE


if __name__ == "__main__":
    main()
