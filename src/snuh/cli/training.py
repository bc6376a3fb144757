"""Learning in the terminal: progress on stderr, and Ctrl-C that keeps what was learnt."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import typer

from snuh.cli.base_command import EXIT_INTERRUPTED, say
from snuh.cli.output import display
from snuh.codes import check_bits
from snuh.corpus import MatrixSource, TextSource
from snuh.errors import InputError, suggest
from snuh.hasher import TextHasher
from snuh.io import atomic_write, read_json, write_json
from snuh.methods import DEFAULT, info
from snuh.model import Model
from snuh.progress import OnProgress, Progress

# `--set key=value`: settings of the method, and with the prefix `features.` of the features.

FEATURES_PREFIX = "features."
OWN_OPTIONS = {"bits": "--bits", "n_bits": "--bits", "seed": "--seed", "method": "--method"}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user set, by name; the values are whatever JSON can say."""

    method: dict[str, Any] = field(default_factory=dict)
    features: dict[str, Any] = field(default_factory=dict)


def parse_settings(assignments: Sequence[str]) -> Settings:
    """Read `key=value` texts; a value that is not JSON is taken as text."""
    settings = Settings()
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        key = key.strip()
        if not key or not equals:
            raise InputError(f'--set expects key=value, such as --set epochs=10, got "{assignment}"')
        if key in OWN_OPTIONS:
            raise InputError(f"{key} has an option of its own: use {OWN_OPTIONS[key]} {text}")
        is_features = key.startswith(FEATURES_PREFIX)
        target = settings.features if is_features else settings.method
        name = key.removeprefix(FEATURES_PREFIX)
        if name in target:
            raise InputError(f"--set {key} is there twice: give it once")
        target[name] = _value(text)
    return settings


def _value(text: str) -> Any:  # whatever JSON can say
    try:
        return json.loads(text)
    except ValueError:
        return text


# Files of settings: what `snuh tune` writes and `snuh fit --config` takes.

FORMAT, VERSION = "snuh-settings", 1
SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class Config:
    """How to learn; what is None or empty is as usual."""

    method: str | None = None
    bits: int | None = None
    seed: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)


SETTINGS: Mapping[str, tuple[type, str]] = {
    "method": (str, "a text"),
    "bits": (int, "a whole number"),
    "seed": (int, "a whole number"),
    "parameters": (dict, "an object"),
    "features": (dict, "an object"),
}
ABOUT = ("format", "version", "origin")  # the file itself, and where it came from


def read_config(path: Path) -> Config:
    """Read a file of settings, also one written by hand: every key may be absent."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a JSON object with settings, got {type(content).__name__}")
    if content.get("format", FORMAT) != FORMAT:
        raise InputError(f'{path} is no file of settings: expected the format "{FORMAT}"')
    if content.get("version", VERSION) != VERSION:
        raise InputError(
            f"{path} is of version {content['version']}, this snuh reads {VERSION}: use a newer snuh"
        )
    known = (*SETTINGS, *ABOUT)
    for name in content:
        if name not in known:
            raise InputError(
                f'{path} has an unknown key "{name}"{suggest(name, known)}: expected {", ".join(known)}'
            )
    given = {name: content[name] for name in SETTINGS if name in content}
    for name, value in given.items():
        kind, expected = SETTINGS[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InputError(f"{path}: {name} must be {expected}, got {value!r}")
    return Config(**given)


def write_config(path: Path, config: Config, *, origin: Mapping[str, Any]) -> None:
    """Write a file of settings, with a word on where they came from."""
    with atomic_write(path) as beside:
        content = {"format": FORMAT, "version": VERSION, **asdict(config), "origin": origin}
        write_json(beside, content, indent=2)


def check_config_path(path: Path) -> None:
    """Raise InputError where a file of settings would replace some other file, or has another ending."""
    if path.suffix != SUFFIX:
        raise InputError(f'--out must end in {SUFFIX}, got "{path}"')
    if not path.exists():
        return
    try:
        is_ours = read_json(path)["format"] == FORMAT
    except (InputError, KeyError, TypeError):
        is_ours = False
    if not is_ours:
        raise InputError(f"{path} exists and is no file of settings: choose another, or remove it first")


DEFAULT_BITS = 64
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
    bits = _first(bits, config.bits, DEFAULT_BITS)
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
