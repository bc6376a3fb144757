"""What is said first: how many runs, on what, and which commits, versions and machines made them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from snuh.experiments.run import Row, run_key

UNKNOWN = "not recorded"
DIGITS = 12


def facts(rows: Sequence[Row]) -> list[tuple[str, list[str]]]:
    """Return names and values about all rows of a file, several values where rows differ."""
    runs = list({run_key(row): row for row in rows}.values())  # of several rows of a run the last counts
    failed = sum(row["error"] is not None for row in runs)
    dates = sorted(str(row["date"])[:10] for row in runs if row.get("date"))
    return [
        ("runs", [f"{len(runs):,}" + (f", of which {failed:,} failed" if failed else "")]),
        ("seeds", _counted(f"seed {row['seed']}" for row in runs)),
        ("corpora", _counted(str(row["corpus"]) for row in runs)),
        ("documents", _checksums(runs)),
        ("methods", _counted(str(row["method"]) for row in runs)),
        ("dates", [" to ".join(sorted({dates[0], dates[-1]})) if dates else UNKNOWN]),
        ("commits", _counted(_commit(row.get("commit")) for row in runs)),
        ("versions", _counted(_versions(row) for row in runs)),
        ("machines", _counted(_machine(row.get("machine")) for row in runs)),
    ]


def _counted(values: Iterable[str]) -> list[str]:
    """Return the distinct values, with the number of runs of each where there are several."""
    counts = Counter(values)
    if len(counts) == 1:
        return list(counts)
    ranked = sorted(counts, key=lambda value: (-counts[value], value))
    return [f"{value} ({counts[value]:,})" for value in ranked]


def _checksums(rows: Iterable[Row]) -> list[str]:
    known = {(row["corpus"], row["corpus_sha256"][:DIGITS]) for row in rows if row["corpus_sha256"]}
    return [f"{corpus} sha256 {checksum}" for corpus, checksum in sorted(known)] or [UNKNOWN]


def _commit(commit: str | None) -> str:
    if not commit:
        return UNKNOWN
    name, dash, rest = commit.partition("-")
    return name[:DIGITS] + dash + rest


def _versions(row: Row) -> str:
    versions = {"snuh": row.get("snuh"), **(row.get("versions") or {})}
    return ", ".join(f"{name} {version}" for name, version in versions.items() if version) or UNKNOWN


def _machine(machine: dict[str, Any] | None) -> str:
    """Return what stays the same of a machine, and not its load."""
    if not machine:
        return UNKNOWN
    return ", ".join(
        str(value)
        for value in (machine.get("cpu"), f"{machine.get('cores')} cores", machine.get("system"))
        if value
    )
