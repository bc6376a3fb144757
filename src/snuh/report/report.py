"""The whole report: what is said first, and the sections of each protocol that a file has runs of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

from snuh.errors import InputError
from snuh.experiments.figures import PROTOCOLS
from snuh.experiments.run import Row, Select
from snuh.report.cases import cases
from snuh.report.comparisons import appendix, table1, table2
from snuh.report.costs import efficiency
from snuh.report.facts import facts
from snuh.report.maps import maps
from snuh.report.pairs import pairs
from snuh.report.score import score
from snuh.report.section import Section
from snuh.report.sweeps import sweeps

Part: TypeAlias = Callable[[Sequence[Row], Select], Section | None]

PARTS: Sequence[Part] = (table1, pairs, table2, sweeps, appendix, score, efficiency, maps, cases)
NAMES: dict[Select, str] = {"label-free": "Without labels", "labels": "The paper's protocol"}


@dataclass(frozen=True)
class Protocol:
    """The sections of the runs of one protocol; runs of two never meet in a table."""

    select: Select
    title: str
    about: str
    sections: Sequence[Section]


@dataclass(frozen=True)
class Report:
    """All that the page and the summary say."""

    source: str  # the name of the file of runs
    facts: Sequence[tuple[str, Sequence[str]]]
    protocols: Sequence[Protocol]


def make_report(rows: Sequence[Row], source: str) -> Report:
    """Make the report of a file's rows; InputError where they fill no table."""
    _check_names(rows, source)
    protocols = []
    for select in get_args(Select):
        of_protocol = [row for row in rows if row["select"] == select]
        found = [part(of_protocol, select) for part in PARTS]
        sections = [section for section in found if section is not None]
        if sections:
            protocols.append(Protocol(select, NAMES[select], PROTOCOLS[select], sections))
    if not protocols:
        raise InputError(
            f"{source} has {'no runs' if not rows else 'no runs of a table or figure'} to report: "
            'do some first, such as "snuh reproduce table1 --quick"'
        )
    return Report(source, facts(rows), protocols)


def _check_names(rows: Sequence[Row], source: str) -> None:
    """Raise InputError for a name that would end the cell of a table, or begin something else in it."""
    for name in {str(row[field]) for row in rows for field in ("corpus", "method")}:
        if not name.isprintable() or any(sign in "|<>&[]*`\\" for sign in name):
            raise InputError(f"{source} has runs of {name!r}, which is no name of a corpus or a method")
