"""`snuh fit`, `snuh methods` and `snuh bits`: train a model, list the methods, describe the bits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.base_command import (
    ConfigFile,
    EmbedWith,
    IdField,
    Json,
    Length,
    Method,
    ModelOrCollection,
    Seed,
    Settings,
    Source,
    SplitField,
    TextField,
    Vectors,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from snuh.explain import BitMeaning
    from snuh.model import Model

EXAMPLES = (
    "snuh fit tickets.jsonl --out model",
    "snuh fit articles.csv --text-field body --out model --bits 128",
    "snuh fit notes/ --out model --set epochs=10 --set features.max_terms=20000",
    "snuh fit tickets.jsonl --out model --config settings.json",
    "snuh fit tickets.jsonl --out model --vectors embedding",
    "snuh fit tickets.jsonl --out model --embed-with minilm/",
)
METHODS_EXAMPLES = ("snuh methods", "snuh methods --json")
BITS_EXAMPLES = (
    "snuh bits model",
    "snuh bits model --bit 7 --words 40",
    "snuh bits tickets --json",
)

SCORE_HELP = "see docs/concepts.md#held-out-score"
STOP_REASONS = {"patience": "no further improvement", "epochs": "all epochs", "interrupted": "interrupted"}


def fit(
    source: Source,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="Model folder to write.")],
    method: Method = None,
    bits: Length = None,
    seed: Seed = None,
    settings: Settings = None,
    config: ConfigFile = None,
    text_field: TextField = "text",
    id_field: IdField = "id",
    split_field: SplitField = "split",
    vectors: Vectors = None,
    embed_with: EmbedWith = None,
    as_json: Json = False,
) -> None:
    """Train a model on documents and write a model folder.

    Trains on the split train and on documents without a split. The split val, if present, selects the epoch;
    test is not read, and labels are not used. With --vectors or --embed-with, the model reads the documents'
    vectors beside their words; it encodes documents without a vector as well. Ctrl-C stops training and keeps
    the best model so far. An existing model is replaced once the new one is complete.
    """
    import time

    from snuh.cli.output import check_writable, load_embedder, open_documents, print_json
    from snuh.cli.training import check_features, make_hasher, train
    from snuh.io import check_replaceable

    started = time.perf_counter()
    hasher = make_hasher(method, bits=bits, seed=seed, settings=settings or (), config=config)
    check_replaceable(out)
    check_writable(out)
    documents = open_documents(
        source, text_field=text_field, id_field=id_field, split_field=split_field, vectors=vectors
    )
    check_features(hasher, documents)
    hasher.embed = load_embedder(embed_with, vectors)
    model = train(hasher, documents, save=lambda: hasher.save(out))
    summary = summarize(model, out, seconds=time.perf_counter() - started)
    if as_json:
        print_json(summary)
    else:
        print_summary(summary)


def summarize(model: Model, path: Path | str, *, seconds: float) -> dict[str, Any]:
    """Return a summary of a fit as a JSON object."""
    terms = None if model.features is None else len(model.features.terms)
    training = {name: value for name, value in model.training.items() if name != "versions"}
    return {
        "model": str(path),
        "method": model.method,
        "bits": model.bits,
        "terms": terms,
        "languages": None if model.features is None else list(model.features.analyzer.languages),
        **({} if model.vectors is None else {"vectors": model.vectors.to_json()}),
        **training,
        "parameters": model.parameters,
        "seconds": round(seconds, 3),
    }


def print_summary(summary: dict[str, Any]) -> None:
    """Print the summary of a fit."""
    from snuh.cli.output import print_facts

    terms = "" if summary["terms"] is None else f", {summary['terms']:,} terms"
    stopped = STOP_REASONS.get(summary["stopped"], summary["stopped"])
    epochs = f"{summary['epochs']} ({stopped}), best epoch {summary['best_epoch']}"
    codes = "alive" if summary["alive"] else "dead: nearly all documents share one code"
    if "distinct_codes" in summary:
        codes += f", {summary['distinct_codes']:,} distinct"
    facts = [
        ("model", summary["model"]),
        ("method", f"{summary['method']}, {summary['bits']} bits, seed {summary['seed']}"),
        ("documents", f"{summary['documents']:,} for training{terms}"),
        *([("vectors", describe_vectors(summary["vectors"]))] if "vectors" in summary else []),
        *([] if summary["languages"] is None else [("languages", describe_languages(summary["languages"]))]),
        *([("graph", describe_graph(summary["graph"]))] if "graph" in summary else []),
        *([("epochs", epochs)] if summary["epochs"] else []),
        ("held-out score", f"{summary['score']:.4f} ({SCORE_HELP})"),
        ("codes", codes),
        ("seconds", f"{summary['seconds']:.1f}"),
    ]
    print_facts(facts)


def describe_languages(languages: Sequence[str]) -> str:
    """List the languages of a model's analyzer."""
    return ", ".join(languages) or 'none recognized (see "snuh analyze")'


