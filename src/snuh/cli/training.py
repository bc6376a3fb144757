"""Training options, settings files, and training with progress and Ctrl-C handling."""

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

T = TypeVar("T")

DEFAULT_BITS = 64
FEATURES_PREFIX = "features."
DEDICATED_OPTIONS = {"bits": "--bits", "n_bits": "--bits", "seed": "--seed", "method": "--method"}

FORMAT, VERSION = "snuh-settings", 1
SUFFIX = ".json"
CONFIG_KEYS: Mapping[str, tuple[type, str]] = {
    "method": (str, "a string"),
    "bits": (int, "an integer"),
    "seed": (int, "an integer"),
    "parameters": (dict, "an object"),
    "features": (dict, "an object"),
}
HEADER_KEYS = ("format", "version", "origin")


@dataclass(frozen=True, slots=True)
class Settings:
    """Values of `--set`, by name; each is a JSON value."""

    method: dict[str, Any] = field(default_factory=dict)
    features: dict[str, Any] = field(default_factory=dict)


def parse_settings(assignments: Sequence[str]) -> Settings:
    """Parse `key=value` strings, `features.key=value` for features; a value that is not JSON is a string."""
    settings = Settings()
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        key = key.strip()
        if not key or not equals:
            raise InputError(f'--set expects key=value, such as --set epochs=10, got "{assignment}"')
        if key in DEDICATED_OPTIONS:
            raise InputError(f"{key} cannot be set with --set: use {DEDICATED_OPTIONS[key]} {text}")
        is_features = key.startswith(FEATURES_PREFIX)
        target = settings.features if is_features else settings.method
        name = key.removeprefix(FEATURES_PREFIX)
        if name in target:
            raise InputError(f"--set {key} is given twice: give it once")
        target[name] = _parse_value(text)
    return settings


def _parse_value(text: str) -> Any:  # a JSON value
    try:
        return json.loads(text)
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class Config:
    """The content of a settings file; None and empty mean the default."""

    method: str | None = None
    bits: int | None = None
    seed: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)


def read_config(path: Path) -> Config:
    """Read a settings file; every key is optional, for files written by hand."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a JSON object with settings, got {type(content).__name__}")
    if content.get("format", FORMAT) != FORMAT:
        raise InputError(f'{path} is not a settings file: expected the format "{FORMAT}"')
    if content.get("version", VERSION) != VERSION:
        raise InputError(
            f"{path} has version {content['version']}, this snuh reads {VERSION}: use a newer snuh"
        )
    known = (*CONFIG_KEYS, *HEADER_KEYS)
    for name in content:
        if name not in known:
            raise InputError(
                f'{path} has an unknown key "{name}"{suggest(name, known)}: expected {", ".join(known)}'
            )
    values = {name: content[name] for name in CONFIG_KEYS if name in content}
    for name, value in values.items():
        kind, expected = CONFIG_KEYS[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InputError(f"{path}: {name} must be {expected}, got {value!r}")
    return Config(**values)


def write_config(path: Path, config: Config, *, origin: Mapping[str, Any]) -> None:
    """Write a settings file; `origin` records where the settings come from."""
    with atomic_write(path) as temporary:
        content = {"format": FORMAT, "version": VERSION, **asdict(config), "origin": origin}
        write_json(temporary, content, indent=2)


def check_config_path(path: Path) -> None:
    """Raise InputError if `path` has another suffix, or is an existing file that is not a settings file."""
    if path.suffix != SUFFIX:
        raise InputError(f'--out must end in {SUFFIX}, got "{path}"')
    if not path.exists():
        return
    try:
        is_config = read_json(path)["format"] == FORMAT
    except (InputError, KeyError, TypeError):
        is_config = False
    if not is_config:
        raise InputError(f"{path} exists and is not a settings file: choose another, or remove it first")


def make_hasher(
    method: str | None = None,
    *,
    bits: int | None = None,
    seed: int | None = None,
    settings: Sequence[str] = (),
    config: Path | None = None,
) -> TextHasher:
    """Return the hasher to train, with everything validated that needs no documents.

    Arguments take precedence over the file `config`; None means its value, or the default.
    """
    given = Config() if config is None else read_config(config)
    _check_same_method(method, given)
    method = _first(method, given.method, DEFAULT)
    bits = _first(bits, given.bits, DEFAULT_BITS)
    info(method)
    check_bits(bits)
    parsed = parse_settings(settings)
    return TextHasher(
        method,
        bits,
        seed=_first(seed, given.seed, 0),
        features={**given.features, **parsed.features},
        parameters={**given.parameters, **parsed.method},
    )


def check_features(hasher: TextHasher, source: TextSource | MatrixSource) -> None:
    """Raise InputError if features are set for a source that contains feature rows already."""
    if isinstance(source, MatrixSource) and hasher.features:
        name = next(iter(hasher.features))
        raise InputError(f"features.{name} is for texts, {source.name} contains feature rows: omit it")


def _check_same_method(method: str | None, config: Config) -> None:
    config_method = config.method or DEFAULT
    if method is not None and method != config_method and config.parameters:
        raise InputError(
            f"the settings file has parameters of {config_method}, --method is {method}: "
            "omit --method or --config"
        )


def _first(option: T | None, configured: T | None, default: T) -> T:
    if option is not None:
        return option
    return default if configured is None else configured


def train(hasher: TextHasher, source: TextSource | MatrixSource, *, save: Callable[[], None]) -> Model:
    """Fit a hasher, call `save` and return the model; exit 130 on Ctrl-C before the first epoch."""
    with holding_ctrl_c() as ctrl_c:
        try:
            with display() as progress:
                progress.show("Starting", 0.0)  # importing PyTorch takes seconds
                hasher.fit_source(source, on_progress=ctrl_c.watch(progress))
        except KeyboardInterrupt:
            say("interrupted before the end of the first epoch: nothing was written")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        save()
    model = hasher.model_
    if model is None:
        raise RuntimeError("fit_source left no model")
    if model.training["stopped"] == "interrupted":
        say(f"interrupted: kept the best model so far, of epoch {model.training['best_epoch']}")
    return model


class CtrlC:
    """A SIGINT handler that stops at once before the first epoch, and later only when progress is reported.

    Without it, a second Ctrl-C, or one after the end of training, would lose the model.
    """

    requested = False
    has_epoch = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        is_first, self.requested = not self.requested, True
        if is_first and not self.has_epoch:
            raise KeyboardInterrupt

    def watch(self, on_progress: OnProgress) -> OnProgress:
        """Return a progress callback that also ends the training after Ctrl-C."""

        def report(progress: Progress) -> None:
            self.has_epoch = self.has_epoch or progress.epoch is not None
            on_progress(progress)
            if self.requested:
                raise KeyboardInterrupt

        return report


@contextmanager
def holding_ctrl_c() -> Iterator[CtrlC]:
    """Install the handler inside the block, unless SIGINT is ignored, as in a background process."""
    ctrl_c = CtrlC()
    previous = signal.getsignal(signal.SIGINT)
    if previous is not signal.default_int_handler:
        yield ctrl_c
        return
    signal.signal(signal.SIGINT, ctrl_c.handle)
    try:
        yield ctrl_c
    finally:
        # After Ctrl-C the command is about to exit: a late second one must not look like a failure.
        signal.signal(signal.SIGINT, signal.SIG_IGN if ctrl_c.requested else previous)
