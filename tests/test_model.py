from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snuh import io
from snuh import model as model_module
from snuh.codes import unpack
from snuh.encoder import Encoder, Layer
from snuh.errors import InputError, ModelError
from snuh.features import TfidfFeatures
from snuh.io import load_arrays, save_arrays, sha256
from snuh.model import Model, load

TEXTS = [
    "the harbour froze and the ships waited",
    "ships left the harbour at dawn",
    "the market opened and prices fell",
    "prices rose when the market closed",
]


def encoder_for(inputs: int, *, bits: int = 16) -> Encoder:
    rng = np.random.default_rng(1)
    return Encoder(
        (Layer(rng.normal(size=(inputs, bits)), rng.normal(size=bits), "sigmoid"),), np.full(bits, 0.5)
    )


@pytest.fixture(scope="module")
def text_model() -> Model:
    features = TfidfFeatures(min_df=1, max_df=1.0)
    features.fit(TEXTS)
    encoder = encoder_for(len(features.terms))
    return Model(
        encoder, features, "toy", {"rate": 0.1, "sizes": (1, 2)}, {"seed": np.int64(3), "score": 0.25}
    )


@pytest.fixture
def saved(text_model: Model, tmp_path: Path) -> Path:
    text_model.save(tmp_path / "m")
    return tmp_path / "m"


def matrix_model() -> Model:
    return Model(encoder_for(5), method="toy")


def rewrite_manifest(folder: Path, change: Callable[[dict[str, Any]], object], *, sign: bool = True) -> None:
    """Edit model.json as someone would who also knows how to renew its checksums."""
    manifest = json.loads((folder / "model.json").read_text())
    del manifest["sha256"]
    for name in list(manifest["files"]):
        path = folder / name
        manifest["files"][name] = {"sha256": sha256(path), "bytes": path.stat().st_size}
    change(manifest)
    digest = model_module._manifest_sha256(manifest) if sign else "0" * 64
    (folder / "model.json").write_text(json.dumps(manifest | {"sha256": digest}))


def error_message(folder: Path) -> str:
    """Return the sentence with which loading is refused."""
    with pytest.raises(ModelError) as caught:
        load(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_loaded_model_gives_the_same_codes_and_training_summary(text_model: Model, saved: Path) -> None:
    again = load(saved)
    np.testing.assert_array_equal(again.encode(TEXTS), text_model.encode(TEXTS))
    np.testing.assert_array_equal(again.values(TEXTS), text_model.values(TEXTS))
    assert (again.method, again.bits) == ("toy", 16)
    assert again.parameters == {"rate": 0.1, "sizes": [1, 2]}
    assert again.training == {"seed": 3, "score": 0.25}


def test_the_folder_holds_three_files_and_no_pickle(saved: Path) -> None:
    assert sorted(file.name for file in saved.iterdir()) == [
        "encoder.safetensors",
        "model.json",
        "vocabulary.json",
    ]
    manifest = json.loads((saved / "model.json").read_text())
    assert (manifest["format"], manifest["format_version"], manifest["bits"]) == ("snuh-model", 1, 16)
    assert set(manifest["files"]) == {"encoder.safetensors", "vocabulary.json"}


def test_a_matrix_model_comes_back_without_a_vocabulary(tmp_path: Path) -> None:
    matrix_model().save(tmp_path / "m")
    again, X = load(tmp_path / "m"), np.eye(5, dtype=np.float32)
    assert again.features is None
    assert not (tmp_path / "m" / "vocabulary.json").exists()
    np.testing.assert_array_equal(again.encode(X), matrix_model().encode(X))


def test_codes_are_the_values_above_the_threshold(text_model: Model) -> None:
    np.testing.assert_array_equal(unpack(text_model.encode(TEXTS)), text_model.values(TEXTS) > 0.5)


def test_a_generator_of_texts_is_read_in_batches(text_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "BATCH_CHARACTERS", len("".join(TEXTS[:3])))
    batches: list[int] = []
    transform = TfidfFeatures.transform

    def recording(self: TfidfFeatures, texts: Any) -> Any:
        batches.append(len(texts))
        return transform(self, texts)

    monkeypatch.setattr(TfidfFeatures, "transform", recording)

    def stream() -> Iterator[str]:
        yield from TEXTS

    codes = text_model.encode(stream())
    assert batches == [3, 1]
    np.testing.assert_array_equal(codes, np.concatenate([text_model.encode([text]) for text in TEXTS]))


def test_no_documents_make_no_codes(text_model: Model) -> None:
    assert text_model.encode([]).shape == (0, 2)
    assert text_model.values(iter([])).shape == (0, 16)
    assert matrix_model().encode(np.zeros((0, 5))).shape == (0, 2)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ("one text", "expected a list of texts, got a single string"),
        (["fine", 7], "document 2 must be a string"),
        (np.zeros((2, 3)), "takes texts, got an array of shape"),
    ],
)
def test_a_text_model_refuses_anything_but_a_list_of_texts(
    text_model: Model, documents: object, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        text_model.encode(documents)


@pytest.mark.parametrize("documents", ["a text", ["a text"], ("a text",)])
def test_a_matrix_model_refuses_texts(documents: object) -> None:
    with pytest.raises(InputError, match="takes feature rows, got texts"):
        matrix_model().encode(documents)


def test_a_matrix_with_the_wrong_number_of_columns_is_refused() -> None:
    with pytest.raises(InputError, match="takes rows with 5 columns"):
        matrix_model().encode(np.zeros((2, 6)))


def test_a_vocabulary_of_another_size_is_refused(text_model: Model) -> None:
    with pytest.raises(InputError, match=r"the vocabulary has \d+ terms and the encoder 5 inputs"):
        Model(encoder_for(5), text_model.features)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert error_message(tmp_path / "nowhere").startswith(f"there is no model folder {tmp_path / 'nowhere'}")


def test_a_folder_without_a_manifest_is_not_a_model(tmp_path: Path) -> None:
    assert "is not a snuh model: it has no model.json" in error_message(tmp_path)


@pytest.mark.parametrize("name", ["encoder.safetensors", "vocabulary.json"])
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    assert f"{name} is missing; restore" in error_message(saved)


@pytest.mark.parametrize("name", ["model.json", "encoder.safetensors", "vocabulary.json"])
@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.99])
def test_a_truncated_file_is_named(saved: Path, name: str, fraction: float) -> None:
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[: int(len(content) * fraction)])
    assert name in error_message(saved)


