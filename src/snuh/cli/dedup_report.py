"""What a search for duplicates found: a summary for people, a line for each duplicate in a file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from snuh.cli.output import plural, print_facts, results_console
from snuh.cli.plain import harmless
from snuh.dedup import DuplicateReport
from snuh.errors import InputError, suggest
from snuh.storage import atomic_write, dump_json

SUFFIXES = (".jsonl", ".csv")
FIELDS = ("id", "action", "cluster", "representative", "similarity", "distance")
CLUSTERS_SHOWN, IDS_SHOWN = 10, 4


def check_out(path: Path) -> None:
    """Raise InputError where `path` asks for a kind of file that there is not."""
    if path.suffix.lower() not in SUFFIXES:
        kinds = " or ".join(SUFFIXES)
        raise InputError(
            f"{path}: duplicates are written to files ending in {kinds}{suggest(path.suffix, SUFFIXES)}"
        )


def write_report(path: Path, report: DuplicateReport) -> None:
    """Write a line for each document of a cluster, by cluster, the kept one first."""
    with atomic_write(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        if path.suffix.lower() == ".csv":
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(one.to_json() for one in report.duplicates)
        else:
            file.writelines(dump_json(one.to_json()) + "\n" for one in report.duplicates)


def report_to_json(report: DuplicateReport) -> dict[str, Any]:
    """Return the summary and the biggest clusters as plain values."""
    biggest = [[one.to_json() for one in cluster] for cluster in report.biggest(CLUSTERS_SHOWN)]
    return {**report.summary(), "biggest": biggest}


def print_report(report: DuplicateReport, *, out: Path | None, deleted: int | None) -> None:
    """Print the summary and the biggest clusters."""
    share = report.dropped / max(1, report.documents)
    facts = [
        ("documents", f"{report.documents:,}"),
        ("duplicates", f"{report.dropped:,} ({share:.1%}), in {plural(report.clusters, 'cluster')}"),
        ("compared", f"within {report.radius} bits, similarity from {report.threshold:.3g}"),
    ]
    if out is not None:
        facts.append(("written to", str(out)))
    if deleted is not None:
        facts.append(("deleted", plural(deleted, "document")))
    print_facts(facts)
    if not report.clusters:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True, title_justify="left")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("kept", no_wrap=True, style="cyan", max_width=40)
    table.add_column("similarity", justify="right", no_wrap=True)
    table.add_column("repeated by", no_wrap=True, ratio=1)
    for cluster in report.biggest(CLUSTERS_SHOWN):
        others = [one for one in cluster if not one.keep]
        names = ", ".join(one.id for one in others[:IDS_SHOWN]) + (", ..." if len(others) > IDS_SHOWN else "")
        least = min(one.similarity for one in cluster)
        kept = Text(harmless(cluster[0].id))
        table.add_row(str(len(cluster)), kept, f"from {least:.2f}", Text(harmless(names)))
    results_console().print(table)
