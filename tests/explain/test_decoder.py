"""The decoder beside the encoder: saved, read when asked for, and never trusted blindly."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snuh import model as model_module
from snuh.encoder import Encoder, Layer
from snuh.errors import InputError, ModelError
from snuh.features import TfidfFeatures
from snuh.io import save_arrays, sha256
from snuh.methods import make
from snuh.model import Model, load
from snuh.progress import Progress
from tests.worlds import planted_topics

TEXTS = ["ships left the harbour", "the market closed", "ships at the market"]


def toy(**parts: Any) -> Model:
    features = TfidfFeatures(min_df=1, max_df=1.0, language="en").fit(TEXTS)
    rng = np.random.default_rng(2)
    terms = len(features.terms)
    layer = Layer(rng.normal(size=(terms, 16)), rng.normal(size=16), "sigmoid")
    decoder = rng.normal(size=(terms, 16)).astype(np.float32)
    whole: dict[str, Any] = {"features": features, "method": "toy", "decoder": decoder}
    return Model(Encoder((layer,), np.full(16, 0.5)), **whole | parts)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    toy().save(tmp_path / "m")
    return tmp_path / "m"


def resign(folder: Path) -> None:
    """Renew the checksums, as someone would who knows how."""
    manifest = json.loads((folder / "model.json").read_text())
    del manifest["sha256"]
    for name in manifest["files"]:
        manifest["files"][name] = {"sha256": sha256(folder / name), "bytes": (folder / name).stat().st_size}
    digest = model_module._manifest_sha256(manifest)
    (folder / "model.json").write_text(json.dumps(manifest | {"sha256": digest}))


def test_a_decoder_comes_back_at_half_precision(saved: Path) -> None:
    before, after = toy().decoder, load(saved).word_embedding()
    assert isinstance(before, np.ndarray) and after is not None
    assert after.dtype == np.float16
    np.testing.assert_array_equal(after, before.astype(np.float16))
    assert "decoder.safetensors" in json.loads((saved / "model.json").read_text())["files"]


def test_a_model_without_a_decoder_has_no_such_file_and_loads(saved: Path) -> None:
    toy(decoder=None).save(saved)
    assert not (saved / "decoder.safetensors").exists()
    again = load(saved)
    assert again.word_embedding() is None
    np.testing.assert_array_equal(again.encode(TEXTS), toy().encode(TEXTS))


def test_a_matrix_model_keeps_its_decoder_too(tmp_path: Path) -> None:
    toy(features=None).save(tmp_path / "m")
    assert load(tmp_path / "m").word_embedding() is not None


def test_a_loaded_model_keeps_its_decoder_when_saved_again(saved: Path, tmp_path: Path) -> None:
    load(saved).save(tmp_path / "copy")
    load(saved).save(saved)  # over itself
    for folder in (saved, tmp_path / "copy"):
        np.testing.assert_array_equal(load(folder).word_embedding(), toy().word_embedding())


def test_a_changed_decoder_is_found_when_asked_for_and_does_not_hinder_encoding(saved: Path) -> None:
    path = saved / "decoder.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-3] + bytes([content[-3] ^ 1]) + content[-2:])
    model = load(saved)
    np.testing.assert_array_equal(model.encode(TEXTS), toy().encode(TEXTS))
    with pytest.raises(ModelError, match=r"decoder\.safetensors was changed after saving .*; restore"):
        model.word_embedding()


@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_a_missing_or_truncated_decoder_is_found_at_once(saved: Path, damage: str) -> None:
    path = saved / "decoder.safetensors"
    content = path.read_bytes()
    path.unlink()
    if damage == "truncated":
        path.write_bytes(content[:-1])
    with pytest.raises(ModelError, match=r"decoder\.safetensors (is missing|should have)"):
        load(saved)


def test_a_decoder_that_goes_away_after_loading_is_named(saved: Path) -> None:
    model = load(saved)
    (saved / "decoder.safetensors").unlink()
    with pytest.raises(ModelError, match=r"decoder\.safetensors is missing"):
        model.word_embedding()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"embedding": np.zeros((2, 16), np.float16)}, "a decoder must be floats of shape"),
        ({"embedding": np.zeros((5, 16), np.int32)}, "a decoder must be floats of shape"),
        ({"embedding": np.full((5, 16), np.nan, np.float16)}, "got NaN"),
        ({"other": np.zeros((5, 16), np.float16)}, "expected the array embedding, got other"),
    ],
)
def test_a_decoder_that_cannot_work_is_refused_even_with_the_right_checksum(
    saved: Path, arrays: dict[str, Any], message: str
) -> None:
    assert toy().encoder.inputs == 5
    save_arrays(saved / "decoder.safetensors", arrays)
    resign(saved)
    with pytest.raises(ModelError, match=message):
        load(saved).word_embedding()


def test_a_decoder_of_another_shape_is_refused_when_a_model_is_made() -> None:
    with pytest.raises(InputError, match=r"a decoder must be floats of shape \(5, 16\), got float64"):
        toy(decoder=np.zeros((5, 8)))


def test_numbers_too_large_for_half_precision_stay_finite() -> None:
    embedding = toy(decoder=np.full((5, 16), -1e9)).word_embedding()
    assert embedding is not None and np.isfinite(embedding).all()


def test_training_keeps_the_decoder_of_the_best_epoch_not_of_the_end() -> None:
    texts = [record["text"] for record in planted_topics(docs=120)]
    X = TfidfFeatures().fit(texts).transform(texts)

    def stopped(*, in_next_epoch: bool) -> Any:
        """Fit until the first epoch is done, or until a step of the second is."""

        def on_progress(progress: Progress) -> None:
            nonlocal epochs
            if progress.epoch is None and epochs and progress.stage == "training":
                raise KeyboardInterrupt
            if progress.epoch is not None:
                epochs += 1
                if not in_next_epoch:
                    raise KeyboardInterrupt

        epochs = 0
        quick = {"epochs": 3, "neighbors": 5, "trees": 2, "batch_size": 16, "refresh": 0.0, "start": "random"}
        return make("snuh-plus", bits=16, seed=0, parameters=quick).fit(X, on_progress=on_progress)

    early, late = stopped(in_next_epoch=False), stopped(in_next_epoch=True)
    assert early.training_["best_epoch"] == late.training_["best_epoch"] == 1
    assert early.decoder_.shape == (X.shape[1], 16)
    np.testing.assert_array_equal(early.decoder_, late.decoder_)


def test_a_trained_model_brings_its_decoder(planted: Model, tmp_path: Path) -> None:
    planted.save(tmp_path / "m")
    embedding = load(tmp_path / "m").word_embedding()
    np.testing.assert_array_equal(embedding, planted.word_embedding())
    assert embedding is not None and len(np.unique(embedding)) > 100
    assert replace(planted, decoder=None).word_embedding() is None
