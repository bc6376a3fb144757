"""Requests made up from the API's own schema never meet a bug."""

from __future__ import annotations

from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from tests.server.serving import serving

EXAMPLES = 12


@schemathesis.serializer("application/x-ndjson")
def lines(context: object, value: object) -> bytes:
    """Send made-up lines as they are."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


@pytest.mark.slow
def test_whatever_the_schema_allows_is_answered_or_refused(folder: Path) -> None:
    with serving(folder) as server:
        schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        tried = 0

        def check(case: schemathesis.Case) -> None:
            nonlocal tried
            if "name" in case.path_parameters and tried % 2:
                case.path_parameters["name"] = "c"  # a name that is there, to get further
            tried += 1
            response = case.call(base_url=server.url, timeout=60)
            case.validate_response(
                response, checks=[not_a_server_error, content_type_conformance, response_schema_conformance]
            )
            if response.status_code >= 400:
                told = response.json()
                assert told["error"] and told["kind"]

        for operation in schema.get_all_operations():
            strategy = operation.ok().as_strategy()  # type: ignore[attr-defined]
            settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            )(_given(strategy, check))()
        assert tried > 100
        assert server.process.poll() is None


def _given(strategy: object, check: object) -> object:
    from hypothesis import given

    @given(case=strategy)  # type: ignore[arg-type]
    def run(case: schemathesis.Case) -> None:
        check(case)  # type: ignore[operator]

    return run
