"""What can be reproduced: a target has a name, the runs that it wants, and a way to print them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from snuh.experiments.run import Row, Run, Select


@dataclass(frozen=True)
class Choice:
    """What of a target is wanted."""

    corpora: tuple[str, ...]
    methods: tuple[str, ...]
    bits: tuple[int, ...]
    seeds: tuple[int, ...]
    select: Select = "score"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)

    def run(self, corpus: str, method: str, bits: int, seed: int) -> Run:
        """Return one run of this choice."""
        return Run(corpus, method, bits, seed, self.select, self.parameters, self.features)

    def every_run(self) -> list[Run]:
        """Return all combinations, one seed after the other: a stop leaves a table with fewer seeds."""
        combinations = product(self.seeds, self.corpora, self.bits, self.methods)
        return [self.run(corpus, method, bits, seed) for seed, corpus, bits, method in combinations]


@dataclass(frozen=True)
class Target:
    """A table or figure of the paper."""

    name: str
    usual: Choice  # what is not chosen otherwise
    quick: Choice  # a smaller part that says something already
    runs: Callable[[Choice], list[Run]]
    table: Callable[[Choice, Sequence[Row]], str]  # Markdown, of the rows that a file holds
