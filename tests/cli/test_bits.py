"""`snuh bits`: what each bit stands for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import snuh
from snuh.encoder import Encoder, Layer
from snuh.model import Model
from tests.cli.running import run, run_process


def test_bits_shows_a_row_for_each_bit(fitted: Path) -> None:
    ran = run_process("bits", fitted)
    assert (ran.code, ran.stderr) == (0, "")
    for heading in ("bit", "ones", "words when 1", "words when 0"):
        assert heading in ran.stdout
    numbered = [line.split()[0] for line in ran.stdout.splitlines() if "%" in line]
    assert numbered == [str(bit) for bit in range(32)]
    assert "word" in ran.stdout and ";" in ran.stdout


def test_bits_prints_the_same_as_json(fitted: Path) -> None:
    ran = run("bits", fitted, "--words", 6, "--json")
    output = json.loads(ran.stdout)
    assert (output["method"], output["bits"], len(output["meanings"])) == ("snuh-plus", 32, 32)
    terms = set(snuh.load(fitted).features.terms)  # type: ignore[union-attr]
    for number, meaning in enumerate(output["meanings"]):
        assert meaning["bit"] == number
        assert 0 <= meaning["balance"] <= 1
        assert meaning["uses_decoder"] is True
        for side in ("on", "off"):
            words = [word for theme in meaning[side] for word in theme]
            assert 0 < len(words) <= 6
            assert set(words) <= terms


def test_bits_shows_a_single_bit(fitted: Path) -> None:
    output = json.loads(run("bits", fitted, "--bit", 7, "--json").stdout)
    assert [meaning["bit"] for meaning in output["meanings"]] == [7]
    everything = json.loads(run("bits", fitted, "--json").stdout)
    assert output["meanings"][0] == everything["meanings"][7]


def test_a_model_without_a_decoder_is_shown_with_a_warning(model: Path) -> None:
    older = snuh.load(model)
    older.decoder = None
    del older.training["ones_fraction"]
    older.save(model)
    ran = run("bits", model)
    assert ran.code == 0
    assert ran.stderr.startswith("snuh: warning: this model was saved without its decoder")
    assert "ones" not in ran.stdout.splitlines()[1]
    assert "word" in ran.stdout


def test_a_modified_decoder_is_a_user_error(model: Path) -> None:
    path = model / "decoder.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    ran = run_process("bits", model)
    assert ran.code == 2
    assert len(ran.complaints) == 1 and "decoder.safetensors was changed after saving" in ran.complaints[0]


def test_numbers_out_of_range_are_refused(fitted: Path) -> None:
    for arguments, complaint in (
        (("--bit", 32), "--bit must be from 0 to 31, got 32"),
        (("--bit", -1), "--bit must be from 0 to 31, got -1"),
        (("--words", 0), "--words must be at least 1, got 0"),
    ):
        ran = run("bits", fitted, *arguments)
        assert ran.code == 2
        assert ran.complaints == [f"snuh: {complaint}"]


def test_a_model_of_a_matrix_has_no_words_to_show(tmp_path: Path) -> None:
    layer = Layer(np.ones((5, 8)), np.zeros(8), "sigmoid")
    Model(Encoder((layer,), np.full(8, 0.5))).save(tmp_path / "m")
    ran = run("bits", tmp_path / "m")
    assert ran.code == 2
    assert "trained on a matrix of features" in ran.complaints[0]
