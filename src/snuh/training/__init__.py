"""What the methods share: estimators, training loops, objectives and closed forms.

This file has the defaults of the tree methods that depend on the number of documents; it needs no PyTorch. In
a corpus of a few hundred documents, twenty neighbours are a large part of it and few of them share a topic;
and batches of a hundred leave too few steps before the divergences outweigh what the decoder has learnt. With
the values for thousands of documents, `snuh` ended near random codes on 300 short texts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Read when PyTorch is imported. By default, the threads of OpenMP spin while they wait for each other; if
# other programs are busy, most of the processor time would be spent on that.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


VECTOR_METHODS = "snuh-plus, snuh, itq, sth, sph and lsh"  # those with `reads_vectors`, for messages


@dataclass(frozen=True)
class SizeDefault:
    """A default that grows with the corpus: one for every `per` documents, within bounds."""

    per: int
    minimum: int
    maximum: int  # the value for corpora of thousands of documents

    def at(self, docs: int) -> int:
        """Return the default for n documents."""
        return min(self.maximum, max(self.minimum, docs // self.per))


DEFAULTS_BY_SIZE: Mapping[str, SizeDefault] = {
    "batch_size": SizeDefault(per=10, minimum=32, maximum=128),
    "neighbors": SizeDefault(per=100, minimum=5, maximum=20),
}


def resolve_for_large_corpus(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Replace None by the default for a corpus of thousands, for the parameters in DEFAULTS_BY_SIZE."""
    return {
        name: DEFAULTS_BY_SIZE[name].maximum if value is None and name in DEFAULTS_BY_SIZE else value
        for name, value in parameters.items()
    }
