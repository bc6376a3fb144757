"""Maps of codes: test documents in the plane by method, coloured by label, with one legend a corpus."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

from snuh.experiments.cells import number
from snuh.experiments.maps import MAP, NEAREST, same_label
from snuh.experiments.run import Row, Select
from snuh.report.chart import drawing
from snuh.report.choices import of_methods
from snuh.report.marks import MARKS, marks, sample, style
from snuh.report.section import Section, figures, paragraphs, repeat
from snuh.report.tags import tag

SIZE, MARGIN = 1_000, 12
NUMBERED_FROM = 5  # points; the number of a smaller label would stand for nothing

ABOUT = f"""t-SNE of the values that the bits are cut from, of test documents, a mark for each; a
document of several labels counts for the first of them. The number of a label stands where the middle of
its points is. Below each map: of the {NEAREST} nearest points of a point, the share with its label."""


def maps(rows: Sequence[Row], select: Select) -> Section | None:
    """Return the maps, side by side by corpus."""
    held = of_methods(MAP, rows, select, others=True)
    if held is None:
        return None
    drawn = []
    for corpus in held.choice.corpora:
        found = [
            row
            for bits in held.choice.bits
            for variant in held.variants
            for row in held.figures.rows(corpus, bits, variant)
        ]
        if found:
            ranks = ranked(found)
            drawn += [figures(*(_figure(row, ranks) for row in found)), _legend(corpus, ranks)]
    if not drawn:
        return None
    elements = [*paragraphs(ABOUT), repeat(select, "map"), *drawn]
    return Section("map", "Maps of the codes", elements, held.printed.markdown())


def ranked(rows: Sequence[Row]) -> Mapping[str, int]:
    """Number the labels: by name while there is a mark for each, or the most frequent first."""
    counts = Counter(_label(row, point) for row in rows for point in row["observed"]["points"])
    by_count = sorted(counts, key=lambda label: (-counts[label], label))
    names = sorted(counts) if len(counts) <= MARKS else by_count
    return {label: rank for rank, label in enumerate(names)}


def _figure(row: Row, ranks: Mapping[str, int]) -> Element:
    points = row["observed"]["points"]
    title = f"{row['method']}, {row['corpus']}, {row['bits']} bits, seed {row['seed']}"
    about = f"{len(points):,} documents in the plane, a colour and a shape for each of {len(ranks)} labels."
    canvas = drawing(SIZE + 2 * MARGIN, SIZE + 2 * MARGIN, title, about, style="map")
    places: dict[str, list[tuple[int, int]]] = {}
    for point in points:
        places.setdefault(_label(row, point), []).append((point[0] + MARGIN, point[1] + MARGIN))
    # Labels without a mark of their own first: they are the background.
    for label in sorted(places, key=lambda name: ranks[name], reverse=True):
        canvas.append(marks(ranks[label], places[label]))
    for label, of_label in places.items():
        if ranks[label] < MARKS and len(of_label) >= NUMBERED_FROM:
            across, down = (statistics.median(place[axis] for place in of_label) for axis in (0, 1))
            number_text = tag("text", str(ranks[label] + 1), x=across, y=down + 10, class_="number")
            canvas.append(number_text)
    share = number(same_label(points), digits=3)
    return tag("figure", canvas, tag("figcaption", f"{title}: {share} with the same label"))


def _legend(corpus: str, ranks: Mapping[str, int]) -> Element:
    shown = [
        tag("li", sample(rank), f"{rank + 1} ", tag("bdi", label), class_=style(rank))
        for label, rank in ranks.items()
        if rank < MARKS
    ]
    if len(ranks) > MARKS:
        shown.append(tag("li", sample(MARKS), f"{len(ranks) - MARKS} other labels"))
    return tag("ul", *shown, class_="legend", aria_label=f"labels of {corpus}")


def _label(row: Row, point: Sequence[int]) -> str:
    name: str = row["observed"]["labels"][point[2]]
    return name
