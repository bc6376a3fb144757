"""Routes that search: for a text, for many, for similar documents; and that explain hits and encode texts."""

from __future__ import annotations

import time

import numpy as np
from fastapi import APIRouter, Request, Response
from starlette.requests import ClientDisconnect

from snuh.collection import Collection
from snuh.collection.query import query_rows
from snuh.errors import InputError
from snuh.search import Hits, check_query
from snuh.server.requests import (
    LimitedRoute,
    check_exactly_one,
    check_response_size,
    get_limits,
    invalid,
    json_response,
    raw_json_response,
)
from snuh.server.schemas import (
    MAX_EXPLAINED,
    MAX_HITS,
    MAX_TOTAL_HITS,
    RERANKED_AT_ONCE,
    WITH_BODY,
    BatchRequest,
    BatchResponse,
    EncodeRequest,
    EncodeResponse,
    ExplainRequest,
    ExplainResponse,
    SearchParameters,
    SearchRequest,
    SearchResponse,
    SimilarRequest,
    errors,
)
from snuh.server.service import (
    CollectionService,
    Json,
    Name,
    Service,
    explanation_to_json,
    get_service,
    hits_to_json,
    milliseconds_since,
    search_explained,
)

router = APIRouter(
    prefix="/v1/collections/{name}",
    tags=["search"],
    route_class=LimitedRoute,
    responses=errors(*WITH_BODY),
)


@router.post("/search", summary="Search for a text or for similar documents", response_model=SearchResponse)
async def search(request: Request, name: Name, body: SearchRequest) -> Response:
    """Hits are ordered by score; by codes without `rerank`, by distance, ties by words."""
    check_exactly_one(body, "text", "id")
    _check(body, explain=body.explain)
    _check_vector(body.vector, has_text=body.text is not None)
    if body.text is not None:
        check_query(body.text)  # here, since an error would be that of all searches answered together
    # Not a dependency, which takes a tenth of the time of a search.
    service = await get_service(request, name)
    if body.id is None and not body.explain:
        return raw_json_response(request, await service.search(body))
    return raw_json_response(request, await _search_explained(service, body))


@router.post(
    "/similar", summary="Search for documents similar to one of the collection", response_model=SearchResponse
)
async def similar(request: Request, service: Service, body: SimilarRequest) -> Response:
    """The document itself is not among the hits."""
    _check(body, explain=body.explain)
    return raw_json_response(request, await _search_explained(service, body))


@router.post("/search/batch", summary="Search for many texts at once", response_model=BatchResponse)
async def search_batch(request: Request, service: Service, body: BatchRequest) -> Response:
    """The results are in the order of the texts or codes."""
    check_exactly_one(body, "texts", "codes")
    _check(body)
    _check_vector(body.vectors, has_text=body.texts is not None)
    queries = len(body.texts or body.codes or ())
    if queries * body.k > MAX_TOTAL_HITS:
        raise invalid(f"{queries:,} queries times {body.k:,} hits exceed the limit of {MAX_TOTAL_HITS:,}")
    if queries * body.documents_reranked > body.max_total_reranked:
        raise invalid(
            f"{queries:,} queries times {body.documents_reranked:,} documents to rerank exceed the limit "
            f"of {body.max_total_reranked:,}: use a smaller shortlist"
        )
    max_bytes = get_limits(request).response_bytes
    # In parts, so that other requests are served in between, and work ends when the client hangs up.
    size = max(1, RERANKED_AT_ONCE // max(1, body.documents_reranked))
    results: list[Json] = []
    bits, characters, started = 0, 0, time.perf_counter()
    for start in range(0, queries, size):
        if start and await request.is_disconnected():
            raise ClientDisconnect

        def task(collection: Collection, start: int = start) -> tuple[int, list[Hits]]:
            return collection.model.bits, _search_batch(collection, body, slice(start, start + size))

        bits, hit_lists = await service.reader.run(task)
        characters += sum(len(hit.document.text) for hits in hit_lists for hit in hits)
        check_response_size(characters, max_bytes)
        for hits in hit_lists:
            rows = hits_to_json(hits[body.offset :], max_bytes=max_bytes)
            results.append({"note": hits.note, "hits": rows})
    return json_response(request, {"bits": bits, "took_ms": milliseconds_since(started), "results": results})


@router.post("/explain", summary="Explain a hit", response_model=ExplainResponse)
async def explain(request: Request, service: Service, body: ExplainRequest) -> Response:
    """All bits of the two codes, and the words that made them agree or differ."""
    check_exactly_one(body, "text", "query_id")
    _check_vector(body.vector, has_text=body.text is not None)

    def task(collection: Collection) -> Json:
        query = body.text if body.query_id is None else collection.get(body.query_id).text
        hit = collection.get(body.id).text
        return explanation_to_json(collection.model, query or "", hit, query_vector=body.vector)

    return json_response(request, await service.reader.run(task))


@router.post("/encode", summary="Encode texts")
async def encode(service: Service, body: EncodeRequest) -> EncodeResponse:
    """Codes in hexadecimal, first bit first."""

    def task(collection: Collection) -> EncodeResponse:
        model = collection.model
        if model.features is None:
            raise InputError("the model of this collection does not accept texts")
        rows = query_rows(model, body.texts, vectors=body.vectors)
        codes = [code.tobytes().hex() for code in model.encoder.encode(rows)]
        known = np.diff(rows.indptr) > 0
        return EncodeResponse(
            bits=model.bits,
            codes=[code if is_known else None for code, is_known in zip(codes, known, strict=True)],
        )

    return await service.reader.run(task)


async def _search_explained(service: CollectionService, query: SearchRequest | SimilarRequest) -> bytes:
    max_bytes = service.limits.response_bytes
    return await service.reader.run(
        lambda collection: search_explained(collection, query, max_bytes=max_bytes)
    )


def _check(query: SearchParameters, *, explain: bool = False) -> None:
    if query.offset + query.k > MAX_HITS:
        raise invalid(f"offset and k are at most {MAX_HITS:,} together, got {query.offset + query.k:,}")
    if explain and query.k > MAX_EXPLAINED:
        raise invalid(f'with "explain", k must be from 1 to {MAX_EXPLAINED}, got {query.k}')


def _check_vector(vector: object, *, has_text: bool) -> None:
    if vector is not None and not has_text:
        raise invalid("a vector is part of a text's code: send it with a text")


def _search_batch(collection: Collection, batch: BatchRequest, part: slice) -> list[Hits]:
    if batch.texts is not None:
        vectors = None if batch.vectors is None else batch.vectors[part]
        return collection.search_many(batch.texts[part], vectors=vectors, **batch.search_options)
    codes = (batch.codes or [])[part]
    digits = collection.model.bits // 4
    if wrong := {len(code) for code in codes} - {digits}:
        raise InputError(f"a code must have {digits} hexadecimal digits, got {min(wrong)}")
    packed = np.frombuffer(bytes.fromhex("".join(codes)), dtype=np.uint8).reshape(len(codes), -1)
    return collection.search_codes(packed, **batch.search_options)
