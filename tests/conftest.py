"""What holds for all tests: how Hypothesis draws its examples, and which files come first.

It draws the same ones in every run, however slow the machine is; `HYPOTHESIS_PROFILE=search` draws new ones
each time, to look for what the tests have not met yet.
"""

from __future__ import annotations

import os

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
    "tests/experiments/report/",
    "tests/server/",
    "tests/test_demo",
)

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", PATIENT, derandomize=True)
settings.register_profile("search", PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, and leave the order as it is otherwise."""
    items.sort(key=_rank)
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")


def _rank(item: pytest.Item) -> int:
    return next((rank for rank, start in enumerate(FIRST) if item.nodeid.startswith(start)), len(FIRST))
