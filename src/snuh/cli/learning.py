"""Learning in the terminal: progress on stderr, and Ctrl-C that keeps what was learnt."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import typer

from snuh.cli.display import display
from snuh.cli.group import EXIT_INTERRUPTED, say
from snuh.cli.settings import parse_settings
from snuh.codes import check_bits
from snuh.corpus import MatrixSource, TextSource
from snuh.hasher import TextHasher
from snuh.methods import DEFAULT, info
from snuh.model import Model
from snuh.progress import OnProgress, Progress

USUAL_BITS = 64


def make_hasher(
    method: str | None = None,
    *,
    bits: int | None = None,
    seed: int | None = None,
    settings: Sequence[str] = (),
) -> TextHasher:
    """Return what learns, with everything checked that can be before a document is read; None: as usual."""
    method = DEFAULT if method is None else method
    bits = USUAL_BITS if bits is None else bits
    info(method)
    check_bits(bits)
    chosen = parse_settings(settings)
    return TextHasher(method, bits, seed=seed or 0, features=chosen.features, parameters=chosen.method)


def learn(hasher: TextHasher, source: TextSource | MatrixSource, *, save: Callable[[], None]) -> Model:
    """Fit, save and return the model; where Ctrl-C came too early to keep anything, exit 130."""
    with _ctrl_c() as ctrl_c:
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


class _CtrlC:
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
def _ctrl_c() -> Iterator[_CtrlC]:
    ctrl_c = _CtrlC()
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
