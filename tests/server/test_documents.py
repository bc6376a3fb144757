"""Documents over HTTP: a request is stored completely or not at all, before its response."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from snuh.collection import Collection
from snuh.corpus import Document
from snuh.errors import InputError, UnknownDocumentError
from tests.collection.worlds import document
from tests.server.conftest import fill
from tests.server.serving import NDJSON, Server, serving

PATH = "/v1/collections/c/documents"
SCRIPT = "<script>alert('ship')</script> fog &amp; \x00 \u2028"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = fill(tmp_path_factory.mktemp("written") / "c")
    with serving(folder) as server:
        server.root = folder.parent
        yield server


def stored_documents(server: Server) -> dict[str, Document]:
    with Collection(server.root / "c") as collection:
        return {document.id: document for document in collection.documents()}


def test_documents_are_added_replaced_and_deleted(written: Server) -> None:
    before = len(stored_documents(written))
    new = {
        "id": "new-1",
        "text": "ship ship",
        "labels": ["a"],
        "split": "val",
        "year": 2024,
        "deep": {"x": [1]},
    }
    result = written.post(PATH, {"documents": [new, {"id": "new-2", "text": "zzz"}]}).json()
    assert result == {"inserted": 2, "replaced": 0, "without_known_words": 1, "documents": before + 2}
    expected = Document("new-1", "ship ship", ("a",), "val", {"year": 2024, "deep": {"x": [1]}})
    assert stored_documents(written)["new-1"] == expected
    result = written.post(PATH, {"documents": [{"id": "new-1", "text": "fog"}]}).json()
    assert (result["inserted"], result["replaced"]) == (0, 1)
    documents = written.get(PATH, params={"id": ["new-2", "new-1"]}).json()["documents"]
    assert [document["text"] for document in documents] == ["zzz", "fog"]
    result = written.post(f"{PATH}/delete", {"ids": ["new-1", "new-2", "new-1"]}).json()
    assert result == {"deleted": 2, "documents": before}
    assert len(stored_documents(written)) == before


def test_a_document_that_was_read_can_be_sent_back(written: Server) -> None:
    new = {"id": "again", "text": "ship", "labels": ["a"], "metadata": {"year": 2024, "deep": {"x": [1]}}}
    written.post(PATH, {"documents": [new]})
    (read,) = written.get(PATH, params={"id": ["again"]}).json()["documents"]
    assert read["metadata"] == {"year": 2024, "deep": {"x": [1]}}
    assert written.post(PATH, {"documents": [read]}).json()["replaced"] == 1
    assert written.get(PATH, params={"id": ["again"]}).json()["documents"] == [read]
    both = written.post(PATH, {"documents": [{**read, "year": 1}]})
    assert both.status_code == 400 and 'the field "year" is given twice' in both.json()["error"]
    deep: object = 1
    for _ in range(100):
        deep = [deep]
    refused = written.post(PATH, {"documents": [{"id": "deep", "text": "ship", "x": deep}]})
    assert refused.status_code == 400 and "nested more than 32 levels deep" in refused.json()["error"]


def test_one_document_is_put_updated_and_deleted_by_its_id(written: Server) -> None:
    for doc_id in ("one", "a/b ü?#", "<x>"):
        url = f"{written.url}{PATH}/{quote(doc_id, safe='')}"
        new = {"text": "ship", "labels": ["a"], "year": 2024, "desk": {"city": "Bern"}}
        assert httpx.put(url, json=new).json()["inserted"] == 1
        assert httpx.put(url, json={**new, "id": doc_id}).json()["replaced"] == 1
        assert httpx.put(url, json={**new, "id": "other"}).status_code == 400
        expected = {"id": doc_id, "text": "ship", "labels": ["a"], "split": None}
        expected["metadata"] = {"year": 2024, "desk": {"city": "Bern"}}
        assert httpx.get(url).json() == expected
        changes = {"year": None, "desk": {"city": "Basel"}, "split": "val", "metadata": {"new": 1}}
        changed = {**expected, "split": "val", "metadata": {"desk": {"city": "Basel"}, "new": 1}}
        assert httpx.patch(url, json=changes).json() == httpx.get(url).json() == changed
        assert httpx.patch(url, json={"text": "fog", "labels": None}).json()["labels"] == []
        hits = written.post("/v1/collections/c/search", {"text": "fog", "k": 1_000}).json()["hits"]
        assert next(hit["distance"] for hit in hits if hit["id"] == doc_id) == 0  # encoded again
        for wrong in ({"text": None}, {"text": 1}, {"id": "other"}, {"split": "x"}, []):
            assert httpx.patch(url, json=wrong).status_code == 400
        assert httpx.delete(url).json()["deleted"] == 1
        for send in (httpx.get, httpx.delete):
            assert send(url).status_code == 404
        assert httpx.patch(url, json={"year": 1}).status_code == 404


def test_documents_are_listed_in_pages(written: Server) -> None:
    ids, after = [], {}
    while True:
        page = written.get(PATH, params={"limit": 7, **after}).json()
        ids += [document["id"] for document in page["documents"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert ids == list(stored_documents(written))
    page = written.get(PATH, params={"limit": 3, "where": "year = 2001"}).json()
    assert [document["id"] for document in page["documents"]] == ["d1", "d4", "d7"]
    with written.client() as client:
        assert [document.id for document in client.page(limit=2, after=page["next"]).documents] == [
            "d8",
            "d9",
        ]
        assert client.update("d8", {"note": "x"}).metadata["note"] == "x"
        assert "note" not in client.update("d8", {"note": None}).metadata


def test_nothing_is_deleted_if_one_id_is_unknown(written: Server) -> None:
    error = written.post(f"{PATH}/delete", {"ids": ["d1", "d99"]})
    assert error.status_code == 404 and "no document 'd99'" in error.json()["error"]
    assert str(written.root) not in error.text
    assert "d1" in stored_documents(written)


def test_documents_are_deleted_by_filter(written: Server) -> None:
    written.post(PATH, {"documents": [{"id": f"old-{n}", "text": "fog", "old": n} for n in range(5)]})
    assert written.post(f"{PATH}/delete", {"where": "old < 3"}).json()["deleted"] == 3
    assert written.post(f"{PATH}/delete", {"where": "old >= 0"}).json()["deleted"] == 2
    error = written.post(f"{PATH}/delete", {"where": "old >"})
    assert error.status_code == 400 and error.json()["kind"] == "filter"
    assert error.json()["position"] == 5
    for body in ({}, {"ids": ["d1"], "where": "old = 1"}):
        assert written.post(f"{PATH}/delete", body).status_code == 400


def test_nothing_is_added_if_one_document_is_invalid(written: Server) -> None:
    before = stored_documents(written)
    for wrong in ({"id": "x"}, {"text": "x"}, {"id": "", "text": "x"}, {"id": 7, "text": "x"}, "x", None):
        error = written.post(PATH, {"documents": [{"id": "fine", "text": "ship"}, wrong]})
        assert error.status_code == 400, error.text
        assert "documents.1" in error.json()["error"]
    bad = {"id": "x", "text": "ship", "split": "elsewhere"}
    assert "train, val or test" in written.post(PATH, {"documents": [bad]}).json()["error"]
    assert stored_documents(written) == before


def test_scripts_in_documents_are_returned_as_text(written: Server) -> None:
    new = {
        "id": "<img src=x onerror=alert(1)>/../%2e",
        "text": SCRIPT,
        "title": "<b>'\"; DROP TABLE documents",
    }
    assert written.post(PATH, {"documents": [new]}).status_code == 200
    response = written.get(PATH, params={"id": new["id"]})
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"
    (document,) = response.json()["documents"]
    assert (document["id"], document["text"], document["metadata"]) == (
        new["id"],
        SCRIPT,
        {"title": new["title"]},
    )
    hits = written.post("/v1/collections/c/search", {"text": "ship fog", "k": 50, "explain": True}).json()[
        "hits"
    ]
    hit = next(hit for hit in hits if hit["id"] == new["id"])
    assert "<script>" in "".join(piece["text"] for piece in hit["fragments"])
    assert written.post(f"{PATH}/delete", {"ids": [new["id"]]}).json()["deleted"] == 1


def test_uploaded_lines_are_stored_and_downloaded(written: Server, root: Path) -> None:
    many = [document(number, "ship", "rope", big=number, name="Zürich") for number in range(100, 2_700)]
    with written.client() as client:
        added = client.add(many)
        assert (added.inserted, added.replaced, added.without_code) == (2_600, 0, 0)
        assert list(client.documents(where="big >= 100")) == many
        assert client.add([many[0], {"id": "extra", "text": "zzz", "big": 9_999}]).replaced == 1
        lines = written.get(f"{PATH}/lines", params={"where": "big > 2000"}).text.splitlines()
        assert json.loads(lines[0]) == {
            "id": "d2001",
            "text": "ship rope",
            "labels": [],
            "split": None,
            "big": 2001,
            "name": "Zürich",
        }
        assert client.delete_where("big >= 100") == 2_601


def test_an_invalid_line_is_reported_with_the_number_of_stored_documents(written: Server) -> None:
    good = [json.dumps({"id": f"line-{n}", "text": "ship"}) for n in range(1_500)]
    body = "\n".join([*good, "", '{"id": "line-x"']).encode()
    error = written.post(f"{PATH}/lines", body, headers=NDJSON)
    assert error.status_code == 400
    message = error.json()["error"]
    assert message.startswith("line 1502: it is not valid JSON") and message.endswith(
        "1,000 documents before it were stored"
    )
    with written.client() as client:
        assert client.delete_where("id >= 'line-' and id < 'line-z'") == 1_000


def test_an_interrupted_upload_keeps_its_complete_batches(written: Server) -> None:
    head = f"POST {PATH}/lines HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
    lines = "".join(json.dumps({"id": f"cut-{n}", "text": "ship"}) + "\n" for n in range(1_200))
    with written.connection() as connection:
        connection.sendall(f"{head}Content-Length: 999999\r\n\r\n{lines}".encode())
        with written.client() as client:
            while "cut-999" not in client:
                pass
    with written.client() as client:
        assert "cut-1001" not in client
        assert client.delete_where("id >= 'cut-' and id < 'cut-z'") == 1_000


def test_the_client_checks_documents_before_it_sends_them(written: Server) -> None:
    with written.client() as client:
        with pytest.raises(InputError, match='document 1 has no "id"'):
            client.add([{"text": "x"}])
        with pytest.raises(InputError, match="metadata called 'split'"):
            client.add([Document("x", "ship", metadata={"split": "x"})])
        with pytest.raises(UnknownDocumentError):
            client.delete(["nobody"])
        assert client.delete([]) == 0
