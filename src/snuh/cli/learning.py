"""Learning in the terminal: progress on stderr, and Ctrl-C that keeps what was learnt."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

import typer

from snuh.cli.config import Config
from snuh.cli.display import display
from snuh.cli.group import EXIT_INTERRUPTED, say
from snuh.cli.settings import parse_settings
from snuh.codes import check_bits
from snuh.corpus import MatrixSource, TextSource
from snuh.errors import InputError
from snuh.hasher import TextHasher
from snuh.methods import DEFAULT, info
from snuh.model import Model
from snuh.progress import OnProgress, Progress

USUAL_BITS = 64
T = TypeVar("T")


def make_hasher(
    method: str | None = None,
    *,
    bits: int | None = None,
    seed: int | None = None,
    settings: Sequence[str] = (),
    config: Config | None = None,
) -> TextHasher:
    """Return what learns, with everything checked that can be before a document is read; None: as usual.

    What is given here comes before what a file of settings says.
    """
    config = config or Config()
    _check_same_method(method, config)
    method = _first(method, config.method, DEFAULT)
    bits = _first(bits, config.bits, USUAL_BITS)
    info(method)
    check_bits(bits)
    chosen = parse_settings(settings)
    return TextHasher(
        method,
        bits,
        seed=_first(seed, config.seed, 0),
        features={**config.features, **chosen.features},
        parameters={**config.parameters, **chosen.method},
    )


def check_features(hasher: TextHasher, source: TextSource | MatrixSource) -> None:
    """Raise InputError where settings of the features do not suit the source, or are none."""
    if isinstance(source, MatrixSource) and hasher.features:
        name = next(iter(hasher.features))
        raise InputError(f"features.{name} is for texts, {source.name} holds feature rows: leave it out")


def _check_same_method(method: str | None, config: Config) -> None:
    theirs = config.method or DEFAULT
    if method is not None and method != theirs and config.parameters:
        raise InputError(
            f"the file of settings has parameters of {theirs}, --method says {method}: "
            "leave out --method or --config"
        )


def _first(given: T | None, config: T | None, usual: T) -> T:
    if given is not None:
        return given
    return usual if config is None else config


def learn(hasher: TextHasher, source: TextSource | MatrixSource, *, save: Callable[[], None]) -> Model:
    """Fit, save and return the model; where Ctrl-C came too early to keep anything, exit 130."""
    with holding_ctrl_c() as ctrl_c:
        try:
            with display() as shown:
                shown.show("Getting ready", 0.0)  # importing PyTorch takes seconds
                hasher.fit_source(source, on_progress=ctrl_c.watch(shown))
        except KeyboardInterrupt:
            say("interrupted before the first epoch was done: nothing is written")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        save()
    model = hasher.model_
    if model is None:
        raise RuntimeError("fit_source left no model")
    if model.training["stopped"] == "interrupted":
        say(f"interrupted: the best model so far is kept, that of epoch {model.training['best_epoch']}")
    return model


class CtrlC:
    """Stops at once before the first epoch is done; after it only where training can be ended.

    A second Ctrl-C, or one that comes when training is over, would otherwise cost the model.
    """

    asked = False
    has_epoch = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Take the signal."""
        is_first, self.asked = not self.asked, True
        if is_first and not self.has_epoch:
            raise KeyboardInterrupt

    def watch(self, on_progress: OnProgress) -> OnProgress:
        """Return a callback that passes progress on, and ends the training where that was asked for."""

        def report(progress: Progress) -> None:
            self.has_epoch = self.has_epoch or progress.epoch is not None
            on_progress(progress)
            if self.asked:
                raise KeyboardInterrupt

        return report


@contextmanager
def holding_ctrl_c() -> Iterator[CtrlC]:
    """Keep Ctrl-C from ending the process where that would cost what was learnt."""
    ctrl_c = CtrlC()
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # who runs us in the background ignores Ctrl-C
        yield ctrl_c
        return
    signal.signal(signal.SIGINT, ctrl_c.handle)
    try:
        yield ctrl_c
    finally:
        # Once asked, the command is on its way out: a late second Ctrl-C must not look like a failure.
        signal.signal(signal.SIGINT, signal.SIG_IGN if ctrl_c.asked else before)
