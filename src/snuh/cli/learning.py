"""Learning in the terminal: progress on stderr, and Ctrl-C that keeps what was learnt."""

from __future__ import annotations

import typer

from snuh.cli.display import display
from snuh.cli.group import EXIT_INTERRUPTED, say
from snuh.corpus import MatrixSource, TextSource
from snuh.hasher import TextHasher
from snuh.model import Model


def learn(hasher: TextHasher, source: TextSource | MatrixSource) -> Model:
    """Fit and return the model; where Ctrl-C came too early to keep anything, exit 130."""
    try:
        with display() as shown:
            shown.show("Getting ready", 0.0)  # importing PyTorch takes seconds
            hasher.fit_source(source, on_progress=shown)
    except KeyboardInterrupt:
        say("interrupted before the first epoch was done: nothing was learnt, nothing is written")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    model = hasher.model_
    if model is None:
        raise RuntimeError("fit_source left no model")
    if model.training["stopped"] == "interrupted":
        say(f"interrupted: the best model so far is kept, that of epoch {model.training['best_epoch']}")
    return model
