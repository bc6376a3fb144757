"""Requests generated from the OpenAPI schema never cause a server error."""

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
    """Send generated lines unchanged."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


@pytest.mark.slow
def test_generated_requests_get_documented_responses(folder: Path) -> None:
    with serving(folder) as server:
        schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        tried = 0

        def check(case: schemathesis.Case) -> None:
            nonlocal tried
            if "name" in case.path_parameters and tried % 2:
                case.path_parameters["name"] = "c"  # an existing collection, to reach the route
            tried += 1
            response = case.call(base_url=server.url, timeout=60)
            case.validate_response(
                response, checks=[not_a_server_error, content_type_conformance, response_schema_conformance]
            )
            if response.status_code >= 400:
                error = response.json()
                assert error["error"] and error["kind"]

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
