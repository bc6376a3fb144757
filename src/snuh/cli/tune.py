"""`snuh tune`: search for the settings with which a method learns the best codes of a corpus."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.base_command import EXIT_INTERRUPTED, Bits, IdField, Json, Source, TextField, say
from snuh.errors import InputError, MissingExtraError, SnuhError
from snuh.methods import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snuh.cli.training import CtrlC
    from snuh.progress import Progress
    from snuh.tuning.objective import Objective
    from snuh.tuning.study import FinishedTrial, Study, Trial

SCORES = {
    "label-free": "held-out score, see docs/tuning.md",
    "labels": "precision@100 of the validation documents",
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
    method: Annotated[str, typer.Option(metavar="NAME", help='The method, see "snuh methods".')] = DEFAULT,
    select: Annotated[
        str,
        typer.Option(
            metavar="BY", help="What trials and epochs are compared by: label-free, or labels (of val)."
        ),
    ] = "label-free",
    trials: Annotated[
        int, typer.Option(metavar="N", min=1, help="Total number of trials of the study.")
    ] = 30,
    minutes: Annotated[
        float | None, typer.Option(metavar="N", min=0, help="Start no new trial after N minutes.")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The settings file to write, for --config.")
    ] = Path("settings.json"),
    study: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File of trials, to resume from; default: next to --out."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help='A fixed setting, as in "snuh fit".'),
    ] = None,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Search for the settings with which a method learns the best codes of a source.

    Each trial is a fit. The search space has the paper's values of learning rate, batch size, tau, alpha,
    beta, neighbours and trees, as far as the method has them. The method's defaults come first, and trials
    that fall behind are pruned. By default labels are not used.

    You can stop at any time: the best settings so far are written, and the same command resumes. Needs
    pip install "snuhash[tune]".
    """
    _check_extra()
    from snuh.cli.output import check_writable, display, open_documents
    from snuh.cli.training import check_config_path, check_features, make_hasher
    from snuh.experiments.run import check_select
    from snuh.tuning.objective import Objective, build_search_space, check_tunable, read_tuning_data
    from snuh.tuning.study import Study

    by = check_select(select)
    hasher = make_hasher(method, bits=bits, seed=seed, settings=settings or ())
    check_tunable(method, bits=bits, seed=seed, fixed=hasher.parameters)
    check_config_path(out)
    file = out.with_name(f"{out.stem}.study.jsonl") if study is None else study
    for path in (out, file):
        check_writable(path)
    documents = open_documents(source, text_field=text_field, id_field=id_field)
    check_features(hasher, documents)
    with display() as shown:
        data = read_tuning_data(documents, hasher.features, on_progress=shown)
    objective = Objective(data, method, bits=bits, seed=seed, select=by, fixed=hasher.parameters)
    space = build_search_space(
        method, bits=bits, seed=seed, fixed=hasher.parameters, docs=objective.documents
    )
    fingerprint = {
        **objective.fingerprint(),
        "set": hasher.parameters,
        "features": hasher.features,
        "values": space.values,
    }
    with Study(file, fingerprint, space, seed=seed) as opened:
        was_interrupted = _run_trials(objective, opened, trials=trials, minutes=minutes)
        best = _best_trial(opened, was_interrupted)
        summary = {
            "settings": str(out),
            "study": str(file),
            **objective.fingerprint(),
            "parameters": {**hasher.parameters, **best.parameters},
            "features": hasher.features,
            **_comparison(opened, best),
        }
    _write(out, summary)
    _print(summary, source, as_json=as_json)


def _check_extra() -> None:
    try:
        import optuna  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "optuna":
            raise
        raise MissingExtraError('tuning needs Optuna: pip install "snuhash[tune]"') from None


def _run_trials(objective: Objective, study: Study, *, trials: int, minutes: float | None) -> bool:
    """Run trials until the study has n, or no new one may start; return whether Ctrl-C ended it."""
    from snuh.cli.training import holding_ctrl_c

    end = None if minutes is None else time.monotonic() + 60 * minutes
    with holding_ctrl_c() as ctrl_c:
        ctrl_c.has_epoch = True  # Ctrl-C must not interrupt the writing of a line
        while len(study.trials()) < trials and (end is None or time.monotonic() < end):
            trial = study.ask()
            if trial is None:
                return False
            try:
                _run_trial(objective, study, trial, trials=trials, ctrl_c=ctrl_c)
            except KeyboardInterrupt:
                trial.discard()
                return True
            _report_latest(study, trials)
            if ctrl_c.requested:
                return True
    return False


