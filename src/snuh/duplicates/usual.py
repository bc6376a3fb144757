"""The radius and the threshold to start from, as measured by `python -m benchmarks.duplicates`."""

from __future__ import annotations

from snuh.codes import check_bits

USUAL_THRESHOLD = 0.85  # of the cosine; for the overlap 0.7 does as well
BITS_PER_STEP = 5


def usual_radius(bits: int) -> int:
    """Return a radius that misses at most one near-duplicate in a hundred (measured at 64 and 128 bits)."""
    return check_bits(bits) // BITS_PER_STEP
