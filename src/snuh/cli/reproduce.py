"""`snuh reproduce`: the paper's tables, run by run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snuh.cli.training import Config
    from snuh.experiments.target import Choice

EXAMPLES = (
    "snuh reproduce table1 --quick",
    "snuh reproduce table1 --corpus ng20 --method snuh --bits 16,64",
    "snuh reproduce trees --corpus ng20 --bits 16,64",
    "snuh reproduce table2 --table",
)

TARGETS = (
    "table1: every method, beside the paper's Table 1.",
    "table2: snuh with less correlation, beside Table 2.",
    "trees: snuh with 0 to 20 spanning trees.",
    "neighbors: snuh with 1 to 20 neighbours.",
    "tau: snuh with other slopes of its sigmoid.",
    "beta: snuh with other weights of divergences.",
    "efficiency: seconds and memory of snuh and vdsh.",
    "case-study: documents ever further from a query.",
    "map: a map of the codes of snuh, and of ammi.",
    "appendix: snuh beside rbsh and pairrec.",
    "score: which score without labels tracks them.",
)

DEFAULT_FILE = Path("results/runs.jsonl")  # of all targets, as they share runs

Names = list[str] | None


def reproduce(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="\n\n".join(TARGETS))],
    corpus: Annotated[
        Names, typer.Option(metavar="NAME", help="Corpora in SNUH_DATA; NAME.tfidf takes a .mat file's rows.")
    ] = None,
    method: Annotated[
        Names, typer.Option(metavar="NAME", help='Methods, see "snuh methods"; a sweep takes one.')
    ] = None,
    bits: Annotated[Names, typer.Option(metavar="N", help="Lengths of the codes.")] = None,
    seeds: Annotated[Names, typer.Option(metavar="N", help="Seeds, each a run of its own.")] = None,
    select: Annotated[
        str,
        typer.Option(
            metavar="BY", help="What chooses the epoch: label-free, or labels (of val) as in the paper."
        ),
    ] = "label-free",
    settings: Annotated[
        Names,
        typer.Option("--set", metavar="KEY=VALUE", help='A setting of all the runs, as in "snuh fit".'),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help='Settings of all the runs, such as "snuh tune" writes; its seed is left.'
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Only a part, of minutes: seed 0 of one corpus, tables at 16 and 64 bits, sweeps at every "
            "second value.",
        ),
    ] = False,
    results: Annotated[
        Path, typer.Option(metavar="FILE", help="Finished runs of all targets, a line each.")
    ] = DEFAULT_FILE,
    table: Annotated[bool, typer.Option("--table", help="Print the table of the file, run nothing.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Do runs again that failed.")] = False,
) -> None:
    """Repeat an experiment of the paper, and print its table as Markdown.

    The figures are precision@100, mean and deviation over three seeds, on ng20, reuters and tmc: the tables
    at 16, 32, 64 and 128 bits; the sweeps, from trees to beta, at 64. "snuh report" makes a page of them.

    Does only the runs that the file of results does not hold yet, and adds each to it once it is done: stop
    it at any time, the same command goes on. Targets share runs, and several processes may work on one file.

    On a machine of 2 cores, a run on a corpus like ng20 takes about a minute of one; all of table1 takes
    some 7 hours, table2 about one, a sweep about 20 minutes for each corpus, efficiency 15 minutes, the case
    study and the map 5 each, the appendix about 3 hours, the study of the score an hour.

    Options of several values are given again for each, or with commas: --bits 16,64.
    """
    from snuh.cli.training import read_config
    from snuh.experiments.rows import read_rows
    from snuh.experiments.targets import find_target

    chosen = find_target(target)
    usual = chosen.quick if quick else chosen.usual
    if config is not None:
        usual = _configured(usual, read_config(config))
    choice = _choice(usual, corpus, method, bits, seeds, select, settings)
    if table:
        _check_corpora(choice.corpora if corpus else (), results)
    else:
        from snuh.cli.output import check_writable
        from snuh.cli.runs import do_missing

        check_writable(results)
        do_missing(chosen.runs(choice), results, retry=retry)
    typer.echo(chosen.markdown(choice, read_rows(results)))


def _configured(usual: Choice, config: Config) -> Choice:
    """Return what is usual with the settings of a file."""
    from dataclasses import replace

    return replace(
        usual,
        methods=(config.method,) if config.method else usual.methods,
        bits=(config.bits,) if config.bits else usual.bits,
        parameters=config.parameters,
        features=config.features,
    )


def _choice(
    usual: Choice,
    corpora: Names,
    methods: Names,
    bits: Names,
    seeds: Names,
    select: str,
    settings: Names,
) -> Choice:
    from dataclasses import replace

    from snuh.cli.training import parse_settings
    from snuh.experiments.run import check_select
    from snuh.methods import info

    parsed = parse_settings(settings or ())
    choice = replace(
        usual,
        corpora=_values(corpora) or usual.corpora,
        methods=_values(methods) or usual.methods,
        bits=_numbers(bits, "--bits") or usual.bits,
        seeds=_numbers(seeds, "--seeds") or usual.seeds,
        select=check_select(select),
        parameters={**usual.parameters, **parsed.method},
        features={**usual.features, **parsed.features},
    )
    for name in choice.methods:
        info(name)
    return choice


def _values(given: Names) -> tuple[str, ...]:
    """Return the values of an option, each once: `--bits 16 --bits 32` and `--bits 16,32` are alike."""
    parts = (part.strip() for value in given or () for part in value.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def _numbers(given: Names, option: str) -> tuple[int, ...]:
    from snuh.errors import InputError

    values = _values(given)
    for value in values:
        if not value.isdecimal():
            raise InputError(f'{option} expects whole numbers with commas between, got "{value}"')
    return tuple(dict.fromkeys(map(int, values)))


def _check_corpora(corpora: Sequence[str], path: Path) -> None:
    from snuh.errors import InputError, suggest
    from snuh.experiments.rows import read_rows

    known = {row["corpus"] for row in read_rows(path)}
    for name in corpora:
        if name not in known:
            raise InputError(f'{path} has no run on the corpus "{name}"{suggest(name, known)}')


# `snuh report`: finished runs as one page, and a summary beside it.

REPORT_EXAMPLES = ("snuh report", "snuh report --results my-runs.jsonl --out my-report.html")

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
    from snuh.cli.output import check_no_source, check_writable, print_facts
    from snuh.errors import InputError
    from snuh.experiments.rows import read_rows
    from snuh.io import atomic_write
    from snuh.report.page import page
    from snuh.report.report import make_report
    from snuh.report.summary import summary

    if out.suffix.lower() != ".html":
        raise InputError(
            f"--out expects a file ending in .html, got {out}: the summary ends in .md beside it"
        )
    beside = out.with_suffix(".md")
    for path in (out, beside):
        check_writable(path)
        check_no_source(path, str(results))
    made = make_report(read_rows(results), str(results))
    for path, text in ((out, page(made)), (beside, summary(made, out.name))):
        with atomic_write(path) as file:
            file.write_text(text, encoding="utf-8", newline="\n")
    print_facts([("page", str(out)), ("summary", str(beside))])
