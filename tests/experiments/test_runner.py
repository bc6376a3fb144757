"""One run: its facts, the two protocols, and what is left when it fails or is stopped."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

import snuh
from snuh.corpus import MatrixSplit
from snuh.errors import InputError
from snuh.experiments.corpora import Corpora, Corpus, locate, read_corpus
from snuh.experiments.runner import StageTimer, check_runs, commit, execute_run
from snuh.experiments.scores import LabelScore
from snuh.features import TfidfFeatures
from snuh.methods import make
from snuh.metrics import precision_at_k
from snuh.progress import Progress
from snuh.training.gradient import DivergedError
from tests.experiments.worlds import TINY, tiny_run, write_corpus


def test_a_row_has_the_figures_that_the_codes_reach(toy: Corpus) -> None:
    row = execute_run(tiny_run(), toy, commit="abc")
    estimator = make("snuh", bits=16, seed=0, parameters=TINY).fit(
        toy.splits["train"].X, X_val=toy.splits["val"].X
    )
    codes = estimator.transform(toy.splits["train"].X)
    queries = estimator.transform(toy.splits["test"].X)
    precision = precision_at_k(queries, toy.splits["test"].labels, codes, toy.splits["train"].labels)
    assert row["precision"]["100"] == pytest.approx(precision, abs=1e-5)
    assert row["score"] == estimator.training_["score"]
    assert row["distinct_codes"] == len(np.unique(codes, axis=0))
    ones = np.unpackbits(codes, axis=1).mean(axis=0)
    assert row["ones_fraction"] == pytest.approx([ones.min(), ones.max()], abs=1e-3)
    bits, searching = (np.unpackbits(some, axis=1).astype(int) for some in (codes, queries))
    varying = bits[:, bits.std(axis=0) > 0]
    correlations = np.abs(np.corrcoef(varying.T))[np.triu_indices(varying.shape[1], 1)]
    assert row["bit_correlation"] == pytest.approx(correlations.mean(), abs=1e-4)
    near = (searching[:, None, :] != bits[None, :, :]).sum(axis=2) <= 2
    topics = {split: np.array([one[0] for one in toy.splits[split].labels]) for split in ("train", "test")}
    same = topics["test"][:, None] == topics["train"][None, :]
    within = (near & same).sum(axis=1) / np.maximum(near.sum(axis=1), 1)
    assert row["precision_within_2"] == pytest.approx(within.mean(), abs=1e-5)
    assert row["random_precision"] == pytest.approx(same.mean(), abs=1e-5)
    assert (row["epochs"], row["stopped"], row["commit"], row["error"]) == (2, "epochs", "abc", None)
    assert row["all_parameters"]["trees"] == 2 and row["all_parameters"]["tau"] == 0.1
    assert row["all_features"]["max_terms"] == 30_000
    assert row["peak_megabytes"] > 50 and row["seconds"] > 0


def test_label_score_is_the_precision_of_validation_documents(toy: Corpus) -> None:
    train, val = toy.splits["train"], toy.splits["val"]
    estimator = make("snuh", bits=8, seed=0, parameters=TINY).fit(train.X)
    bits = [np.unpackbits(estimator.transform(split.X), axis=1) for split in (val, train)]
    precisions = []
    for code, labels in zip(bits[0], val.labels, strict=True):
        distances = (code != bits[1]).sum(axis=1)
        cut = np.sort(distances)[99]
        closer, tied = distances < cut, distances == cut
        probability = (
            closer + tied * (100 - closer.sum()) / tied.sum()
        )  # of each document to be in the top 100
        relevant = np.array([bool(set(labels) & set(others)) for others in train.labels])
        precisions.append((probability * relevant).sum() / 100)
    score = LabelScore(train, val)(estimator.encoder_)
    assert score.value == pytest.approx(np.mean(precisions))
    assert score.alive


def test_select_labels_keeps_the_epoch_with_the_best_labels(toy: Corpus) -> None:
    # Validation documents with the labels of the next topic: the better the codes, the worse their labels.
    train, val = toy.splits["train"], toy.splits["val"]
    shifted = MatrixSplit(val.X, val.ids, val.labels[1:] + val.labels[:1])
    contrary = replace(toy, splits={**toy.splits, "val": shifted})
    parameters = TINY | {"epochs": 6, "batch_size": 128}  # in few steps codes still become better
    by_labels = execute_run(tiny_run(select="labels", parameters=parameters), contrary, commit=None)
    by_score = execute_run(tiny_run(parameters=parameters), contrary, commit=None)
    assert by_labels["best_epoch"] < by_score["best_epoch"]
    assert by_labels["precision"]["100"] < by_score["precision"]["100"]
    score = LabelScore(train, shifted)
    estimator = make("snuh", bits=16, seed=0, parameters=parameters).fit(train.X, X_val=val.X, score=score)
    assert by_labels["score"] == max(report.score for report in estimator.history_)
    assert by_labels["score"] == score(estimator.encoder_).value


def test_a_fit_that_fails_leaves_a_row_with_its_error(toy: Corpus) -> None:
    row = execute_run(tiny_run(parameters=TINY | {"neighbors": 999}), toy, commit=None)
    assert row["error"].startswith("expected more documents than neighbors (999)")
    assert row["precision"] is None and row["all_parameters"]["neighbors"] == 999
    assert row.keys() == execute_run(tiny_run(), toy, commit=None).keys()


def test_a_training_that_diverges_leaves_a_row_with_its_error(toy: Corpus) -> None:
    row = execute_run(tiny_run(parameters=TINY | {"learning_rate": 1e30}), toy, commit=None)
    assert "finite" in row["error"]


def test_a_training_that_diverges_after_a_good_epoch_is_no_result(toy: Corpus) -> None:
    def spoil(progress: Progress) -> None:
        if progress.epoch is not None:
            raise DivergedError("the loss was not finite in epoch 2")

    row = execute_run(tiny_run(), toy, commit=None, on_progress=spoil)
    assert (row["error"], row["precision"]) == ("the loss did not stay finite", None)


def test_what_has_no_texts_has_no_case_study(data: Path) -> None:
    rows = sparse.csr_matrix(np.eye(4))
    arrays = {key: rows for key in ("train", "cv", "test")} | {
        f"gnd_{key}": np.eye(4) for key in ("train", "cv", "test")
    }
    savemat(data / "toy.tfidf.mat", arrays)
    with pytest.raises(InputError, match="holds feature rows and no texts"):
        check_runs([tiny_run(corpus="toy.tfidf", artifact="examples")])


def test_what_fails_after_the_fit_leaves_a_row_with_its_error(data: Path, toy: Corpus) -> None:
    (data / "toy.jsonl.gz").unlink()  # the titles are read from it
    row = execute_run(tiny_run(artifact="examples"), toy, commit=None)
    assert "there is no file, folder or corpus" in row["error"] and row["seconds"] > 0


def test_a_training_that_was_interrupted_is_no_result(toy: Corpus) -> None:
    def stop(progress: Progress) -> None:
        if progress.epoch is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute_run(tiny_run(), toy, commit=None, on_progress=stop)


def test_the_checksum_follows_the_documents_and_not_the_features(data: Path) -> None:
    sha256 = read_corpus("toy", {}).sha256
    assert read_corpus("toy", {"max_terms": 20}).sha256 == sha256
    write_corpus(data / "toy.jsonl.gz", docs=200)
    assert read_corpus("toy", {}).sha256 == sha256
    write_corpus(data / "toy.jsonl.gz", docs=200, seed=1)
    assert read_corpus("toy", {}).sha256 != sha256


def test_vocabulary_and_idf_are_those_of_the_training_documents(data: Path) -> None:
    texts = {"train": ["apple pie", "apple tart"], "val": ["plum pie", "plum cake"], "test": ["plum jam"]}
    lines = [
        {"id": f"{split}{n}", "text": text, "labels": ["x"], "split": split}
        for split, some in texts.items()
        for n, text in enumerate(some)
    ]
    (data / "fruit.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    corpus = read_corpus("fruit", {"min_df": 1, "max_df": 1.0})
    features = TfidfFeatures(min_df=1, max_df=1.0).fit(texts["train"])
    for split, some in texts.items():
        assert (features.transform(some) != corpus.splits[split].X).nnz == 0
    assert corpus.splits["test"].X.nnz == 0


def test_a_corpus_is_read_once_for_the_same_features(data: Path) -> None:
    corpora = Corpora()
    assert corpora.get("toy", {}) is corpora.get("toy", {})
    assert corpora.get("toy", {"max_terms": 20}).splits["train"].X.shape[1] == 20


def test_rows_of_a_mat_file_are_taken_as_they_are(data: Path) -> None:
    rng = np.random.default_rng(0)
    arrays: dict[str, object] = {}
    for key in ("train", "cv", "test"):
        arrays[key] = sparse.csr_matrix(rng.random((120, 20)) * (rng.random((120, 20)) < 0.3))
        arrays["gnd_" + key] = np.eye(3)[np.arange(120) % 3]
    savemat(data / "toy.tfidf.mat", arrays)
    corpus = read_corpus("toy.tfidf", {})
    assert corpus.all_features is None
    row = execute_run(tiny_run(corpus="toy.tfidf"), corpus, commit=None)
    assert row["precision"]["100"] == pytest.approx(1 / 3, abs=0.1)  # rows without topics: chance
    arrays["gnd_cv"] = np.eye(3)[np.arange(120) // 40]
    savemat(data / "toy.tfidf.mat", arrays)
    assert read_corpus("toy.tfidf", {}).sha256 != corpus.sha256
    with pytest.raises(
        InputError, match=r"features.max_terms is for texts, toy\.tfidf\.mat holds feature rows"
    ):
        locate("toy.tfidf", {"max_terms": 20})


def test_a_run_on_a_part_trains_on_the_first_documents(toy: Corpus) -> None:
    row = execute_run(tiny_run(method="itq", parameters={}, documents=50), toy, commit=None)
    assert (row["train_documents"], row["documents"], row["candidate_scores"]) == (50, 50, {})
    assert toy.first(50).splits["train"].ids == toy.splits["train"].ids[:50]
    assert toy.first(100_000) is toy.first(None) is toy


def test_runs_that_differ_in_what_they_look_at_are_different_runs() -> None:
    assert len({tiny_run().key, tiny_run(artifact="map").key, tiny_run(documents=9).key}) == 3


def test_times_of_stages_and_epochs_are_kept(toy: Corpus) -> None:
    row = execute_run(tiny_run(), toy, commit=None)
    assert {"similarity", "graph", "training"} <= row["stage_seconds"].keys()
    assert 0 < row["epoch_seconds"] < row["stage_seconds"]["training"]
    assert sum(row["stage_seconds"].values()) <= row["seconds"] + 0.01


def test_the_clock_passes_reports_on() -> None:
    seen: list[Progress] = []
    clock = StageTimer(seen.append)
    for done in (0.0, 1.0):
        clock(Progress("graph", done))
    assert [progress.done for progress in seen] == [0.0, 1.0]
    assert clock.seconds["graph"] > 0


OPTIONS = [
    option
    for value in ("user.name=someone", "user.email=someone@example.org", "commit.gpgsign=false")
    for option in ("-c", value)
]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one commit, which the package seems to run from."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:  # as in a hook
        monkeypatch.delenv(name)
    for name in ("src/snuh/__init__.py", "results/runs.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("as committed\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run(["git", *OPTIONS, *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(snuh, "__file__", str(tmp_path / "src/snuh/__init__.py"))
    return tmp_path


def test_a_clean_checkout_is_named_by_its_commit(checkout: Path) -> None:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True)
    assert commit() == done.stdout.strip()


def test_changed_sources_are_told_and_added_results_are_not(checkout: Path) -> None:
    clean = commit()
    with (checkout / "results/runs.jsonl").open("a") as file:
        file.write("a run\n")
    assert commit() == clean
    (checkout / "src/snuh/__init__.py").write_text("changed\n")
    assert commit() == f"{clean}-dirty"


def test_outside_of_a_checkout_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snuh, "__file__", str(tmp_path / "src/snuh/__init__.py"))
    assert commit() is None