def _run_trial(objective: Objective, study: Study, trial: Trial, *, trials: int, ctrl_c: CtrlC) -> None:
    from snuh.cli.output import display
    from snuh.tuning.study import TrialPruned

    best = study.best_trial()
    so_far = "" if best is None else f", best {best.score:.4f}"
    label = f"Trial {len(study.trials()) + 1} of {trials}{so_far}"
    started = time.perf_counter()
    with display() as shown:
        shown.show(label, 0.0)

        def report(progress: Progress) -> None:
            # Never 100 %: the next line reports how the trial ended.
            shown.show(label, min(progress.done, 0.999) if progress.stage == "training" else 0.0)
            if progress.epoch is not None:
                trial.report(progress.done, progress.epoch.score)

        try:
            score = objective(trial.parameters, on_progress=ctrl_c.watch(report))
        except TrialPruned:
            trial.finish("pruned", seconds=time.perf_counter() - started)
        except SnuhError as error:
            reason = " ".join(str(error).split())
            trial.finish("failed", seconds=time.perf_counter() - started, error=reason)
        else:
            trial.finish("complete", seconds=time.perf_counter() - started, score=score)


def _report_latest(study: Study, trials: int) -> None:
    """Print the outcome of the latest trial and what is left to do."""
    from snuh.cli.output import duration

    done, best = study.trials(), study.best_trial()
    to_do = max(0, trials - len(done))
    left = f", about {duration(to_do * sum(trial.seconds for trial in done) / len(done))}" if to_do else ""
    so_far = "" if best is None else f"; best {best.score:.4f}"
    number = f"trial {len(done)}"
    typer.echo(
        f"{number}: {_outcome(done[-1], study.default_trial())}{so_far}; {to_do} to do{left}", err=True
    )


def _outcome(trial: FinishedTrial, default_trial: FinishedTrial | None) -> str:
    from snuh.cli.output import duration

    if trial.state == "failed":
        result = f"failed: {trial.error}"
    elif trial.state == "pruned":
        result = "pruned"
    else:
        result = f"score {trial.score:.4f}"
    is_default = default_trial is not None and trial.number == default_trial.number
    parameters = "the defaults" if is_default else _assignments(trial.parameters)
    return f"{result} in {duration(trial.seconds)} with {parameters}"


def _assignments(parameters: Mapping[str, Any]) -> str:
    """Format parameters as for --set."""
    return " ".join(f"{name}={value}" for name, value in parameters.items())


def _best_trial(study: Study, was_interrupted: bool) -> FinishedTrial:
    """Return the best trial; if there is none, say why and exit."""
    best = study.best_trial()
    if was_interrupted:
        outcome = "no trial has finished" if best is None else "the best settings so far are written"
        say(f"interrupted: {outcome}; the same command resumes {study.path}")
    if best is not None:
        return best
    if was_interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
    if failed := study.trials():
        raise InputError(f"all {len(failed)} trials failed, the first: {failed[0].error}")
    raise InputError("no time for a trial: increase --minutes")


def _comparison(study: Study, best: FinishedTrial) -> dict[str, Any]:
    """Compare the best trial with the defaults, and count how the trials ended."""
    trials, default_trial = study.trials(), study.default_trial()
    default_score = None if default_trial is None else default_trial.score
    return {
        "score": best.score,
        "defaults_score": default_score,
        "gain": None if default_score is None or best.score is None else best.score - default_score,
        "trials": len(trials),
        "pruned": sum(trial.state == "pruned" for trial in trials),
        "failed": sum(trial.state == "failed" for trial in trials),
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

    if as_json:
        print_json(summary)
        return
    counts = f"{summary['trials']}, {summary['pruned']} pruned, {summary['failed']} failed"
    facts = [
        ("settings", summary["settings"]),
        ("study", summary["study"]),
        ("method", f"{summary['method']}, {summary['bits']} bits, seed {summary['seed']}"),
        ("trials", f"{counts}, {duration(summary['seconds'])}"),
        ("score", f"{summary['score']:.4f} ({SCORES[summary['select']]})"),
        ("defaults", _gain(summary)),
        ("best", _assignments(summary["parameters"])),
    ]
    print_facts(facts)
    print_steps([f"snuh fit {source} --config {summary['settings']} --out model"])


def _gain(summary: dict[str, Any]) -> str:
    score, gain = summary["defaults_score"], summary["gain"]
    if score is None:
        return "failed"
    if not gain:
        return f"{score:.4f}: nothing better was found, the settings are the defaults"
    return f"{score:.4f}: the best is better by {gain:.4f}"
