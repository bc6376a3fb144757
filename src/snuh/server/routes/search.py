"""Routes that search: for a text, for many, for similar documents; and that explain hits and encode texts."""

from __future__ import annotations

from itertools import islice

import numpy as np
from fastapi import APIRouter, Request, Response

from snuh.collection import Collection
from snuh.errors import InputError
from snuh.search import Hit
from snuh.server.errors import invalid
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
    max_bytes = get_limits(request).response_bytes

    def task(collection: Collection) -> Json:
        hit_lists = _search_batch(collection, batch)
        all_hits = [hit for hits in hit_lists for hit in hits or ()]
        rows = iter(hits_to_json(all_hits, batch.characters, max_bytes=max_bytes))
        results = [{"hits": None if hits is None else list(islice(rows, len(hits)))} for hits in hit_lists]
        return {"bits": collection.model.bits, "results": results}

    return json_response(request, await get_service(request, name).reader.run(task))


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


def _search_batch(collection: Collection, batch: BatchRequest) -> list[list[Hit] | None]:
    if batch.texts is not None:
        return collection.search_many(batch.texts, **batch.search_options)
    codes = batch.codes or []
    digits = collection.model.bits // 4
    if wrong := {len(code) for code in codes} - {digits}:
        raise InputError(f"a code must have {digits} hexadecimal digits, got {min(wrong)}")
    packed = np.frombuffer(bytes.fromhex("".join(codes)), dtype=np.uint8).reshape(len(codes), -1)
    return list(collection.search_codes(packed, **batch.search_options))
