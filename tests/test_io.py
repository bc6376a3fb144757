from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from snuh import io
from snuh.errors import InputError
from snuh.io import (
    atomic_write,
    complete_folder,
    load_arrays,
    read_json,
    replace_folder,
    save_arrays,
    sha256,
    write_json,
)
from tests.worlds import files_limited_to


def write_model(folder: Path, *, note: str = "new") -> None:
    write_json(folder / "model.json", {"format": "snuh-model", "note": note})


def note_in(folder: Path) -> str:
    return str(read_json(complete_folder(folder) / "model.json")["note"])


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_json_comes_back_with_numpy_values_as_plain_ones(tmp_path: Path) -> None:
    value = {
        "text": "größe",
        "count": np.int64(3),
        "score": np.float32(0.5),
        "rows": np.arange(2),
        "pair": (1, 2),
    }
    write_json(tmp_path / "x.json", value)
    assert read_json(tmp_path / "x.json") == {
        "text": "größe",
        "count": 3,
        "score": 0.5,
        "rows": [0, 1],
        "pair": [1, 2],
    }


def test_nan_and_infinity_become_null(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"score": float("nan"), "list": [np.float64("inf")]})
    assert read_json(tmp_path / "x.json") == {"score": None, "list": [None]}


@pytest.mark.parametrize("content", [b"", b'{"a": ', b"\xff\xfe", b'{"a": NaN}', b"[" * 100_000])
def test_invalid_json_is_refused_with_the_file_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.json is not valid JSON"):
        read_json(tmp_path / "x.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for read in (read_json, load_arrays):
        with pytest.raises(InputError, match=r"cannot read .*absent"):
            read(tmp_path / "absent")


def test_arrays_come_back_even_from_transposed_views(tmp_path: Path) -> None:
    arrays = {"w": np.arange(6, dtype=np.float32).reshape(2, 3).T, "b": np.zeros(0, dtype=np.float32)}
    save_arrays(tmp_path / "x.safetensors", arrays)
    again = load_arrays(tmp_path / "x.safetensors")
    assert set(again) == {"w", "b"}
    np.testing.assert_array_equal(again["w"], arrays["w"])


@pytest.mark.parametrize("content", [b"", b"12345678", b"\xff" * 64, b'\x02\0\0\0\0\0\0\0{"'])
def test_an_invalid_safetensors_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.safetensors is not a valid"):
        load_arrays(tmp_path / "x.safetensors")


def test_the_checksum_is_sha256(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256(tmp_path / "x").startswith("ba7816bf8f01cfea414140de5dae2223b00361a3")


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "new" / "codes.npy"
    with atomic_write(target) as temporary:
        assert temporary.suffix == ".npy"
        temporary.write_text("content")
        assert not target.exists()
    assert target.read_text() == "content"
    assert names_in(target.parent) == ["codes.npy"]


def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "codes.npy"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_write(target) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert names_in(tmp_path) == ["codes.npy"]


def test_writing_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    with atomic_write(tmp_path / "link.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


@pytest.mark.parametrize("target", ["/dev/null", "."])
def test_devices_and_folders_are_not_overwritten_by_a_file(target: str) -> None:
    with pytest.raises(InputError, match="it exists and is not a file"), atomic_write(target):
        pass


def test_a_path_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"), atomic_write(tmp_path / "file" / "x.npy"):
        pass
    with pytest.raises(InputError, match="cannot write"):
        replace_folder(tmp_path / "file" / "model", write_model)


@pytest.mark.parametrize("state", ["absent", "empty", "model"])
def test_a_missing_folder_an_empty_one_or_a_model_is_replaced(tmp_path: Path, state: str) -> None:
    folder = tmp_path / "models" / "m"
    if state != "absent":
        folder.mkdir(parents=True)
    if state == "model":
        write_model(folder, note="old")
        (folder / "vocabulary.json").write_text("{}")
    replace_folder(folder, write_model)
    assert names_in(folder) == ["model.json"]
    assert note_in(folder) == "new"
    assert names_in(folder.parent) == ["m"]


def test_a_folder_that_is_not_a_model_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="is not a snuh model: choose another folder"):
        replace_folder(tmp_path, write_model)
    assert names_in(tmp_path) == ["thesis.txt"]


def test_a_foreign_file_in_a_model_folder_is_not_lost(tmp_path: Path) -> None:
    write_model(tmp_path, note="old")
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"contains 'thesis\.txt' besides the model"):
        replace_folder(tmp_path, write_model)
    assert note_in(tmp_path) == "old"


def test_a_file_is_not_replaced_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("")
    with pytest.raises(InputError, match="it is a file, choose a folder"):
        replace_folder(tmp_path / "m", write_model)


def test_a_writer_that_stops_halfway_leaves_the_old_folder(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    replace_folder(folder, lambda path: write_model(path, note="old"))

    def stop_halfway(path: Path) -> None:
        (path / "encoder.safetensors").write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_folder(folder, stop_halfway)
    assert note_in(folder) == "old"
    assert names_in(tmp_path) == ["m"]


def test_a_full_disk_is_reported_and_leaves_what_was_there(tmp_path: Path) -> None:
    folder, file = tmp_path / "m", tmp_path / "codes.npy"
    replace_folder(folder, lambda path: write_model(path, note="old"))
    file.write_text("old")
    large = {"w": np.zeros(1000, dtype=np.float32)}
    with files_limited_to(1000):
        with pytest.raises(InputError, match=r"cannot write .*/m: File too large"):
            replace_folder(folder, lambda path: save_arrays(path / "encoder.safetensors", large))
        with (
            pytest.raises(InputError, match=r"cannot write .*codes\.npy: File too large"),
            atomic_write(file) as temporary,
        ):
            temporary.write_bytes(bytes(2000))
    assert note_in(folder) == "old"
    assert file.read_text() == "old"
    assert names_in(tmp_path) == ["codes.npy", "m"]


@pytest.mark.parametrize("step", range(1, 5))
def test_a_crash_at_any_step_of_the_swap_leaves_a_complete_folder(tmp_path: Path, step: int) -> None:
    """Kill the process before the given step that touches folders, in a child so that nothing cleans up."""
    folder = tmp_path / "m"
    replace_folder(folder, lambda path: write_model(path, note="old"))
    child = os.fork()
    if child == 0:
        _die_before(step)
        replace_folder(folder, write_model)
        os._exit(0)
    os.waitpid(child, 0)
    assert note_in(folder) in {"old", "new"}
    replace_folder(folder, lambda path: write_model(path, note="newest"))
    assert note_in(folder) == "newest"
    assert not io.previous(folder).exists()


def _die_before(step: int) -> None:
    """Make this process end before its n-th call that renames or removes a folder."""
    calls = 0

    def counted(original):  # type: ignore[no-untyped-def]
        def call(*args, **options):  # type: ignore[no-untyped-def]
            nonlocal calls
            calls += 1
            if calls == step:
                os._exit(1)
            return original(*args, **options)

        return call

    os.rename = counted(os.rename)
    io.shutil.rmtree = counted(io.shutil.rmtree)  # type: ignore[attr-defined]


def test_all_files_of_a_folder_have_the_default_mode(tmp_path: Path) -> None:
    save_arrays(tmp_path / "a.safetensors", {"a": np.zeros(3, dtype=np.float32)})
    (tmp_path / "plain").touch()
    assert (tmp_path / "a.safetensors").stat().st_mode == (tmp_path / "plain").stat().st_mode
