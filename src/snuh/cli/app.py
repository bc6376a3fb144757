"""The `snuh` command and its sub-commands; heavy imports wait until a command runs."""

from __future__ import annotations

from collections.abc import Callable

import typer

from snuh.cli import analyze, create, dedup, demo, encode, fit, manage, reproduce, search, serve, spark, tune
from snuh.cli.base_command import Command, CommandGroup, global_options

HELP = """Semantic hashing: learn short binary codes for text documents, and search by them.

SOURCE is a .jsonl, .json, .csv, .tsv or .txt file (optionally .gz, .zst or .zip), a .parquet or .mat file, a
folder of text files, "-" for standard input, a collection, or the name of a corpus in the folder $SNUH_DATA.
The fields id, text, labels and split (train, val or test) are used; all others are metadata.
"""


def _paragraphs(text: str) -> str:
    """Join each paragraph into one line, which the terminal wraps; escape brackets, which are markup."""
    lines = (" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
    return "\n\n".join(lines).replace("[", r"\[")


app = typer.Typer(
    name="snuh",
    cls=CommandGroup,
    help=_paragraphs(HELP),
    epilog="New here? Run [bold cyan]snuh demo[/bold cyan]: it needs no data and takes about two minutes.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,  # a bug shows Python's plain traceback
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.callback()(global_options)


def _register(
    panel: str, name: str, function: Callable[..., None], examples: tuple[str, ...], *, to: typer.Typer = app
) -> None:
    lines = [f"[cyan]$ {example}[/cyan]" for example in examples]
    epilog = "\n".join(["[bold]Examples[/bold]", *lines])
    help_text = _paragraphs(function.__doc__ or "")
    to.command(name, cls=Command, help=help_text, epilog=epilog, rich_help_panel=panel)(function)


START, COLLECTIONS, CODES = "Getting started", "Collections", "Models and codes"
PAPER, CLUSTER = "Experiments", "Clusters"

_register(START, "demo", demo.demo, demo.EXAMPLES)
_register(COLLECTIONS, "create", create.create, create.EXAMPLES)
_register(COLLECTIONS, "search", search.search, search.EXAMPLES)
_register(COLLECTIONS, "serve", serve.serve, serve.EXAMPLES)
_register(COLLECTIONS, "similar", search.similar, search.SIMILAR_EXAMPLES)
_register(COLLECTIONS, "add", create.add, create.ADD_EXAMPLES)
_register(COLLECTIONS, "delete", manage.delete, manage.DELETE_EXAMPLES)
_register(COLLECTIONS, "dedup", dedup.dedup, dedup.EXAMPLES)
_register(COLLECTIONS, "export", manage.export, manage.EXPORT_EXAMPLES)
_register(COLLECTIONS, "copy", manage.copy, manage.COPY_EXAMPLES)
_register(COLLECTIONS, "rehash", manage.rehash, manage.REHASH_EXAMPLES)
_register(COLLECTIONS, "index", manage.index, manage.INDEX_EXAMPLES)
_register(COLLECTIONS, "info", manage.info, manage.INFO_EXAMPLES)
_register(COLLECTIONS, "check", manage.check, manage.CHECK_EXAMPLES)
_register(CODES, "fit", fit.fit, fit.EXAMPLES)
_register(CODES, "tune", tune.tune, tune.EXAMPLES)
_register(CODES, "analyze", analyze.analyze, analyze.EXAMPLES)
_register(CODES, "encode", encode.encode, encode.EXAMPLES)
_register(CODES, "evaluate", encode.evaluate, encode.EVALUATE_EXAMPLES)
_register(CODES, "bits", fit.bits, fit.BITS_EXAMPLES)
_register(CODES, "methods", fit.methods, fit.METHODS_EXAMPLES)
_register(PAPER, "reproduce", reproduce.reproduce, reproduce.EXAMPLES)
_register(PAPER, "report", reproduce.report, reproduce.REPORT_EXAMPLES)

on_spark = typer.Typer(cls=CommandGroup, help=spark.HELP, no_args_is_help=True, rich_markup_mode="rich")
_register(CLUSTER, "fit", spark.fit, spark.FIT_EXAMPLES, to=on_spark)
_register(CLUSTER, "encode", spark.encode, spark.ENCODE_EXAMPLES, to=on_spark)
app.add_typer(on_spark, name="spark", rich_help_panel=CLUSTER)
