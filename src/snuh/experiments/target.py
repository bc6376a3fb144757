"""What can be reproduced: a target has a name, the runs that it wants, and a way to print them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from snuh.errors import InputError
from snuh.experiments.cells import Printed
from snuh.experiments.run import Observe, Row, Run, Select


@dataclass(frozen=True)
class Variant:
    """A row of a table: a method, and the parameters that tell it from the other rows."""

    label: str
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    observe: Observe = "codes"
    documents: int | None = None


@dataclass(frozen=True)
class Choice:
    """What of a target is wanted."""

    corpora: tuple[str, ...]
    methods: tuple[str, ...]
    bits: tuple[int, ...]
    seeds: tuple[int, ...]
    values: tuple[float, ...] = ()  # of what a sweep varies
    select: Select = "label-free"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)

    def run(self, corpus: str, variant: Variant, bits: int, seed: int) -> Run:
        """Return one run of this choice."""
        parameters = {**self.parameters, **variant.parameters}
        return Run(
            corpus,
            variant.method,
            bits,
            seed,
            self.select,
            parameters,
            self.features,
            variant.observe,
            variant.documents,
        )

    def check_not_given(self, names: Sequence[str], *, target: str) -> None:
        """Raise InputError where a parameter is given that the target sets itself."""
        for name in names:
            if name in self.parameters:
                raise InputError(
                    f"{target} sets {name} itself: leave it out of --set, or of the file of settings"
                )


@dataclass(frozen=True)
class Target:
    """A table or figure of the paper."""

    name: str
    usual: Choice  # what is not chosen otherwise
    quick: Choice  # a smaller part that says something already
    variants: Callable[[Choice], Sequence[Variant]]  # InputError for a choice that it has no use for
    table: Callable[[Choice, Sequence[Variant], Sequence[Row]], Printed]  # of a file's rows

    def runs(self, choice: Choice) -> list[Run]:
        """Return all combinations, one seed after the other: a stop leaves a table with fewer seeds."""
        combinations = product(choice.seeds, choice.corpora, choice.bits, self.variants(choice))
        return [choice.run(corpus, variant, bits, seed) for seed, corpus, bits, variant in combinations]

    def markdown(self, choice: Choice, rows: Sequence[Row]) -> str:
        """Return what was chosen as Markdown, from the rows that a file holds."""
        return self.table(choice, self.variants(choice), rows).markdown()
