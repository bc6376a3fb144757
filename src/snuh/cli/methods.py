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
