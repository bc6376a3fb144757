"""What a file of runs holds of a target: its choice, cut down to the rows that are there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from snuh.experiments.cells import Printed
from snuh.experiments.figures import Figures
from snuh.experiments.run import Row, Select, run_key
from snuh.experiments.target import Choice, Target, Variant

Value = TypeVar("Value", str, int)


@dataclass(frozen=True)
class Held:
    """The part of a target that a file holds, and how to print it."""

    target: Target
    choice: Choice
    variants: Sequence[Variant]
    rows: Sequence[Row]

    @cached_property
    def figures(self) -> Figures:
        """The figures of the choice."""
        return Figures(self.choice, self.rows)

    def of_corpus(self, corpus: str) -> Held:
        """Return the part on one corpus."""
        return replace(self, choice=replace(self.choice, corpora=(corpus,)))

    @cached_property
    def printed(self) -> Printed:
        """What the target itself shows of it."""
        return self.target.table(self.choice, self.variants, self.rows)


def held(target: Target, choice: Choice, variants: Sequence[Variant], rows: Sequence[Row]) -> Held | None:
    """Return what the rows hold of these variants, on any corpus; None where that is nothing.

    Lengths that the target does not ask for are shown only where there are no others; seeds are shown all.
    """
    wanted = {choice.run("", variant, 0, 0).key for variant in variants}
    found = [row for row in rows if _kind(row) in wanted]
    if not found:
        return None
    bits = {row["bits"] for row in found}
    chosen = replace(
        choice,
        corpora=in_order(choice.corpora, (row["corpus"] for row in found)),
        bits=tuple(sorted(bits & set(choice.bits) or bits)),
        seeds=tuple(sorted({row["seed"] for row in found})),
    )
    return Held(target, chosen, variants, rows)


def of_methods(target: Target, rows: Sequence[Row], select: Select, *, others: bool = False) -> Held | None:
    """Return what the rows hold of a target, of its own methods or, if wanted, of others too."""
    choice = replace(target.usual, select=select)
    methods = in_order(choice.methods, (row["method"] for row in rows)) if others else choice.methods
    of_each = {method: target.variants(replace(choice, methods=(method,))) for method in methods}
    kept = [method for method in methods if held(target, choice, of_each[method], rows)]
    choice = replace(choice, methods=tuple(kept))
    return held(target, choice, target.variants(choice), rows) if kept else None


def in_order(usual: Sequence[Value], found: Iterable[Value]) -> tuple[Value, ...]:
    """Return each that was found once, the usual ones first and in their order."""
    distinct = set(found)
    return tuple(one for one in usual if one in distinct) + tuple(sorted(distinct - set(usual)))


def _kind(row: Row) -> str:
    """What a row shares with the runs of its variant: all but the corpus, the length and the seed."""
    return run_key(row | {"corpus": "", "bits": 0, "seed": 0})
