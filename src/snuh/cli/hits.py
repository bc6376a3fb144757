"""What a search found: a table for people, JSON for machines, and the words that brought each hit up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from snuh.cli.output import hit_to_json, results_console, start_of
from snuh.cli.plain import harmless
from snuh.errors import InputError
from snuh.explain import Explanation, WordShare, explain, marked
from snuh.model import Model
from snuh.search import Hit

if TYPE_CHECKING:
    from rich.console import Console

STRONG, WEAK = 0.35, 0.05  # weights from which a word is marked


@dataclass(frozen=True, slots=True)
class Found:
    """The hits of a query, and, where they were asked for, as many reasons."""

    query: str
    hits: Sequence[Hit]
    reasons: Sequence[Explanation] = ()

    @classmethod
    def of(cls, query: str, hits: Sequence[Hit], *, explained_by: Model | None = None) -> Found:
        """Return the hits, with reasons where there is a model to ask."""
        if explained_by is None:
            return cls(query, hits)
        return cls(query, hits, [explain(explained_by, query, hit.document.text) for hit in hits])

    def to_json(self) -> list[dict[str, Any]]:
        """Return the hits as plain values; a word of an explanation comes with its shares."""
        rows = [hit_to_json(hit) for hit in self.hits]
        for row, reason in zip(rows, self.reasons, strict=False):
            row["query_words"] = [_share_to_json(share) for share in reason.query_words]
            row["words"] = [_share_to_json(share) for share in reason.hit_words]
        return rows


def check_k(k: int) -> None:
    """Raise InputError unless something is asked for."""
    if k < 1:
        raise InputError(f"-k must be at least 1, got {k}")


def print_found(found: Found) -> None:
    """Print hits as a table, one line each, and below it the reason where there is one."""
    console = results_console()
    has_labels = any(hit.document.labels for hit in found.hits)
    has_scores = any(hit.score is not None for hit in found.hits)
    if found.reasons:
        shares = _summed([reason.query_words for reason in found.reasons])
        console.print(Text.assemble(("query  ", "dim"), _marked(found.query, shares, console)))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("distance", justify="right", no_wrap=True)
    if has_scores:
        table.add_column("score", justify="right", no_wrap=True)
    table.add_column("id", no_wrap=True, style="cyan", max_width=48)
    if has_labels:
        table.add_column("labels", no_wrap=True, style="green", max_width=24)
    table.add_column("text", no_wrap=True, ratio=1)  # takes the width that the others leave
    for number, hit in enumerate(found.hits):
        scores = [f"{hit.score:.3f}" if hit.score is not None else ""] if has_scores else []
        labels = [Text(harmless(", ".join(hit.document.labels)))] if has_labels else []
        line = Text(harmless(start_of(hit.document.text)))
        table.add_row(str(hit.distance), *scores, Text(harmless(hit.document.id)), *labels, line)
        if found.reasons:
            snippet = _marked(hit.document.text, found.reasons[number].hit_words, console)
            table.add_row(*[""] * (2 + has_scores + has_labels), snippet)
    console.print(table)


def _marked(text: str, shares: Sequence[WordShare], console: Console) -> Text:
    """Mark the words that made two codes agree, and those that made them differ; signs where no colours are.

    What a word did for the bits that agree, less what it did for those that differ, is how far it pushed the
    code towards the other one, or away from it.
    """
    has_colours = console.color_system is not None and not console.no_color
    pushes = [replace(share, agreeing=share.agreeing - share.differing) for share in shares]
    line = Text(no_wrap=False)
    for fragment in marked(text, pushes):
        words, weight = harmless(fragment.text), fragment.weight
        if abs(weight) < WEAK:
            line.append(words)
        elif has_colours:
            style = "dim red" if weight < 0 else "bold green" if weight >= STRONG else "green"
            line.append(words, style=style)
        else:
            line.append(f"*{words}*" if weight > 0 else f"~{words}~")
    return line


def _summed(all_shares: Sequence[Sequence[WordShare]]) -> list[WordShare]:
    """Add up the shares that the words of one text have in several explanations."""
    sums: dict[str, WordShare] = {}
    for shares in all_shares:
        for share in shares:
            before = sums.get(share.word)
            sums[share.word] = (
                share
                if before is None
                else replace(
                    share,
                    agreeing=before.agreeing + share.agreeing,
                    differing=before.differing + share.differing,
                )
            )
    return list(sums.values())


def _share_to_json(share: WordShare) -> dict[str, Any]:
    return {"word": share.word, "agreeing": round(share.agreeing, 6), "differing": round(share.differing, 6)}
