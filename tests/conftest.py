"""What holds for all tests: how Hypothesis draws examples, which files come first, and which stay together.

It draws the same ones in every run, however slow the machine is; `HYPOTHESIS_PROFILE=search` draws new ones
each time, to look for what the tests have not met yet.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Those that take longest, so that no worker is left with one of them when the others are done.
FIRST = (
    "tests/spark/",
    "tests/browser/",
    "tests/collection/test_milvus",
    "tests/server/",
    "tests/collection/",
)

# Those that share a cluster or a browser: one worker runs them all. Other files may go to any worker.
TOGETHER = ("tests/spark/", "tests/browser/")

# Those that start servers, browsers, clusters or one command after another: "make quick" leaves them out.
SLOW = (
    "tests/spark/",
    "tests/browser/",
    "tests/cli/test_bad_input",
    "tests/cli/test_collection_",
    "tests/cli/test_display",
    "tests/cli/test_manners",
    "tests/cli/test_processes",
    "tests/cli/test_report",
    "tests/cli/test_reproduce",
    "tests/cli/test_tune",
    "tests/collection/test_milvus_contract",
    "tests/collection/test_postgres",
    "tests/examples/",
    "tests/experiments/report/",
    "tests/server/",
    "tests/test_demo",
)

# Those that take long, and those whose promise a shorter test shows as well: "make long" runs them.
LONG = (
    "tests/cli/test_processes.py::test_a_second_ctrl_c_does_not_lose_the_model[0.02]",
    "tests/cli/test_tune.py::test_ctrl_c_in_the_first_trial_writes_no_settings",
    "tests/collection/test_milvus_contract.py::test_a_copy_there_and_back_is_the_same",
    "tests/collection/test_milvus_contract.py::test_duplicates_are_found",
    "tests/collection/test_milvus_contract.py::test_each_document_is_there_once_after_the_server_was_killed",
    "tests/graph/test_approximate.py::test_nearly_all_exact_neighbors_are_found_with_their_similarity[True]",
    "tests/server/test_costs.py::test_no_request_takes_much_memory_or_time[a batch of whole hits]",
    "tests/server/test_costs.py::test_no_request_takes_much_memory_or_time[explained whole hits]",
    "tests/server/test_costs.py::test_no_request_takes_much_memory_or_time[hits by words]",
    "tests/spark/test_collection_sink.py::test_documents_are_added_once[_milvus]",
    "tests/spark/test_encoding.py::test_the_slower_of_two_equal_jobs_returns_what_the_faster_wrote",
    "tests/browser/test_appearance.py::test_every_view_fits_and_passes_axe",
    "tests/collection/test_milvus_contract.py::test_an_open_collection_goes_on_after_its_server_was_killed",
    "tests/collection/test_milvus_contract.py::test_it_answers_like_a_dictionary",
    "tests/collection/test_milvus_contract.py::test_the_index_of_milvus_finds_exactly_what_a_scan_does",
    "tests/spark/test_commands.py::test_the_commands_run",
)

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", PATIENT, derandomize=True)
settings.register_profile("search", PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:  # log is of a type of xdist's own
    """Give the tests of a file to one worker."""
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class ByFile(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return next((start for start in TOGETHER if nodeid.startswith(start)), nodeid.partition("::")[0])

    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, and leave the order as it is otherwise."""
    items.sort(key=_rank)
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")
        if item.nodeid.startswith(LONG):
            item.add_marker("long")


def _rank(item: pytest.Item) -> int:
    return next((rank for rank, start in enumerate(FIRST) if item.nodeid.startswith(start)), len(FIRST))
