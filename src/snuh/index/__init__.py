"""Search for the codes nearest to a query: an exact scan and an inverted file (IVF)."""

from __future__ import annotations

from snuh.index.flat import Neighbors, SearchResult, nearest, scan, scan_many

__all__ = ["Neighbors", "SearchResult", "nearest", "scan", "scan_many"]
