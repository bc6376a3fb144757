from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from snuh.errors import InputError
from snuh.tuning.objective import SearchSpace
from snuh.tuning.study import Study, TrialPruned
from tests.worlds import files_limited_to

SPACE = SearchSpace({"a": (1, 2, 3), "b": (0.1, 0.5, 1.0)}, {"a": 2, "b": 0.5})
FINGERPRINT = {"source": "toy", "sha256": "abc", "bits": 16}


def opened(path: Path, space: SearchSpace = SPACE, **changes: Any) -> Study:
    return Study(path, FINGERPRINT | changes, space, seed=0)


def do(study: Study, score: float | None = None) -> dict[str, Any]:
    """Do a trial; its score is a + b unless given."""
    trial = study.ask()
    assert trial is not None
    value = sum(trial.parameters.values()) if score is None else score
    trial.finish("complete", seconds=1.0, score=value)
    return dict(trial.parameters)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.jsonl"


def test_the_defaults_come_first_and_nothing_is_tried_twice(path: Path) -> None:
    with opened(path) as study:
        tried = [do(study) for _ in range(SPACE.size)]
        assert tried[0] == SPACE.defaults
        assert len({tuple(parameters.values()) for parameters in tried}) == SPACE.size
        assert study.ask() is None
        best = study.best_trial()
    assert best is not None and best.parameters == {"a": 3, "b": 1.0}


def test_the_same_seed_tries_the_same(path: Path, tmp_path: Path) -> None:
    with opened(path) as one, opened(tmp_path / "other.jsonl") as other:
        assert [do(one) for _ in range(8)] == [do(other) for _ in range(8)]


def test_a_study_goes_on_after_a_kill_and_a_cut_line(path: Path) -> None:
    with opened(path) as study:
        do(study)
        assert study.ask() is not None  # never finished: its process was killed
    with path.open("ab") as file:
        file.write(b'{"op_code":5,"worker')
    with opened(path) as study:
        do(study)
        assert len(study.trials()) == 2
    with opened(path) as study:
        assert len(study.trials()) == 2


def test_defaults_that_were_interrupted_come_first_again(path: Path) -> None:
    with opened(path) as study:
        trial = study.ask()
        assert trial is not None
        trial.discard()
        assert study.trials() == []
    with opened(path) as study:
        assert do(study) == SPACE.defaults
        assert do(study) != SPACE.defaults


def test_a_trial_that_falls_behind_is_pruned_and_never_the_best(path: Path) -> None:
    with opened(path) as study:
        for _ in range(6):
            trial = study.ask()
            assert trial is not None
            for epoch in range(1, 25):
                trial.report(epoch / 24, 0.5)
            trial.finish("complete", seconds=1.0, score=0.5)
        trial = study.ask()
        assert trial is not None
        for epoch in range(1, 8):  # the start does not count, however bad or good
            trial.report(epoch / 24, 0.9)
        with pytest.raises(TrialPruned):
            trial.report(8 / 24, 0.1)
        trial.finish("pruned", seconds=1.0)
        assert [trial.state for trial in study.trials()] == ["complete"] * 6 + ["pruned"]
        best = study.best_trial()
    assert best is not None and best.parameters == SPACE.defaults


def test_failed_trials_are_never_the_best(path: Path) -> None:
    with opened(path) as study:
        trial = study.ask()
        assert trial is not None
        trial.finish("failed", seconds=1.0, error="dead")
        assert study.best_trial() is None
        do(study, score=-1.0)
        best, defaults = study.best_trial(), study.default_trial()
    assert best is not None and best.score == -1.0
    assert defaults is not None and (defaults.score, defaults.error) == (None, "dead")


def test_a_study_about_something_else_is_refused_and_left_as_it_was(path: Path) -> None:
    with opened(path) as study:
        do(study)
    before = path.read_bytes()
    with pytest.raises(InputError, match="has trials on toy with bits 16, now it is 32"):
        opened(path, bits=32)
    with pytest.raises(InputError, match='with sha256 "abc", now it is "def"'):
        opened(path, sha256="def")
    assert path.read_bytes() == before
    with opened(path, source="renamed") as study:
        assert len(study.trials()) == 1


@pytest.mark.parametrize("content", [b'{"text": "a document"}\n', b"words", b"[1]\n", b"\xff\n"])
def test_some_other_file_is_refused_and_left_as_it_was(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match='is not a study of "snuh tune"'):
        opened(path)
    assert path.read_bytes() == content


def test_a_damaged_study_is_refused(path: Path) -> None:
    with opened(path) as study:
        do(study)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"{]\n", *lines[1:]]))
    with pytest.raises(InputError, match="is damaged"):
        opened(path)


def test_a_full_disk_is_one_clear_line(path: Path) -> None:
    with opened(path) as study:
        do(study)
        with files_limited_to(path.stat().st_size + 10), pytest.raises(InputError, match="cannot write"):
            do(study)
    with opened(path) as study:
        do(study)
        assert len(study.trials()) == 2


def test_two_at_a_time_are_refused(path: Path) -> None:
    with opened(path), pytest.raises(InputError, match="in use by another process"):
        opened(path)
