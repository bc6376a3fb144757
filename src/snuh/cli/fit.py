"""`snuh fit`: from documents to a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.options import IdField, Json, Length, Method, Seed, Settings, Source, TextField

if TYPE_CHECKING:
    from snuh.model import Model

EXAMPLES = (
    "snuh fit tickets.jsonl --out model",
    "snuh fit articles.csv --text-field body --out model --bits 128",
    "snuh fit notes/ --out model --set epochs=10 --set features.max_terms=20000",
    "snuh fit tickets.jsonl --out model --config settings.json",
)


def fit(
    source: Source,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The model folder to write.")],
    method: Method = None,
    bits: Length = None,
    seed: Seed = None,
    settings: Settings = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help='Settings from a file made by "snuh tune"; other options come before it.'
        ),
    ] = None,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Learn codes from documents and write a model folder.

    Learns from the documents whose split is train (all, where there is no split); val, where there is one,
    chooses the epoch, test is never looked at, and labels are never used. Ctrl-C ends training early and
    keeps the best model so far. A model that is already at --out is replaced once the new one is complete.
    """
    import time

    from snuh.cli.config import read_config
    from snuh.cli.learning import check_features, learn, make_hasher
    from snuh.cli.output import check_place, print_json
    from snuh.cli.sources import open_documents
    from snuh.storage import check_replaceable

    started = time.perf_counter()
    hasher = make_hasher(
        method,
        bits=bits,
        seed=seed,
        settings=settings or (),
        config=None if config is None else read_config(config),
    )
    check_replaceable(out)
    check_place(out)
    documents = open_documents(source, text_field=text_field, id_field=id_field)
    check_features(hasher, documents)
    model = learn(hasher, documents, save=lambda: hasher.save(out))
    summary = summarize(model, out, seconds=time.perf_counter() - started)
    if as_json:
        print_json(summary)
    else:
        print_summary(summary)


def summarize(model: Model, place: Path | str, *, seconds: float) -> dict[str, Any]:
    """Return what a fit led to, ready for JSON."""
    terms = None if model.features is None else len(model.features.terms)
    training = {name: value for name, value in model.training.items() if name != "versions"}
    return {
        "model": str(place),
        "method": model.method,
        "bits": model.bits,
        "terms": terms,
        **training,
        "parameters": model.parameters,
        "seconds": round(seconds, 3),
    }


def print_summary(summary: dict[str, Any]) -> None:
    """Print what a fit led to, for people."""
    from snuh.cli.output import SCORE, print_facts

    words = "" if summary["terms"] is None else f", {summary['terms']:,} words"
    ends = {"patience": "no longer improving", "epochs": "all of them", "interrupted": "interrupted"}
    ended = ends.get(summary["stopped"], summary["stopped"])
    epochs = f"{summary['epochs']} ({ended}), the best is {summary['best_epoch']}"
    codes = "alive" if summary["alive"] else "dead: nearly all documents share one code"
    if "distinct_codes" in summary:
        codes += f", {summary['distinct_codes']:,} distinct"
    facts = [
        ("model", summary["model"]),
        ("method", f"{summary['method']}, {summary['bits']} bits, seed {summary['seed']}"),
        ("documents", f"{summary['documents']:,} for training{words}"),
        *([("graph", describe_graph(summary["graph"]))] if "graph" in summary else []),
        *([("epochs", epochs)] if summary["epochs"] else []),
        ("score", f"{summary['score']:.4f} ({SCORE})"),
        ("codes", codes),
        ("seconds", f"{summary['seconds']:.1f}"),
    ]
    print_facts(facts)


def describe_graph(graph: dict[str, Any]) -> str:
    """Say how the neighbours were searched for."""
    if graph["search"] == "exact":
        return "exact"
    return f"approximate, {graph['recall']:.1%} of the exact neighbours (measured on a sample)"