@pytest.mark.parametrize("name", ["model.json", "encoder.safetensors", "vocabulary.json"])
def test_a_changed_byte_anywhere_is_detected(saved: Path, name: str) -> None:
    content = (saved / name).read_bytes()
    for position in np.linspace(0, len(content) - 2, 25).astype(int):
        (saved / name).write_bytes(
            content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        )
        assert name in error_message(saved)


def test_a_parameter_changed_by_hand_is_detected(saved: Path) -> None:
    text = (saved / "model.json").read_text()
    (saved / "model.json").write_text(text.replace('"rate": 0.1', '"rate": 0.2'))
    assert "model.json was changed after saving" in error_message(saved)


def test_a_newer_format_asks_for_an_upgrade(saved: Path) -> None:
    rewrite_manifest(saved, lambda manifest: manifest.update(format_version=3))
    assert error_message(saved).endswith("has format version 3, this snuh reads 1 to 2: upgrade snuh")


@pytest.mark.parametrize("version", [None, 0, "1", True, 1.0])
def test_a_version_that_never_existed_is_refused(saved: Path, version: object) -> None:
    rewrite_manifest(saved, lambda manifest: manifest.update(format_version=version))
    assert "has format version" in error_message(saved)


@pytest.mark.parametrize("content", ["[]", "{}", '{"format": "other"}', "17"])
def test_other_json_is_not_a_model(saved: Path, content: str) -> None:
    (saved / "model.json").write_text(content)
    assert "does not describe a snuh model" in error_message(saved)


@pytest.mark.parametrize("name", ["method", "bits", "encoder", "parameters", "training", "files"])
def test_a_manifest_that_lacks_an_entry_is_refused(saved: Path, name: str) -> None:
    rewrite_manifest(saved, lambda manifest: manifest.pop(name))
    assert f"lacks a valid {name!r}" in error_message(saved)


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "more.safetensors"])
def test_file_names_from_the_manifest_are_never_opened(saved: Path, name: str) -> None:
    def point_elsewhere(manifest: dict[str, Any]) -> None:
        manifest["files"][name] = {"sha256": "0" * 64, "bytes": 1}

    rewrite_manifest(saved, point_elsewhere)
    assert "lists the wrong files" in error_message(saved)


@pytest.mark.parametrize("entry", [None, 3, {}, {"bytes": 1}])
def test_file_entries_of_the_wrong_type_are_refused(saved: Path, entry: object) -> None:
    rewrite_manifest(saved, lambda manifest: manifest["files"].update({"vocabulary.json": entry}))
    assert "vocabulary.json should have" in error_message(saved)


def _with_nan(arrays: dict[str, np.ndarray]) -> None:
    arrays["layer0.weight"][0, 0] = np.nan


