from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from snuh.corpus import MatrixSource, open_source
from snuh.errors import InputError

SIZES = {"train": 6, "cv": 3, "test": 4}


def world() -> dict[str, Any]:
    """Document i has feature i mod 5 at value i + 1, and the labels i mod 3 and 2."""
    content: dict[str, Any] = {}
    for key, size in SIZES.items():
        features = np.zeros((size, 5))
        labels = np.zeros((size, 3), dtype=np.uint8)
        for row in range(size):
            features[row, row % 5] = row + 1
            labels[row, [row % 3, 2]] = 1
        content[key] = sparse.csc_matrix(features)
        content["gnd_" + key] = labels
    return content


def save(tmp_path: Path, content: dict[str, Any]) -> Path:
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, content)
    return path


def read(tmp_path: Path, content: dict[str, Any]) -> MatrixSource:
    source = open_source(save(tmp_path, content))
    assert isinstance(source, MatrixSource)
    return source


def check_world(source: MatrixSource) -> None:
    assert list(source.splits) == ["train", "val", "test"]
    assert source.features == 5
    val = source.splits["val"]
    assert isinstance(val.X, sparse.csr_matrix)
    assert val.X.dtype == np.float32
    assert val.X.toarray().tolist() == [[1, 0, 0, 0, 0], [0, 2, 0, 0, 0], [0, 0, 3, 0, 0]]
    assert val.ids == ["val-1", "val-2", "val-3"]
    assert val.labels == [("0", "2"), ("1", "2"), ("2",)]


def test_the_papers_layout_is_read(tmp_path: Path) -> None:
    check_world(read(tmp_path, world()))


def test_dense_matrices_and_sparse_labels_are_read(tmp_path: Path) -> None:
    content = {
        key: sparse.csc_matrix(value, dtype=float) if key.startswith("gnd") else value.toarray()
        for key, value in world().items()
    }
    check_world(read(tmp_path, content))


@pytest.mark.parametrize("turned", ["features", "labels", "both"])
def test_documents_in_columns_are_transposed(tmp_path: Path, turned: str) -> None:
    content = {
        key: value.T if turned == "both" or key.startswith("gnd") == (turned == "labels") else value
        for key, value in world().items()
    }
    check_world(read(tmp_path, content))


@pytest.mark.parametrize("as_row", [False, True])
def test_one_class_number_per_document_is_its_label(tmp_path: Path, as_row: bool) -> None:
    content = world()
    for key, size in SIZES.items():
        classes = np.arange(size)[:, None] + 7.0
        content["gnd_" + key] = classes.T if as_row else classes
    assert read(tmp_path, content).splits["val"].labels == [("7",), ("8",), ("9",)]


def test_the_validation_split_may_be_absent(tmp_path: Path) -> None:
    content = world()
    del content["cv"], content["gnd_cv"]
    source = read(tmp_path, content)
    assert list(source.splits) == ["train", "test"]
    assert source.splits["test"].ids[0] == "test-1"


@pytest.mark.parametrize("key", ["train", "gnd_train", "cv", "gnd_cv", "test", "gnd_test"])
def test_a_split_without_features_or_labels_is_refused(tmp_path: Path, key: str) -> None:
    content = world()
    del content[key]
    with pytest.raises(InputError, match=rf"a\.mat: there is no {key} in it"):
        read(tmp_path, content)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_a_value_that_is_not_finite_is_refused_with_its_row(tmp_path: Path, value: float) -> None:
    content = world()
    content["cv"].data[1] = value
    with pytest.raises(InputError, match=r"a\.mat: cv row 2 holds NaN or infinity"):
        read(tmp_path, content)


def test_missing_keys_are_reported_with_the_present_ones(tmp_path: Path) -> None:
    content = world()
    content["valid"] = content.pop("cv")
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    assert str(caught.value).startswith(
        "a.mat: there is no cv in it; expected the keys train, gnd_train, cv,"
    )
    assert "valid" in str(caught.value)


def test_shapes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    content = world()
    content["gnd_cv"] = content["gnd_cv"][:2]
    with pytest.raises(InputError, match=r"the shapes do not match .*cv 3 x 5 with labels 2 x 3"):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("gnd_test", np.full((4, 3), 2), "gnd_test must hold 0 and 1"),
        ("train", np.array(["some", "words"]), "train must be a matrix of numbers"),
        ("train", np.full((6, 5), 1j), "train must be a matrix of numbers"),
        ("train", np.zeros((6, 5, 2)), "train must be a matrix of numbers"),
    ],
)
def test_wrong_content_is_refused(tmp_path: Path, key: str, value: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read(tmp_path, {**world(), key: value})


def test_a_split_without_rows_is_refused(tmp_path: Path) -> None:
    content = world()
    content["cv"], content["gnd_cv"] = content["cv"][:0], content["gnd_cv"][:0]
    with pytest.raises(InputError, match="cv has no rows"):
        read(tmp_path, content)


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    path = save(tmp_path, world())
    whole = path.read_bytes()
    for size in range(0, len(whole) - 8, 97):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError) as caught:
            open_source(path)
        assert "\n" not in str(caught.value)


def test_indices_outside_the_matrix_are_refused(tmp_path: Path) -> None:
    content = world()
    content["train"].indices[0] = 1_000_000
    with pytest.raises(InputError, match="not a MATLAB file, or a damaged one"):
        read(tmp_path, content)


def test_the_newer_matlab_format_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400))
    with pytest.raises(InputError, match=r"saved as MATLAB 7\.3, which is not read: save it with -v7"):
        open_source(path)
