"""Routes that search: for a text, for many, for similar documents; and that explain hits and encode texts."""

from __future__ import annotations

import numpy as np
from fastapi import APIRouter, Request, Response
from starlette.requests import ClientDisconnect

from snuh.collection import Collection
from snuh.errors import InputError
from snuh.search import Hit
from snuh.server.errors import check_response_size, invalid
from snuh.server.requests import (
    check_exactly_one,
    get_limits,
    get_service,
    json_response,
    raw_json_response,
    read_body,
)
from snuh.server.schemas import (
    MAX_EXPLAINED,
    MAX_TOTAL_HITS,
    RERANKED_AT_ONCE,
    WITH_BODY,
    BatchRequest,
    BatchResponse,
    EncodeRequest,
    EncodeResponse,
    ExplainRequest,
    ExplainResponse,
    SearchRequest,
    SearchResponse,
    SimilarRequest,
    request_body,
    responses,
)
from snuh.server.service import (
    CollectionService,
    Json,
    explanation_to_json,
    hits_to_json,
    search_explained,
)

router = APIRouter(prefix="/v1/collections/{name}", tags=["search"])


@router.post(
    "/search",
    summary="Search for a text or for similar documents",
    responses=responses(SearchResponse, errors=(*WITH_BODY, 422)),
    openapi_extra=request_body(SearchRequest),
)
async def search(request: Request, name: str) -> Response:
    """Hits are ordered by distance, ties by insertion order; with `rerank` by score."""
    query = await read_body(request, SearchRequest)
    check_exactly_one(query, "text", "id")
    _check_explained(query)
    service = get_service(request, name)
    if query.id is None and not query.explain:
        return raw_json_response(request, await service.search(query))
    return raw_json_response(request, await _search_explained(service, query))


@router.post(
    "/similar",
    summary="Search for documents similar to one of the collection",
    responses=responses(SearchResponse, errors=(*WITH_BODY, 422)),
    openapi_extra=request_body(SimilarRequest),
)
async def similar(request: Request, name: str) -> Response:
    """The document itself is not among the hits."""
    query = await read_body(request, SimilarRequest)
    _check_explained(query)
    return raw_json_response(request, await _search_explained(get_service(request, name), query))


@router.post(
    "/search/batch",
    summary="Search for many texts at once",
    responses=responses(BatchResponse, errors=WITH_BODY),
    openapi_extra=request_body(BatchRequest),
)
async def search_batch(request: Request, name: str) -> Response:
    """The hits are null for a text without any word that the model knows."""
    batch = await read_body(request, BatchRequest)
    check_exactly_one(batch, "texts", "codes")
    queries = len(batch.texts or batch.codes or ())
    if queries * batch.k > MAX_TOTAL_HITS:
        raise invalid(f"{queries:,} queries times {batch.k:,} hits exceed the limit of {MAX_TOTAL_HITS:,}")
    if queries * batch.documents_reranked > batch.max_total_reranked:
        raise invalid(
            f"{queries:,} queries times {batch.documents_reranked:,} documents to rerank exceed the limit "
            f"of {batch.max_total_reranked:,}: use a smaller shortlist"
        )
    reader, max_bytes = get_service(request, name).reader, get_limits(request).response_bytes
    # In parts, so that other requests are served in between, and work ends when the client hangs up.
    size = max(1, RERANKED_AT_ONCE // max(1, batch.documents_reranked))
    results: list[Json] = []
    bits, characters = 0, 0
    for start in range(0, queries, size):
        if start and await request.is_disconnected():
            raise ClientDisconnect

        def task(collection: Collection, start: int = start) -> tuple[int, list[list[Hit] | None]]:
            return collection.model.bits, _search_batch(collection, batch, slice(start, start + size))

        bits, hit_lists = await reader.run(task)
        characters += sum(len(hit.document.text) for hits in hit_lists for hit in hits or ())
        check_response_size(characters, max_bytes)
        for hits in hit_lists:
            rows = None if hits is None else hits_to_json(hits, max_bytes=max_bytes)
            results.append({"hits": rows})
    return json_response(request, {"bits": bits, "results": results})


@router.post(
    "/explain",
    summary="Explain a hit",
    responses=responses(ExplainResponse, errors=WITH_BODY),
    openapi_extra=request_body(ExplainRequest),
)
async def explain(request: Request, name: str) -> Response:
    """All bits of the two codes, and the words that made them agree or differ."""
    body = await read_body(request, ExplainRequest)
    check_exactly_one(body, "text", "query_id")

    def task(collection: Collection) -> Json:
        query = body.text if body.query_id is None else collection.get(body.query_id).text
        return explanation_to_json(collection.model, query or "", collection.get(body.id).text)

    return json_response(request, await get_service(request, name).reader.run(task))


@router.post(
    "/encode",
    summary="Encode texts",
    responses=responses(EncodeResponse, errors=WITH_BODY),
    openapi_extra=request_body(EncodeRequest),
)
async def encode(request: Request, name: str) -> Response:
    """Codes in hexadecimal, first bit first."""
    body = await read_body(request, EncodeRequest)

    def task(collection: Collection) -> Json:
        model = collection.model
        if model.features is None:
            raise InputError("the model of this collection does not accept texts")
        rows = model.features.transform(body.texts)
        has_known_word = np.diff(rows.indptr) > 0
        codes = [code.tobytes().hex() for code in model.encoder.encode(rows)]
        return {
            "bits": model.bits,
            "codes": [
                code if is_known else None for code, is_known in zip(codes, has_known_word, strict=True)
            ],
        }

    return json_response(request, await get_service(request, name).reader.run(task))


async def _search_explained(service: CollectionService, query: SearchRequest | SimilarRequest) -> bytes:
    max_bytes = service.limits.response_bytes
    return await service.reader.run(
        lambda collection: search_explained(collection, query, max_bytes=max_bytes)
    )


def _check_explained(query: SearchRequest | SimilarRequest) -> None:
    if query.explain and query.k > MAX_EXPLAINED:
        raise invalid(f'with "explain", k must be from 1 to {MAX_EXPLAINED}, got {query.k}')


def _search_batch(collection: Collection, batch: BatchRequest, part: slice) -> list[list[Hit] | None]:
    if batch.texts is not None:
        return collection.search_many(batch.texts[part], **batch.search_options)
    codes = (batch.codes or [])[part]
    digits = collection.model.bits // 4
    if wrong := {len(code) for code in codes} - {digits}:
        raise InputError(f"a code must have {digits} hexadecimal digits, got {min(wrong)}")
    packed = np.frombuffer(bytes.fromhex("".join(codes)), dtype=np.uint8).reshape(len(codes), -1)
    return list(collection.search_codes(packed, **batch.search_options))
