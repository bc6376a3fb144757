"""Executing pending runs in the terminal, one after the other, with the estimated time left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from snuh.cli.base_command import EXIT_INTERRUPTED, say
from snuh.cli.output import display, duration, plural
from snuh.experiments.corpora import Corpora
from snuh.experiments.environment import commit
from snuh.experiments.run import ResultsFile, Row, Run, eta_seconds, latest_rows, pending_runs, read_rows
from snuh.experiments.runner import check_runs, execute_run
from snuh.progress import Progress


def execute_pending(runs: Sequence[Run], path: Path, *, retry: bool) -> None:
    """Execute the runs that are missing in a results file, and add each to it when it finishes."""
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
    with display() as shown:
        corpus = corpora.get(run.corpus, run.features, progress=shown.stage(f"Reading {run.corpus}"))
        results.check_documents(run.corpus, corpus.sha256)
        label = str(run)
        shown.show(label, 0.0)

        def report(progress: Progress) -> None:
            shown.show(label, progress.done if progress.stage == "training" else 0.0)

        return execute_run(run, corpus, commit=version, on_progress=report)


def _outcome(run: Run, row: Row) -> str:
    if row["error"] is not None:
        return f"{run}: failed: {row['error']}"
    return f"{run}: precision@100 {row['precision']['100']:.4f} in {duration(row['seconds'])}"


def _report(event: str, left: Sequence[Run], results: ResultsFile) -> None:
    """Print what happened and what is left to do."""
    seconds = eta_seconds(left, results.rows())
    time = "" if seconds is None or not left else f", about {duration(seconds)}"
    typer.echo(f"{event}; {len(left)} to do{time}", err=True)


def _warn_of_failures(runs: Sequence[Run], rows: Sequence[Row]) -> None:
    latest = latest_rows(rows)
    failed = [run for run in runs if run.key in latest and latest[run.key]["error"] is not None]
    if failed:
        say(f"warning: {plural(len(failed), 'run')} failed, such as {failed[0]}; --retry repeats them")
