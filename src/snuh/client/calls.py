"""The requests of the clients: each with what to make of the JSON of its response."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from snuh.client import responses
from snuh.client.responses import DuplicateGroups, Facet, Projection
from snuh.codes import check_codes
from snuh.collection import Added
from snuh.collection.query import SearchOptions
from snuh.collection.results import IndexInfo, Page, Sample
from snuh.corpus import Document
from snuh.dedup import Keep, Measure
from snuh.errors import InputError
from snuh.explain import BitMeaning, Explanation
from snuh.filters import Filter
from snuh.search import Hits, excerpt

MAX_TEXTS, MAX_HITS, MAX_IDS = 100, 10_000, 10_000  # per request
NDJSON = {"Content-Type": "application/x-ndjson"}

Result = TypeVar("Result")


class DuplicateOptions(TypedDict, total=False):
    """The options of `Client.duplicates`, which are those of `snuh dedup`."""

    threshold: float
    radius: int | None
    measure: Measure
    group_by: str | None
    target: int | None
    keep: Keep


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """A request about a collection."""

    method: str
    path: str  # below that of the collection
    parse: Callable[[dict[str, Any]], Result]  # Any: JSON values
    params: Mapping[str, Any] = field(default_factory=dict)
    json: dict[str, Any] | None = None
    is_read: bool = True  # may be repeated even if its response was lost


def info() -> Call[dict[str, Any]]:
    """Describe the collection."""
    return Call("GET", "", dict)


def count(where: str | Filter | None) -> Call[int]:
    """Count documents."""
    params = {"where": None if where is None else str(where)}
    return Call("GET", "/count", lambda result: int(result["documents"]), params=_given(params))


def delete(ids: Iterable[str]) -> Call[int] | None:
    """Delete documents by id; None if there are none."""
    if isinstance(ids, str):
        raise InputError("expected a list of ids, got a single one: put it into a list")
    unique = list(dict.fromkeys(ids))
    if len(unique) > MAX_IDS:
        raise InputError(f"a server deletes up to {MAX_IDS:,} documents at once, got {len(unique):,}")
    return _delete({"ids": unique}) if unique else None


def delete_where(where: str | Filter) -> Call[int]:
    """Delete documents by filter."""
    return _delete({"where": str(where)})


def _delete(body: dict[str, Any]) -> Call[int]:
    return Call("POST", "/documents/delete", lambda result: int(result["deleted"]), json=body, is_read=False)


def parse_added(result: dict[str, Any]) -> Added:
    """Parse the result of an upload."""
    return Added(result["inserted"], result["replaced"], result["without_known_words"])


def update(doc_id: str, changes: Mapping[str, Any]) -> Call[Document]:
    """Change fields of a document."""
    return Call(
        "PATCH",
        f"/documents/{responses.quote_path(doc_id)}",
        responses.parse_document,
        json=dict(changes),
        is_read=False,
    )


def build_index(k: int, recall: float) -> Call[IndexInfo]:
    """Build the index of approximate searches."""
    return Call("POST", "/index", responses.parse_index_info, json={"k": k, "recall": recall}, is_read=False)


def get(doc_id: str) -> Call[Document]:
    """Get a document."""
    return Call(
        "GET",
        "/documents",
        lambda result: responses.parse_document(result["documents"][0]),
        params={"id": doc_id},
    )


def page(after: str | None, limit: int, where: str | Filter | None) -> Call[Page]:
    """List documents."""
    params = {"after": after, "limit": limit, "where": None if where is None else str(where)}
    return Call("GET", "/documents", responses.parse_page, params=_given(params))


def sample(limit: int, characters: int | None) -> Call[Sample]:
    """Get a sample of the documents."""

    def parse(result: dict[str, Any]) -> Sample:
        whole = responses.parse_sample(result)
        return Sample([excerpt(document, characters) for document in whole.documents], whole.codes)

    return Call("GET", "/sample", parse, params={"limit": limit})


def search(text: str, options: SearchOptions, *, vector: Any = None) -> Call[Hits]:
    """Search for a text."""
    query = {"text": text} | ({} if vector is None else {"vector": responses.vector_to_json(vector)})
    return _search("/search", query, options)


def similar(doc_id: str, options: SearchOptions) -> Call[Hits]:
    """Search for documents similar to one of the collection."""
    return _search("/similar", {"id": doc_id}, options)


def _search(path: str, query: dict[str, Any], options: SearchOptions) -> Call[Hits]:
    body = {**query, "characters": None, **responses.options_to_json(options)}
    return Call("POST", path, responses.parse_hits, json=body)


def search_many(
    texts: Sequence[str], options: SearchOptions, *, vectors: Sequence[Any] | None = None
) -> list[Call[list[Hits]]]:
    """Search for many texts."""
    return _search_batches("texts", list(texts), options, vectors=vectors)


def search_codes(codes: NDArray[np.uint8], options: SearchOptions) -> list[Call[list[Hits]]]:
    """Search for codes."""
    return _search_batches("codes", [code.tobytes().hex() for code in check_codes(codes)], options)


def _search_batches(
    kind: str, queries: list[str], options: SearchOptions, *, vectors: Sequence[Any] | None = None
) -> list[Call[list[Hits]]]:
    k = options.get("k", 10)
    size = min(MAX_TEXTS, MAX_HITS // k) if 0 < k <= MAX_HITS else 1  # else the server rejects k
    common = {"characters": None, **responses.options_to_json(options)}
    by_query = [None if vector is None else responses.vector_to_json(vector) for vector in vectors or ()]
    return [
        Call(
            "POST",
            "/search/batch",
            responses.parse_hit_lists,
            json={
                kind: queries[start : start + size],
                **({} if vectors is None else {"vectors": by_query[start : start + size]}),
                **common,
            },
        )
        for start in range(0, len(queries), size)
    ]


def explain(text: str, doc_id: str) -> Call[Explanation]:
    """Explain a hit."""
    return Call("POST", "/explain", responses.parse_explanation, json={"text": text, "id": doc_id})


def encode(texts: Sequence[str]) -> list[Call[list[str | None]]]:
    """Encode texts."""
    return [
        Call(
            "POST",
            "/encode",
            lambda result: list(result["codes"]),
            json={"texts": list(texts[start : start + MAX_TEXTS])},
        )
        for start in range(0, len(texts), MAX_TEXTS)
    ]


def bits(words: int) -> Call[list[BitMeaning]]:
    """Get the words that each bit stands for."""
    return Call(
        "GET",
        "/bits",
        lambda result: [responses.parse_meaning(meaning) for meaning in result["meanings"]],
        params={"words": words},
    )


def facets() -> Call[list[Facet]]:
    """Get the fields to filter by."""
    return Call("GET", "/facets", lambda result: [responses.parse_facet(facet) for facet in result["facets"]])


def duplicates(options: DuplicateOptions) -> Call[DuplicateGroups]:
    """Find duplicate documents."""
    return Call("GET", "/duplicates", responses.parse_duplicates, params=_given(options))


def projection() -> Call[Projection]:
    """Get the map."""
    return Call("GET", "/map", responses.parse_projection)


def _given(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}
