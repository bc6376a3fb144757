"""`snuh report`: finished runs as one page, and a summary beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snuh.cli.reproduce import DEFAULT_FILE

EXAMPLES = ("snuh report", "snuh report --results my-runs.jsonl --out my-report.html")

DEFAULT_PAGE = Path("results/report.html")


def report(
    results: Annotated[
        Path, typer.Option(metavar="FILE", help='Finished runs, as "snuh reproduce" leaves them.')
    ] = DEFAULT_FILE,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The page, an .html file; the summary ends in .md.")
    ] = DEFAULT_PAGE,
) -> None:
    """Make one HTML page, and a Markdown summary, of the runs that "snuh reproduce" has finished.

    The page has the tables beside the paper's, paired comparisons, plots, maps and the case study, as far as
    the file holds runs of them. It is one file that needs no network, for the screen, a phone or paper.
    Runs nothing, and needs no PyTorch.
    """
    from snuh.cli.output import check_no_source, check_place, print_facts
    from snuh.errors import InputError
    from snuh.experiments.rows import read_rows
    from snuh.report.page import page
    from snuh.report.report import make_report
    from snuh.report.summary import summary
    from snuh.storage import atomic_write

    if out.suffix.lower() != ".html":
        raise InputError(
            f"--out expects a file ending in .html, got {out}: the summary ends in .md beside it"
        )
    beside = out.with_suffix(".md")
    for path in (out, beside):
        check_place(path)
        check_no_source(path, str(results))
    made = make_report(read_rows(results), str(results))
    for path, text in ((out, page(made)), (beside, summary(made, out.name))):
        with atomic_write(path) as file:
            file.write_text(text, encoding="utf-8", newline="\n")
    print_facts([("page", str(out)), ("summary", str(beside))])