def _with_short_threshold(arrays: dict[str, np.ndarray]) -> None:
    arrays["threshold"] = arrays["threshold"][:8]


def _without_bias(arrays: dict[str, np.ndarray]) -> None:
    del arrays["layer0.bias"]


def _with_fewer_bits(arrays: dict[str, np.ndarray]) -> None:
    arrays.update({name: np.ascontiguousarray(array[..., :8]) for name, array in arrays.items()})


def _with_fewer_inputs(arrays: dict[str, np.ndarray]) -> None:
    arrays["layer0.weight"] = arrays["layer0.weight"][1:]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_with_nan, "encoder.safetensors is unusable: the weights must be finite"),
        (_with_short_threshold, "encoder.safetensors is unusable: an encoder needs one threshold per bit"),
        (_without_bias, "encoder.safetensors is unusable: expected the arrays"),
        (_with_fewer_bits, "encoder.safetensors gives 8-bit codes, model.json says 16"),
        (_with_fewer_inputs, "terms and the encoder"),
    ],
)
def test_arrays_that_cannot_work_are_refused_even_with_the_right_checksum(
    saved: Path, damage: Callable[[dict[str, np.ndarray]], None], message: str
) -> None:
    arrays = {name: array.copy() for name, array in load_arrays(saved / "encoder.safetensors").items()}
    damage(arrays)
    save_arrays(saved / "encoder.safetensors", arrays)
    rewrite_manifest(saved, lambda manifest: None)
    assert message in error_message(saved)


@pytest.mark.parametrize("content", ["[]", "{}", "null", '"text"', '{"terms": 3}'])
def test_a_vocabulary_that_cannot_work_is_refused(saved: Path, content: str) -> None:
    (saved / "vocabulary.json").write_text(content)
    rewrite_manifest(saved, lambda manifest: None)
    assert "vocabulary.json is unusable" in error_message(saved)


def test_saving_over_a_folder_that_is_not_a_model_is_refused(text_model: Model, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="is not a snuh model"):
        text_model.save(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_saving_over_a_model_replaces_all_of_it(saved: Path) -> None:
    matrix_model().save(saved)
    assert load(saved).features is None
    assert not (saved / "vocabulary.json").exists()


def test_a_save_that_stops_midway_leaves_the_old_model(
    text_model: Model, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = text_model.encode(TEXTS)

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(model_module, "write_json", stop)  # after the arrays, before the vocabulary
        with pytest.raises(KeyboardInterrupt):
            text_model.save(saved)
    np.testing.assert_array_equal(load(saved).encode(TEXTS), before)
    assert [entry.name for entry in saved.parent.iterdir()] == ["m"]


def test_a_model_is_loaded_after_an_interrupted_replacement(saved: Path) -> None:
    shutil.copytree(saved, saved.with_name(".m.0a1b2c3d"))
    shutil.move(saved, saved.with_name(".m.previous"))  # the state between the two renames
    assert load(saved).method == "toy"
    load(saved).save(saved)
    assert saved.is_dir() and not saved.with_name(".m.previous").exists()


def test_a_previous_model_does_not_come_back_after_its_successor_was_removed(saved: Path) -> None:
    shutil.copytree(saved, saved.with_name(".m.previous"))  # killed before it could be removed
    shutil.rmtree(saved)
    with pytest.raises(ModelError, match="there is no model folder"):
        load(saved)


def test_leftovers_of_killed_processes_are_removed_by_the_next_one(saved: Path) -> None:
    old = [saved.with_name(name) for name in (".m.0a1b2c3d", ".m.4e5f6a7b", ".0a1b2c3d.m", ".other.0a1b2c3d")]
    for path in old:
        path.mkdir()
    time.sleep(io.LOCK_SECONDS + 0.1)
    with io.locked(old[1]):  # of a process that lives
        load(saved).save(saved)
    assert [path.exists() for path in old] == [False, True, False, True]


def test_a_model_can_be_moved(saved: Path, tmp_path: Path) -> None:
    shutil.move(saved, tmp_path / "elsewhere")
    assert load(str(tmp_path / "elsewhere")).bits == 16


def test_loading_and_encoding_import_neither_torch_nor_sklearn(saved: Path) -> None:
    program = (
        "import sys, snuh\n"
        f"codes = snuh.load({str(saved)!r}).encode(['ships left the harbour'])\n"
        "assert codes.shape == (1, 2)\n"
        "print([name for name in ('torch', 'sklearn') if name in sys.modules])"
    )
    source = str(Path(model_module.__file__).parents[1])
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": source},
        check=False,
    )
    assert (result.stdout.strip(), result.stderr) == ("[]", "")
