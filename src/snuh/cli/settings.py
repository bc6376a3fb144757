"""`--set key=value`: settings of the method, and with the prefix `features.` of the features."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from snuh.errors import InputError

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
