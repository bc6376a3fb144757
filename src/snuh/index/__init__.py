"""Search for the codes nearest to a query: an exact scan and an inverted file (IVF)."""

from __future__ import annotations

from snuh.index.flat import Found, Neighbors, nearest, scan, scan_many

__all__ = ["Found", "Neighbors", "nearest", "scan", "scan_many"]
