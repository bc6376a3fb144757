"""`snuh reproduce`: the tables and figures of the paper, run by run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from snuh.cli.base_command import EXIT_INTERRUPTED, say
from snuh.errors import InputError, MissingExtraError, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snuh.cli.training import Config
    from snuh.experiments.corpora import Corpora
    from snuh.experiments.run import ResultsFile, Row, Run
    from snuh.experiments.target import Choice
    from snuh.progress import Progress

EXAMPLES = (
    "snuh reproduce table1 --quick",
    "snuh reproduce table1 --corpus ng20 --method snuh --bits 16,64",
    "snuh reproduce trees --corpus ng20 --bits 16,64",
    "snuh reproduce table2 --table",
    "snuh reproduce search --corpus ir/med,ir/cisi --bits 64",
)

TARGETS = (
    "table1: every method, beside the paper's Table 1.",
    "table2: the ablation of snuh, beside Table 2.",
    "trees: snuh with 0 to 20 spanning trees.",
    "neighbors: snuh with 1 to 20 neighbours.",
    "tau: snuh with other temperatures of its sigmoid.",
    "beta: snuh with other weights of the KL divergences.",
    "efficiency: time and memory of snuh and vdsh.",
    "case-study: documents at increasing distance from a query.",
    "map: two-dimensional maps of the codes of snuh and ammi.",
    "appendix: snuh beside rbsh and pairrec.",
    "score: which score without labels tracks precision.",
    "search: judged queries by words, codes and both, beside TF-IDF and LSA.",
)

DEFAULT_FILE = Path("results/runs.jsonl")  # shared by all targets but search
SEARCH, SEARCH_FILE = "search", Path("results/search-quality.jsonl")

Names = list[str] | None


def reproduce(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="\n\n".join(TARGETS))],
    corpus: Annotated[
        Names, typer.Option(metavar="NAME", help="Corpora in SNUH_DATA; NAME.tfidf is a .mat file.")
    ] = None,
    method: Annotated[
        Names, typer.Option(metavar="NAME", help='Methods, see "snuh methods"; a sweep takes one.')
    ] = None,
    bits: Annotated[Names, typer.Option(metavar="N", help="Code lengths.")] = None,
    seeds: Annotated[Names, typer.Option(metavar="N", help="Random seeds, one run each.")] = None,
    select: Annotated[
        str,
        typer.Option(
            metavar="BY", help="What selects the epoch: label-free, or labels (of val) as in the paper."
        ),
    ] = "label-free",
    settings: Annotated[
        Names,
        typer.Option("--set", metavar="KEY=VALUE", help='A setting of all runs, as in "snuh fit".'),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help='Settings of all runs, as written by "snuh tune"; its seed is ignored.'
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Only a part that takes minutes: one corpus, seed 0, tables at 16 and 64 bits, every second "
            "value of sweeps.",
        ),
    ] = False,
    results: Annotated[
        Path, typer.Option(metavar="FILE", help="The results file, one line per finished run.")
    ] = DEFAULT_FILE,
    table: Annotated[
        bool, typer.Option("--table", help="Print the table from the results file, run nothing.")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Repeat runs that failed.")] = False,
) -> None:
    """Reproduce an experiment of the paper, and print its table as Markdown.

    Tables show precision@100, mean and standard deviation over three seeds, on ng20, reuters and tmc: table1,
    table2 and appendix at 16, 32, 64 and 128 bits, the sweeps from trees to beta at 64. "snuh report" makes
    a page of them.

    Only runs that are missing in the results file are executed, and each is added to it when it finishes. You
    can stop at any time; the same command resumes. Targets share runs, and several processes can work on one
    file.

    On a machine with 2 cores, a run on a corpus like ng20 takes about one core-minute; all of table1 takes
    about 7 hours, table2 one hour, a sweep 20 minutes per corpus, efficiency 15 minutes, case-study and map 5
    minutes each, appendix 3 hours, score one hour.

    search takes folders in the layout of BEIR as --corpus, those in SNUH_DATA/ir by default, and shows
    nDCG@10, MAP and recall@100; its results file is results/search-quality.jsonl.

    Options with several values can be repeated or take commas: --bits 16,64.
    """
    if target == SEARCH:
        refused = {"--method": method, "--set": settings, "--config": config, "--retry": retry}
        for option, value in refused.items():
            if value:
                raise InputError(f"{option} does not apply to search, which uses the default method")
        path = SEARCH_FILE if results == DEFAULT_FILE else results
        lengths = _integers(bits, "--bits") or ((16, 64) if quick else ())
        _reproduce_search(_values(corpus), lengths, _integers(seeds, "--seeds") or (0,), path, table=table)
        return
    from snuh.cli.training import read_config
    from snuh.experiments.run import read_rows
    from snuh.experiments.runner import find_target

    chosen = find_target(target)
    default = chosen.quick if quick else chosen.default
    if config is not None:
        default = _configured(default, read_config(config))
    choice = _choice(default, corpus, method, bits, seeds, select, settings)
    if table:
        _check_corpora(choice.corpora if corpus else (), results)
    else:
        from snuh.cli.output import check_writable

        check_writable(results)
        _execute_pending(chosen.runs(choice), results, retry=retry)
    typer.echo(chosen.markdown(choice, read_rows(results)))


def _reproduce_search(
    corpora: Sequence[str], bits: Sequence[int], seeds: Sequence[int], path: Path, *, table: bool
) -> None:
    """Evaluate searches with judged queries, and print their table."""
    from snuh.cli.output import check_writable
    from snuh.experiments.retrieval import DEFAULT_BITS, default_folders, markdown, read_rows, run

    bits = bits or DEFAULT_BITS
    if table and not corpora:
        names = list(dict.fromkeys(row["corpus"] for row in read_rows(path)))
    else:
        folders = [Path(name) for name in corpora] or default_folders()
        names = [folder.name for folder in folders]
    if not table:
        check_writable(path)
        for row in run(folders, bits=bits, seeds=seeds, path=path):
            say(f"{row['corpus']} {row['bits']} bits, seed {row['seed']}: done")
    typer.echo(markdown(read_rows(path), names, bits))


def _configured(default: Choice, config: Config) -> Choice:
    """Return the default choice with the settings of a file."""
    from dataclasses import replace

    return replace(
        default,
        methods=(config.method,) if config.method else default.methods,
        bits=(config.bits,) if config.bits else default.bits,
        parameters=config.parameters,
        features=config.features,
    )


def _choice(
    default: Choice,
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
        default,
        corpora=_values(corpora) or default.corpora,
        methods=_values(methods) or default.methods,
        bits=_integers(bits, "--bits") or default.bits,
        seeds=_integers(seeds, "--seeds") or default.seeds,
        select=check_select(select),
        parameters={**default.parameters, **parsed.method},
        features={**default.features, **parsed.features},
    )
    for name in choice.methods:
        info(name)
    return choice


def _values(given: Names) -> tuple[str, ...]:
    """Return the distinct values of an option: `--bits 16 --bits 32` and `--bits 16,32` are the same."""
    parts = (part.strip() for value in given or () for part in value.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def _integers(given: Names, option: str) -> tuple[int, ...]:
    values = _values(given)
    for value in values:
        if not value.isdecimal():
            raise InputError(f'{option} expects integers separated by commas, got "{value}"')
    return tuple(dict.fromkeys(map(int, values)))


def _check_corpora(corpora: Sequence[str], path: Path) -> None:
    from snuh.experiments.run import read_rows

    known = {row["corpus"] for row in read_rows(path)}
    for name in corpora:
        if name not in known:
            raise InputError(f'{path} has no run on the corpus "{name}"{suggest(name, known)}')


# The missing runs, one after the other, with the estimated time left.


def _execute_pending(runs: Sequence[Run], path: Path, *, retry: bool) -> None:
    """Execute the runs that are missing in a results file, and add each to it when it finishes."""
    from snuh.cli.output import plural
    from snuh.experiments.corpora import Corpora
    from snuh.experiments.run import ResultsFile, pending_runs, read_rows
    from snuh.experiments.runner import check_runs, commit

    check_runs(pending_runs(runs, read_rows(path) if path.exists() else [], retry=retry))
    with ResultsFile(path, retry=retry) as results:
        if results.was_truncated:
            say(f"warning: the last line of {path} was incomplete and is removed: its run is repeated")
        corpora, version = Corpora(), commit()
        try:
            _report(f"{plural(len(runs), 'run')} requested", results.pending(runs), results)
            # Repeat until nothing is left: a run that another process had claimed becomes free if it stops.
            while _execute_unclaimed(results.pending(runs), results, corpora, version):
                pass
        except KeyboardInterrupt:
            say(f"interrupted: finished runs are in {path}, the same command resumes")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        if claimed := results.pending(runs):
            say(
                f"warning: {plural(len(claimed), 'run')} in progress in another process: not in the table yet"
            )
        _warn_of_failures(runs, results.rows())


def _execute_unclaimed(
    pending: Sequence[Run], results: ResultsFile, corpora: Corpora, version: str | None
) -> int:
    """Execute the runs that no other process has claimed; return their number."""
    executed = 0
    for number, run in enumerate(pending, start=1):
        with results.claim(run) as is_claimed:
            if is_claimed:
                row = _execute(run, results, corpora, version)
                results.append(row)
                _report(_outcome(run, row), results.pending(pending[number:]), results)
                executed += 1
    return executed


def _execute(run: Run, results: ResultsFile, corpora: Corpora, version: str | None) -> Row:
    from snuh.cli.output import display
    from snuh.experiments.runner import execute_run

    with display() as shown:
        corpus = corpora.get(run.corpus, run.features, progress=shown.stage(f"Reading {run.corpus}"))
        results.check_documents(run.corpus, corpus.sha256)
        label = str(run)
        shown.show(label, 0.0)

        def report(progress: Progress) -> None:
            shown.show(label, progress.done if progress.stage == "training" else 0.0)

        return execute_run(run, corpus, commit=version, on_progress=report)


def _outcome(run: Run, row: Row) -> str:
    from snuh.cli.output import duration

    if row["error"] is not None:
        return f"{run}: failed: {row['error']}"
    return f"{run}: precision@100 {row['precision']['100']:.4f} in {duration(row['seconds'])}"


def _report(event: str, left: Sequence[Run], results: ResultsFile) -> None:
    """Print what happened and what is left to do."""
    from snuh.cli.output import duration
    from snuh.experiments.run import eta_seconds

    seconds = eta_seconds(left, results.rows())
    time = "" if seconds is None or not left else f", about {duration(seconds)}"
    typer.echo(f"{event}; {len(left)} to do{time}", err=True)


def _warn_of_failures(runs: Sequence[Run], rows: Sequence[Row]) -> None:
    from snuh.cli.output import plural
    from snuh.experiments.run import latest_rows

    latest = latest_rows(rows)
    failed = [run for run in runs if run.key in latest and latest[run.key]["error"] is not None]
    if failed:
        say(f"warning: {plural(len(failed), 'run')} failed, such as {failed[0]}; --retry repeats them")


# `snuh report`: finished runs as one page, with a Markdown summary.

REPORT_EXAMPLES = ("snuh report", "snuh report --results my-runs.jsonl --out my-report.html")

DEFAULT_PAGE = Path("results/report.html")


def report(
    results: Annotated[
        Path, typer.Option(metavar="FILE", help='The results file that "snuh reproduce" writes.')
    ] = DEFAULT_FILE,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The page, an .html file; the summary ends in .md.")
    ] = DEFAULT_PAGE,
) -> None:
    """Make an HTML page and a Markdown summary of the runs that "snuh reproduce" has finished.

    The page has the tables beside the paper's, paired differences, charts, maps and the case study, as far as
    the results file has runs for them. It is one file that needs no network, for the screen, a phone or
    paper. Runs no experiment, and needs no PyTorch. Needs pip install "snuhash[experiments]".
    """
    _check_extra()
    from snuh.cli.output import check_no_source, check_writable, print_facts
    from snuh.experiments.report.report import build_report, render_html, render_markdown
    from snuh.experiments.run import read_rows
    from snuh.io import atomic_write

    if out.suffix.lower() != ".html":
        raise InputError(
            f"--out expects a file ending in .html, got {out}: the summary is written next to it, as .md"
        )
    summary = out.with_suffix(".md")
    for path in (out, summary):
        check_writable(path)
        check_no_source(path, str(results))
    content = build_report(read_rows(results), str(results))
    for path, text in ((out, render_html(content)), (summary, render_markdown(content, out.name))):
        with atomic_write(path) as file:
            file.write_text(text, encoding="utf-8", newline="\n")
    print_facts([("page", str(out)), ("summary", str(summary))])


def _check_extra() -> None:
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise MissingExtraError('the report needs matplotlib: pip install "snuhash[experiments]"') from None
