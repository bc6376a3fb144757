"""The OpenAPI schema is valid, clients can be generated from it, and no request from it fails the server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from openapi_spec_validator import OpenAPIV31SpecValidator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from tests.cli.running import environment
from tests.server.serving import Server, serving

EXAMPLES = 8


@schemathesis.serializer("application/x-ndjson")
def lines(context: object, value: object) -> bytes:
    """Send generated lines unchanged."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


def test_the_schema_is_valid_and_complete(shared: Server) -> None:
    schema = shared.get("/openapi.json").json()
    OpenAPIV31SpecValidator(schema).validate()
    operations = [operation for path in schema["paths"].values() for operation in path.values()]
    names = {operation["operationId"] for operation in operations}
    assert len(names) == len(operations)
    assert {"search", "add_documents", "get_document", "update_document", "list_collections"} <= names
    for operation in operations:
        assert "422" not in operation["responses"]  # which FastAPI would declare, and this server never sends
        errors = [response for status, response in operation["responses"].items() if status[0] in "45d"]
        references = {response["content"]["application/json"]["schema"]["$ref"] for response in errors}
        assert references == {"#/components/schemas/ErrorResponse"}
    assert schema["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    paths = schema["paths"]
    assert paths["/v1/collections"]["get"]["security"] == [{"token": []}]
    assert "security" not in paths["/health"]["get"]


# Types that the generator does not know are bytes to it; it need not format what it writes.
BYTES = dict.fromkeys(("application/zip", "application/x-ndjson", "text/plain"), "application/octet-stream")
GENERATOR = {"content_type_overrides": BYTES, "post_hooks": []}

SCRIPT = """
import sys
from snuh_client import Client
from snuh_client.api.documents import add_documents, delete_document, get_document, list_documents
from snuh_client.api.search import search
from snuh_client.models import AddRequest, NewDocument, SearchRequest

client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)
new = NewDocument.from_dict({"id": "generated", "text": "rope rope", "year": 2025})
added = add_documents.sync("c", client=client, body=AddRequest(documents=[new]))
assert added.inserted == 1, added
found = search.sync("c", client=client, body=SearchRequest(text="rope", k=50, explain=True))
assert "generated" in [hit.id for hit in found.hits] and found.took_ms > 0
assert get_document.sync("c", "generated", client=client).metadata.additional_properties == {"year": 2025}
assert len(list_documents.sync("c", client=client, limit=5).documents) == 5
assert delete_document.sync("c", "generated", client=client).deleted == 1
assert "no document" in get_document.sync("c", "generated", client=client).error
"""


@pytest.mark.slow
def test_a_generated_client_adds_searches_and_deletes(folder: Path, tmp_path: Path) -> None:
    with serving(folder) as server:
        schema = tmp_path / "openapi.json"
        schema.write_bytes(server.get("/openapi.json").content)
        command = [sys.executable, "-m", "openapi_python_client", "generate", "--path", str(schema)]
        config = tmp_path / "config.json"
        config.write_text(json.dumps(GENERATOR), encoding="utf-8")
        options = ["--config", str(config), "--output-path", str(tmp_path / "snuh_client")]
        made = subprocess.run(
            [*command, *options, "--meta", "none", "--fail-on-warning"], capture_output=True, text=True
        )
        assert made.returncode == 0, made.stdout + made.stderr
        variables = environment() | {"PYTHONPATH": str(tmp_path)}
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT, server.url], capture_output=True, text=True, env=variables
        )
        assert ran.returncode == 0, ran.stderr


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
            checks = [content_type_conformance, response_schema_conformance]
            if response.status_code != 503:  # documented: a map that is not computed yet, a full queue
                checks.append(not_a_server_error)
            case.validate_response(response, checks=checks)
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
