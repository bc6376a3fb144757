"""Rows of runs with known results, of every kind that a report shows; and a parser of the page."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from snuh.experiments.report.report import build_report, render_html, render_markdown
from snuh.experiments.scores import CANDIDATES
from tests.experiments.worlds import finished

Rows = list[dict[str, Any]]

HOSTILE = (
    '</td><script>alert("x")</script><img src=http://evil.example/x> | **b** [a](http://evil.example) \x1b[2J'
)
DEFAULTS = {"trees": 20, "neighbors": 10, "tau": 0.1, "beta": None, "correlation": "encoder"}
VOID = {"meta", "br", "img", "hr", "input", "link"}


def compared() -> Rows:
    """Three methods, two lengths and three seeds on two corpora: snuh-plus is always .02 above snuh."""
    rows = []
    for corpus, base in (("ng20", 0.5), ("tmc", 0.6)):
        for bits in (16, 64):
            for seed in (0, 1, 2):
                value = base + bits / 1000 + seed / 100
                for method, gain in (("snuh-plus", 0.02), ("snuh", 0.0), ("itq", -0.1 - seed / 50)):
                    key = {"corpus": corpus, "method": method, "bits": bits, "seed": seed}
                    rows.append(finished(round(value + gain, 5), **key))
    return rows


def swept() -> Rows:
    """The trees of snuh on ng20 with two seeds; 20 is the default and no parameter."""
    values = {0: 0.5, 1: 0.55, 5: 0.6, 20: 0.62}
    rows = []
    for trees, precision in values.items():
        given: dict[str, Any] = {"trees": trees} if trees else {"correlation": "none"}
        for seed in (0, 1):
            key: dict[str, Any] = {"bits": 64, "seed": seed, "parameters": {} if trees == 20 else given}
            rows.append(finished(precision + seed / 100, **key, all_parameters=DEFAULTS | given))
    return rows


def costed() -> Rows:
    """Time and memory of snuh and vdsh, of which snuh takes twice as long."""
    rows = []
    for documents in (1_000, 3_000, 10_000):
        for method, factor in (("snuh", 2.0), ("vdsh", 1.0)):
            cost = {
                "epoch_seconds": factor * documents / 1000,
                "seconds": 10.0 * factor,
                "peak_megabytes": 500,
            }
            key = {"method": method, "bits": 64, "parameters": {"epochs": 3}, "documents": documents}
            rows.append(finished(0.3, **key, train_documents=documents, **cost))
    return rows


def scored() -> Rows:
    """Five methods whose scores are in the order of their precision; "words" turns it round."""
    rows = []
    for number, method in enumerate(("lsh", "sph", "itq", "snuh", "snuh-plus")):
        scores = {name: 0.1 * number for name in CANDIDATES} | {"words": -0.1 * number}
        rows.append(
            finished(0.2 + 0.1 * number, corpus="agnews", method=method, bits=64, candidate_scores=scores)
        )
    return rows


def mapped(labels: int = 3) -> Rows:
    """A map of 60 points for snuh and for ammi."""
    points = [[17 * i % 1000, 31 * i % 1000, i % labels] for i in range(60)]
    data = {"labels": [f"label {i}" for i in range(labels)], "points": points}
    return [
        finished(0.5, method=method, bits=64, artifact="map", artifact_data=data)
        for method in ("snuh", "ammi")
    ]


def studied(title: str = "NHL results", label: str = "hockey") -> Rows:
    """A query and two documents."""
    documents = [{"distance": distance, "labels": [label, "b"], "title": title} for distance in (1, 20)]
    data = {"query": {"labels": [label], "title": title}, "documents": documents}
    return [finished(0.5, bits=128, artifact="examples", artifact_data=data)]


def everything() -> Rows:
    """Rows of every kind."""
    ablated = finished(0.41, parameters={"correlation": "none"})
    rows = [
        *compared(),
        ablated,
        finished(0.4, method="rbsh"),
        *swept(),
        *costed(),
        *scored(),
        *mapped(),
        *studied(),
    ]
    return rows + [row | {"select": "labels"} for row in compared()]


def page_of(rows: Rows) -> str:
    """Return the page of these rows."""
    return render_html(build_report(rows, "runs.jsonl"))


def summary_of(rows: Rows) -> str:
    """Return the summary of these rows."""
    return render_markdown(build_report(rows, "runs.jsonl"), "report.html")


class Reader(HTMLParser):
    """Reads a page, and fails where an element is not closed in its order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self._caption, self._lines = "", list[list[str]]()
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self._caption, self._lines = "", []
        elif tag == "tr":
            self._lines.append([])
        elif tag in ("td", "th"):
            self._lines[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "table":
            self.tables[self._caption] = self._lines

    def handle_data(self, data: str) -> None:
        if "caption" in self.open:
            self._caption += data
        elif "table" in self.open and "svg" not in self.open and ("td" in self.open or "th" in self.open):
            self._lines[-1][-1] += data

    def all(self, tag: str) -> list[dict[str, str]]:
        """Return the attributes of each element of a kind."""
        return [attributes for kind, attributes in self.elements if kind == tag]
