"""How the threads of OpenMP wait is set before PyTorch, which reads it once, is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import snuh

PROGRAM = """
import os, sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"))
            raise ModuleNotFoundError(name="torch")
sys.meta_path.insert(0, Watch())
try:
    import snuh.methods.snuh
except ModuleNotFoundError:
    pass
"""


@pytest.mark.parametrize(("given", "expected"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")])
def test_threads_wait_without_spinning_unless_told_otherwise(given: dict[str, str], expected: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= given | {"PYTHONPATH": str(Path(snuh.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[0] == expected
