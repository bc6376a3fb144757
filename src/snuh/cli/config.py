"""Files of settings: what `snuh tune` writes and `snuh fit --config` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from snuh.errors import InputError, suggest
from snuh.storage import atomic_write, read_json, write_json

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


def check_config_place(path: Path) -> None:
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
