"""The environment of a measurement, to be stored with its results."""

from __future__ import annotations

from datetime import UTC, datetime

from snuh.experiments.runner import commit, machine_info, versions

PEERS = ("snuh", "faiss-cpu", "sparse-dot-topn", "usearch", "datasketch")


def facts() -> dict[str, object]:
    """Return processor, cores, load, versions, commit and date, ready for JSON."""
    return {
        **machine_info(),
        "versions": versions(PEERS),
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
