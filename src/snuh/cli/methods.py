"""`snuh methods`: what can be learnt with."""

from __future__ import annotations

from snuh.cli.options import Json

EXAMPLES = ("snuh methods", "snuh methods --json")


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

    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("method", "year", "graph", "PyTorch"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what it is", ratio=3)
    table.add_column("cost", ratio=2)
    for name, info in METHODS.items():
        graph, torch = ("yes" if needed else "no" for needed in (info.needs_graph, info.needs_torch))
        what = f"{info.summary}\n[dim]{info.paper}[/dim]"
        table.add_row(f"[bold]{name}[/bold]", str(info.year), graph, torch, what, info.cost)
    results_console().print(table)
