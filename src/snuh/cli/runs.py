"""Doing runs in the terminal: what is missing, one after the other, with the time that is left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from snuh.cli.base_command import EXIT_INTERRUPTED, say
from snuh.cli.output import display, duration, plural
from snuh.experiments.corpora import Corpora
from snuh.experiments.estimate import seconds_left
from snuh.experiments.machine import commit
from snuh.experiments.measure import check_runs, measure
from snuh.experiments.results import Results
from snuh.experiments.rows import read_rows, unfinished
from snuh.experiments.run import Row, Run, run_key
from snuh.progress import Progress


def do_missing(runs: Sequence[Run], path: Path, *, retry: bool) -> None:
    """Do the runs that the file does not hold, and add each to it once it is done."""
    check_runs(unfinished(runs, read_rows(path) if path.exists() else [], retry=retry))
    with Results(path, retry=retry) as results:
        if results.was_cut:
            say(f"warning: the last line of {path} was cut and is taken away: its run is done again")
        corpora, code = Corpora(), commit()
        try:
            _tell(f"{plural(len(runs), 'run')} wanted", results.missing(runs), results)
            # Again, as a run that another process had may be free by now: it was stopped.
            while _work_through(results.missing(runs), results, corpora, code):
                pass
        except KeyboardInterrupt:
            say(f"interrupted: finished runs are in {path}, the same command goes on")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        if under_way := results.missing(runs):
            say(
                f"warning: {plural(len(under_way), 'run')} under way in another process: not in the table yet"
            )
        _warn_of_failures(runs, results.rows())


def _work_through(missing: Sequence[Run], results: Results, corpora: Corpora, code: str | None) -> int:
    """Do those of the runs that no other process has; return how many."""
    done = 0
    for number, run in enumerate(missing, start=1):
        with results.claim(run) as is_mine:
            if is_mine:
                row = _do(run, results, corpora, code)
                results.append(row)
                _tell(_outcome(run, row), results.missing(missing[number:]), results)
                done += 1
    return done


def _do(run: Run, results: Results, corpora: Corpora, code: str | None) -> Row:
    with display() as shown:
        corpus = corpora.get(run.corpus, run.features, progress=shown.stage(f"Reading {run.corpus}"))
        results.check_documents(run.corpus, corpus.sha256)
        label = str(run)
        shown.show(label, 0.0)

        def report(progress: Progress) -> None:
            shown.show(label, progress.done if progress.stage == "training" else 0.0)

        return measure(run, corpus, commit=code, on_progress=report)


def _outcome(run: Run, row: Row) -> str:
    if row["error"] is not None:
        return f"{run}: failed: {row['error']}"
    return f"{run}: precision@100 {row['precision']['100']:.4f} in {duration(row['seconds'])}"


def _tell(event: str, left: Sequence[Run], results: Results) -> None:
    """Write a line on what happened and what is still to do."""
    seconds = seconds_left(left, results.rows())
    time = "" if seconds is None or not left else f", about {duration(seconds)}"
    typer.echo(f"{event}; {len(left)} to do{time}", err=True)


def _warn_of_failures(runs: Sequence[Run], rows: Sequence[Row]) -> None:
    latest = {run_key(row): row for row in rows}
    failed = [run for run in runs if run.key in latest and latest[run.key]["error"] is not None]
    if failed:
        say(f"warning: {plural(len(failed), 'run')} failed, such as {failed[0]}; --retry does them again")
