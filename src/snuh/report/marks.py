"""Marks that tell labels apart on a map, also on grey paper: each has a colour and a shape."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from snuh.report.tags import tag

COLOURS = 7  # classes hue0 to hue6 of the page
SHAPES = (
    "m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0",  # a disc
    "m0-4.4l4 7h-8z",  # a triangle
    "m-3 -3h6v6h-6z",  # a square
)
MARKS = COLOURS * len(SHAPES)
REST = "hues"  # the class of labels that have no mark of their own


def marks(rank: int, places: Sequence[tuple[int, int]]) -> Element:
    """Return one path of a label's points."""
    shape = SHAPES[min(rank, MARKS - 1) // COLOURS]
    path = "".join(f"M{x} {y}{shape}" for x, y in places)
    return tag("path", d=path, class_=style(rank))


def style(rank: int) -> str:
    """Return the class of a label's colour."""
    return f"hue{rank % COLOURS}" if rank < MARKS else REST


def sample(rank: int) -> Element:
    """Return a mark for a legend."""
    return tag("svg", marks(rank, [(6, 6)]), viewBox="0 0 12 12", class_="sample", aria_hidden="true")
