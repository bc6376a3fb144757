"""What the methods share: estimators, training loops, objectives and closed forms."""

from __future__ import annotations

import os

# Read when PyTorch is imported. By default, the threads of OpenMP spin while they wait for each other; beside
# other busy programs, most of the processor time would be spent on that.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
