"""`snuh fit`: from documents to a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.options import IdField, Json, Length, Method, ModelFolder, Seed, Settings, Source, TextField

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

    from snuh.cli.output import check_writable, open_documents, print_json
    from snuh.cli.training import check_features, learn, make_hasher, read_config
    from snuh.io import check_replaceable

    started = time.perf_counter()
    hasher = make_hasher(
        method,
        bits=bits,
        seed=seed,
        settings=settings or (),
        config=None if config is None else read_config(config),
    )
    check_replaceable(out)
    check_writable(out)
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


# `snuh methods`: what can be learnt with.

METHODS_EXAMPLES = ("snuh methods", "snuh methods --json")


def methods(as_json: Json = False) -> None:
    """List the methods that learn codes."""
    from dataclasses import asdict

    from snuh.cli.output import print_json, results_console
    from snuh.methods import DEFAULT, METHODS

    if as_json:
        listed = ({"name": name, "default": name == DEFAULT} | asdict(row) for name, row in METHODS.items())
        print_json({"methods": list(listed)})
        return

    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("method", no_wrap=True, style="bold")
    table.add_column("year", no_wrap=True)
    table.add_column("what it is")
    for name, info in METHODS.items():
        needs = {"a neighbour graph": info.needs_graph, "PyTorch": info.needs_torch}
        needed = " and ".join(what for what, is_needed in needs.items() if is_needed) or "nothing more"
        about = f"{info.paper}; needs {needed}; {info.cost}"
        table.add_row(name, str(info.year), Text.assemble(info.summary, "\n", (about, "dim")))
    results_console().print(table)


# `snuh bits`: what each bit of the codes stands for, in words.

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snuh.explain import BitMeaning

BITS_EXAMPLES = ("snuh bits model", "snuh bits model --bit 7 --words 40", "snuh bits model --json")


def bits(
    model: ModelFolder,
    bit: Annotated[int | None, typer.Option(metavar="N", help="Only this bit, counted from 0.")] = None,
    words: Annotated[int, typer.Option(metavar="N", help="How many words a side, at most.")] = 10,
    as_json: Json = False,
) -> None:
    """Show what each bit stands for: the words of documents where it is 1, and where it is 0.

    Words that the codes treat alike stand together. A bit has several such themes on each side.
    """
    from dataclasses import asdict

    from snuh.cli.base_command import say
    from snuh.cli.output import print_json
    from snuh.errors import InputError
    from snuh.explain import bit_meanings
    from snuh.model import load

    if words < 1:
        raise InputError(f"--words must be at least 1, got {words}")
    loaded = load(model)
    if bit is not None and not 0 <= bit < loaded.bits:
        raise InputError(f"--bit must be from 0 to {loaded.bits - 1}, got {bit}")
    meanings = bit_meanings(loaded, words=words)
    if not meanings[0].uses_decoder:
        say("warning: this model was saved without its decoder: these are the words of its encoder alone")
    shown = meanings if bit is None else [meanings[bit]]
    if as_json:
        rows = [asdict(meaning) for meaning in shown]
        print_json({"model": str(model), "method": loaded.method, "bits": loaded.bits, "meanings": rows})
    else:
        print_meanings(shown)


def print_meanings(meanings: Sequence[BitMeaning]) -> None:
    """Print meanings as a table, one row a bit."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from snuh.cli.output import results_console

    has_balance = any(meaning.balance is not None for meaning in meanings)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("bit", justify="right", no_wrap=True, style="bold")
    if has_balance:
        table.add_column("ones", justify="right", no_wrap=True, style="dim")
    table.add_column("words when 1", ratio=1)
    table.add_column("words when 0", ratio=1)
    between = Text("; ", style="dim")
    for meaning in meanings:
        balance = [f"{meaning.balance:.0%}" if meaning.balance is not None else ""] if has_balance else []
        sides = [
            between.join(Text(" ".join(theme)) for theme in themes) for themes in (meaning.on, meaning.off)
        ]
        table.add_row(str(meaning.bit), *balance, *sides)
    results_console().print(table)
