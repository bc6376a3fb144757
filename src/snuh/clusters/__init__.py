"""Sub-linear search: codes in lists around centres, of which a query reads only the nearest."""

from __future__ import annotations

from snuh.clusters.lists import Clusters
from snuh.clusters.recall import choose_probes, measure_recall

__all__ = ["Clusters", "choose_probes", "measure_recall"]
