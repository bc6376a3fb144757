"""A collection in a folder answers like a dictionary, also when its file of codes is old, or gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import rule, run_state_machine_as_test

from tests.collection.like_dictionary import CollectionLikeDictionary
from tests.collection.worlds import temporary_folder


class FolderLikeDictionary(CollectionLikeDictionary):
    def fresh(self) -> Path:
        self.root = temporary_folder()
        self.folder, self.copy = self.root / "c", self.root / "older codes"
        return self.folder

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.root)

    @rule()
    def keep_a_copy_of_the_code_file(self) -> None:
        if (self.folder / "codes.bin").exists():
            shutil.copyfile(self.folder / "codes.bin", self.copy)

    @rule()
    def put_the_older_code_file_back_and_reopen(self) -> None:
        if self.copy.exists():
            self.copy.replace(self.folder / "codes.bin")
            self.reopen()

    @rule()
    def lose_the_code_file_and_reopen(self) -> None:
        (self.folder / "codes.bin").unlink(missing_ok=True)
        self.reopen()


@pytest.mark.parametrize(("examples", "steps"), [(15, 30), pytest.param(200, 50, marks=pytest.mark.long)])
def test_it_answers_like_a_dictionary(examples: int, steps: int) -> None:
    quiet = settings(deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        FolderLikeDictionary, settings=settings(quiet, max_examples=examples, stateful_step_count=steps)
    )
