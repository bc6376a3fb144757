"""Parameters of the tree methods that go by the number of documents where not given; without PyTorch.

On some hundreds of documents twenty neighbours are a good part of the corpus, and few of them are about the
same thing; and batches of a hundred leave too few steps before the divergences outweigh what the decoder has
learnt. With the numbers for thousands, `snuh` ended near chance on 300 short texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BySize:
    """A number that grows with the documents, one for every `per` of them, within bounds."""

    per: int
    least: int
    most: int  # as on any corpus of thousands

    def at(self, docs: int) -> int:
        """Return the number for so many documents."""
        return min(self.most, max(self.least, docs // self.per))


BY_SIZE: Mapping[str, BySize] = {
    "batch_size": BySize(per=10, least=32, most=128),
    "neighbors": BySize(per=100, least=5, most=20),
}


def usual(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with what None stands for on a corpus of thousands, where that goes by the size."""
    return {
        name: BY_SIZE[name].most if value is None and name in BY_SIZE else value
        for name, value in parameters.items()
    }
