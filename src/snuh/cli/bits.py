"""`snuh bits`: what each bit of the codes stands for, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from snuh.cli.options import Json, ModelFolder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snuh.explain import BitMeaning

EXAMPLES = ("snuh bits model", "snuh bits model --bit 7 --words 40", "snuh bits model --json")


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

    from snuh.cli.group import say
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