def describe_vectors(vectors: Mapping[str, Any]) -> str:
    """Describe the vectors that a model reads."""
    from snuh.text import sanitize

    return f"{sanitize(vectors['name'])}, {vectors['dims']} dimensions"


def describe_graph(graph: dict[str, Any]) -> str:
    """Describe how the neighbour graph was built."""
    if graph["search"] == "exact":
        return "exact"
    return f"approximate, {graph['recall']:.1%} of the exact neighbours (measured on a sample)"


def methods(as_json: Json = False) -> None:
    """List the training methods."""
    from dataclasses import asdict

    from snuh.cli.output import print_json, results_console
    from snuh.methods import DEFAULT, METHODS

    if as_json:
        rows = ({"name": name, "default": name == DEFAULT} | asdict(info) for name, info in METHODS.items())
        print_json({"methods": list(rows)})
        return

    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("method", no_wrap=True, style="bold")
    table.add_column("year", no_wrap=True)
    table.add_column("description")
    for name, info in METHODS.items():
        needs = {"a neighbour graph": info.needs_graph, "PyTorch": info.needs_torch}
        needed = " and ".join(what for what, is_needed in needs.items() if is_needed) or "nothing else"
        about = f"{info.paper}; needs {needed}; {info.cost}"
        table.add_row(name, str(info.year), Text.assemble(info.summary, "\n", (about, "dim")))
    results_console().print(table)


def bits(
    model: ModelOrCollection,
    bit: Annotated[int | None, typer.Option(metavar="N", help="Show only this bit, counted from 0.")] = None,
    words: Annotated[
        int, typer.Option(metavar="N", help="Maximum number of words for each value of a bit.")
    ] = 10,
    as_json: Json = False,
) -> None:
    """Show what each bit stands for: words of documents where it is 1, and where it is 0.

    Words that the codes treat alike are grouped into themes. A bit usually has several themes for each value.
    """
    from dataclasses import asdict

    from snuh.cli.base_command import say
    from snuh.cli.output import load_model, print_json
    from snuh.errors import InputError
    from snuh.explain import bit_meanings
    from snuh.io import redact

    if words < 1:
        raise InputError(f"--words must be at least 1, got {words}")
    loaded = load_model(model)
    if bit is not None and not 0 <= bit < loaded.bits:
        raise InputError(f"--bit must be from 0 to {loaded.bits - 1}, got {bit}")
    meanings = bit_meanings(loaded, words=words)
    if not meanings[0].uses_decoder:
        say("warning: this model was saved without its decoder: the words come from its encoder alone")
    selected = meanings if bit is None else [meanings[bit]]
    if as_json:
        rows = [asdict(meaning) for meaning in selected]
        print_json({"model": redact(model), "method": loaded.method, "bits": loaded.bits, "meanings": rows})
    else:
        _print_meanings(selected)


def _print_meanings(meanings: Sequence[BitMeaning]) -> None:
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
    separator = Text("; ", style="dim")
    for meaning in meanings:
        balance = [f"{meaning.balance:.0%}" if meaning.balance is not None else ""] if has_balance else []
        sides = [
            separator.join(Text(" ".join(theme)) for theme in themes) for themes in (meaning.on, meaning.off)
        ]
        table.add_row(str(meaning.bit), *balance, *sides)
    results_console().print(table)
