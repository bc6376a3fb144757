"""`snuh fit --config`: settings from a file, also one written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import snuh
from snuh.cli.training import Config, make_hasher, read_config, write_config
from snuh.errors import InputError
from tests.cli.running import run


def write(folder: Path, content: Any) -> Path:
    path = folder / "settings.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_config_round_trips(tmp_path: Path) -> None:
    config = Config("snuh", 24, 7, {"tau": 0.3, "sampler": "star"}, {"max_terms": 50})
    write_config(tmp_path / "settings.json", config, origin={"command": "snuh tune"})
    assert read_config(tmp_path / "settings.json") == config


def test_fit_takes_settings_from_a_file(world: Path, tmp_path: Path) -> None:
    content = {
        "method": "itq",
        "bits": 24,
        "seed": 7,
        "parameters": {"iterations": 3},
        "features": {"max_terms": 50},
    }
    ran = run("fit", world, "--out", tmp_path / "model", "--config", write(tmp_path, content))
    assert ran.code == 0, ran.stderr
    model = snuh.load(tmp_path / "model")
    assert (model.method, model.bits, model.training["seed"]) == ("itq", 24, 7)
    assert model.parameters["iterations"] == 3
    assert model.features is not None and len(model.features.terms) == 50


def test_create_takes_settings_from_a_file(world: Path, fitted: Path, tmp_path: Path) -> None:
    config = write(tmp_path, {"method": "itq", "bits": 24})
    ran = run("create", tmp_path / "c", "--from", world, "--config", config, "--json")
    assert ran.code == 0, ran.stderr
    assert (json.loads(ran.stdout)["method"], json.loads(ran.stdout)["bits"]) == ("itq", 24)
    ran = run("create", tmp_path / "d", "--model", fitted, "--config", config)
    assert ran.code == 2 and "--config is an option for training" in ran.stderr


def test_options_take_precedence_over_the_file(tmp_path: Path) -> None:
    content = {"bits": 24, "seed": 7, "parameters": {"tau": 0.3, "alpha": 0.5}, "features": {"min_docs": 3}}
    hasher = make_hasher(
        "snuh-plus",
        bits=16,
        seed=0,
        settings=["tau=0.4", "features.max_terms=9"],
        config=write(tmp_path, content),
    )
    assert (hasher.method, hasher.bits, hasher.seed) == ("snuh-plus", 16, 0)
    assert hasher.parameters == {"tau": 0.4, "alpha": 0.5}
    assert hasher.features == {"min_docs": 3, "max_terms": 9}


def test_parameters_of_another_method_are_refused(tmp_path: Path) -> None:
    given = write(tmp_path, {"method": "snuh", "parameters": {"tau": 0.3}})
    with pytest.raises(InputError, match="has parameters of snuh, --method is vdsh: omit"):
        make_hasher("vdsh", config=given)
    assert make_hasher("vdsh", config=write(tmp_path, {"method": "snuh", "bits": 24})).bits == 24


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "is not valid JSON"),
        ([1], "expected a JSON object with settings, got list"),
        ({"format": "snuh-model"}, 'expected the format "snuh-settings"'),
        ({"version": 2}, "has version 2, this snuh reads 1"),
        ({"paramters": {}}, 'unknown key "paramters" (did you mean "parameters"?)'),
        ({"bits": "16"}, "bits must be an integer, got '16'"),
        ({"bits": True}, "bits must be an integer, got True"),
        ({"bits": 20}, "multiple of 8"),
        ({"parameters": [1]}, "parameters must be an object"),
        ({"method": "snuhh"}, 'unknown method "snuhh" (did you mean "snuh"?)'),
        ({"parameters": {"tua": 1}}, 'has no "tua" (did you mean "tau"?)'),
        ({"features": {"max_term": 1}}, 'has no "max_term" (did you mean "max_terms"?)'),
    ],
)
def test_an_invalid_file_is_reported_in_one_line(
    content: Any, complaint: str, world: Path, tmp_path: Path
) -> None:
    ran = run("fit", world, "--out", tmp_path / "model", "--config", write(tmp_path, content))
    assert (ran.code, len(ran.complaints)) == (2, 1)
    assert complaint in ran.stderr
    assert not (tmp_path / "model").exists()


def test_a_missing_file_is_reported_in_one_line(world: Path, tmp_path: Path) -> None:
    ran = run("fit", world, "--out", tmp_path / "model", "--config", tmp_path / "absent.json")
    assert (ran.code, len(ran.complaints)) == (2, 1)
    assert "cannot read" in ran.stderr
