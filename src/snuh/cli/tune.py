"""`snuh tune`: the settings with which a method learns the best codes of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.options import Bits, IdField, Json, Source, TextField
from snuh.methods import DEFAULT

if TYPE_CHECKING:
    from snuh.tuning.study import Done, Study

SCORES = {  # what settings are compared by
    "label-free": "how much of what the code of one half of a document finds is near the other half",
    "labels": "precision@100 of the documents of val",
}

EXAMPLES = (
    "snuh tune tickets.jsonl --bits 32",
    "snuh tune reuters --bits 16 --trials 50 --minutes 60 --out reuters16.json",
    "snuh tune tickets.jsonl --bits 32 --method snuh --set epochs=10 --select labels",
    "snuh fit tickets.jsonl --config settings.json --out model",
)


def tune(
    source: Source,
    bits: Bits,
    method: Annotated[str, typer.Option(metavar="NAME", help='What learns, see "snuh methods".')] = DEFAULT,
    select: Annotated[
        str,
        typer.Option(
            metavar="BY", help="What settings and epochs are compared by: label-free, or labels (of val)."
        ),
    ] = "label-free",
    trials: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many the study is to have in the end.")
    ] = 30,
    minutes: Annotated[
        float | None, typer.Option(metavar="N", min=0, help="Begin no trial after so many minutes.")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The best settings, a .json file for --config.")
    ] = Path("settings.json"),
    study: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The trials, to go on with; beside --out if not given."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of everything random.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help='Not to be tried but fixed, as in "snuh fit".'),
    ] = None,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Search for the settings with which a method learns the best codes of a source.

    Tries the paper's values of learning rate, batch size, tau, alpha, beta, neighbours and trees, as far as
    the method has them, each trial a fit. The method's defaults come first, and trials that fall behind are
    given up. By default no label is looked at.

    Stop it at any time: the best settings so far are written, and the same command goes on. Needs
    pip install "snuh[tune]".
    """
    _check_extra()
    from snuh.cli.output import check_writable, display, open_documents
    from snuh.cli.training import check_config_path, check_features, make_hasher
    from snuh.cli.trials import do_trials
    from snuh.experiments.run import check_select
    from snuh.tuning.grids import check_tunable, make_grid
    from snuh.tuning.rows import read_rows
    from snuh.tuning.study import Study
    from snuh.tuning.task import Task

    by = check_select(select)
    hasher = make_hasher(method, bits=bits, seed=seed, settings=settings or ())
    check_tunable(method, bits=bits, seed=seed, fixed=hasher.parameters)
    check_config_path(out)
    file = out.with_name(f"{out.stem}.study.jsonl") if study is None else study
    for place in (out, file):
        check_writable(place)
    documents = open_documents(source, text_field=text_field, id_field=id_field)
    check_features(hasher, documents)
    with display() as shown:
        rows = read_rows(documents, hasher.features, on_progress=shown)
    task = Task(rows, method, bits=bits, seed=seed, select=by, fixed=hasher.parameters)
    grid = make_grid(method, bits=bits, seed=seed, fixed=hasher.parameters, docs=task.documents)
    subject = {
        **task.facts(),
        "score": SCORES[by],
        "set": hasher.parameters,
        "features": hasher.features,
        "values": grid.values,
    }
    with Study(file, subject, grid, seed=seed) as opened:
        was_interrupted = do_trials(task, opened, trials=trials, minutes=minutes)
        best = _best(opened, was_interrupted)
        summary = {
            "settings": str(out),
            "study": str(file),
            **task.facts(),
            "parameters": {**hasher.parameters, **best.parameters},
            "features": hasher.features,
            **_comparison(opened, best),
        }
    _write(out, summary)
    _print(summary, source, as_json=as_json)


def _check_extra() -> None:
    from snuh.errors import MissingExtraError

    try:
        import optuna  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "optuna":
            raise
        raise MissingExtraError('tuning needs Optuna: pip install "snuh[tune]"') from None


def _best(study: Study, was_interrupted: bool) -> Done:
    """Return the best trial; where there is none, say why and exit."""
    from snuh.cli.base_command import EXIT_INTERRUPTED, say
    from snuh.errors import InputError

    best = study.best()
    if was_interrupted:
        kept = "before a trial was done" if best is None else "the best settings so far are kept"
        say(f"interrupted: {kept}; the same command goes on with {study.path}")
    if best is not None:
        return best
    if was_interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    if failed := study.trials():
        raise InputError(f"all {len(failed)} trials failed, the first: {failed[0].error}")
    raise InputError("there was no time for a trial: give more --minutes")


def _comparison(study: Study, best: Done) -> dict[str, Any]:
    """Return how the best trial compares with the defaults, and how the trials ended."""
    trials, defaults = study.trials(), study.defaults()
    usual = None if defaults is None else defaults.score
    return {
        "score": best.score,
        "defaults_score": usual,
        "gain": None if usual is None or best.score is None else best.score - usual,
        "trials": len(trials),
        "given_up": sum(trial.end == "given up" for trial in trials),
        "failed": sum(trial.end == "failed" for trial in trials),
        "seconds": round(sum(trial.seconds for trial in trials), 3),
    }


def _write(path: Path, summary: dict[str, Any]) -> None:
    from datetime import UTC, datetime

    from snuh import __version__
    from snuh.cli.training import Config, write_config

    names = ("method", "bits", "seed", "parameters", "features")
    about = ("source", "sha256", "select", "score", "defaults_score", "trials")
    origin = {
        "command": "snuh tune",
        **{name: summary[name] for name in about},
        "snuh": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    write_config(path, Config(**{name: summary[name] for name in names}), origin=origin)


def _print(summary: dict[str, Any], source: str, *, as_json: bool) -> None:
    from snuh.cli.output import duration, print_facts, print_json, print_steps
    from snuh.cli.trials import assignments

    if as_json:
        print_json(summary)
        return
    ends = f"{summary['trials']}, {summary['given_up']} given up, {summary['failed']} failed"
    facts = [
        ("settings", summary["settings"]),
        ("study", summary["study"]),
        ("method", f"{summary['method']}, {summary['bits']} bits, seed {summary['seed']}"),
        ("trials", f"{ends}, {duration(summary['seconds'])}"),
        ("score", f"{summary['score']:.4f} ({SCORES[summary['select']]})"),
        ("defaults", _gain(summary)),
        ("best", assignments(summary["parameters"])),
    ]
    print_facts(facts)
    print_steps([f"snuh fit {source} --config {summary['settings']} --out model"])


def _gain(summary: dict[str, Any]) -> str:
    usual, gain = summary["defaults_score"], summary["gain"]
    if usual is None:
        return "failed"
    if not gain:
        return f"{usual:.4f}: nothing better was found, the settings are the defaults"
    return f"{usual:.4f}: the best is better by {gain:.4f}"
