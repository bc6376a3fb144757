"""Searching: for a text, for many, for documents like one; and why a document was found."""

from __future__ import annotations

from itertools import islice

import numpy as np
from fastapi import APIRouter, Request, Response

from snuh.collection import Collection
from snuh.errors import InputError
from snuh.search import Hit
from snuh.server.errors import invalid
from snuh.server.requests import answer, check_one_of, limits, raw_answer, read_ask, served
from snuh.server.routes.openapi import WITH_BODY, answers, body_of
from snuh.server.schemas import (
    MAX_EXPLAINED,
    MAX_TOTAL_HITS,
    BatchAnswer,
    BatchAsk,
    EncodeAnswer,
    EncodeAsk,
    ExplainAnswer,
    ExplainAsk,
    SearchAnswer,
    SearchAsk,
    SimilarAsk,
)
from snuh.server.service import Json, Served, answer_explained, explanation_to_json, hits_to_json

router = APIRouter(prefix="/v1/collections/{name}", tags=["search"])


@router.post(
    "/search",
    summary="Find the documents nearest to a text or a document",
    responses=answers(SearchAnswer, others=(*WITH_BODY, 422)),
    openapi_extra=body_of(SearchAsk),
)
async def search(request: Request, name: str) -> Response:
    """Hits are ordered by distance, ties by order of insertion; with `rerank` by score."""
    ask = await read_ask(request, SearchAsk)
    check_one_of(ask, "text", "id")
    _check_explained(ask)
    collection = served(request, name)
    if ask.id is None and not ask.explain:
        return raw_answer(request, await collection.search(ask))
    return raw_answer(request, await _explained(collection, ask))


@router.post(
    "/similar",
    summary="Find the documents nearest to one of the collection",
    responses=answers(SearchAnswer, others=(*WITH_BODY, 422)),
    openapi_extra=body_of(SimilarAsk),
)
async def similar(request: Request, name: str) -> Response:
    """The document itself is left out."""
    ask = await read_ask(request, SimilarAsk)
    _check_explained(ask)
    return raw_answer(request, await _explained(served(request, name), ask))


@router.post(
    "/search/batch",
    summary="Search for many texts at once",
    responses=answers(BatchAnswer, others=WITH_BODY),
    openapi_extra=body_of(BatchAsk),
)
async def search_batch(request: Request, name: str) -> Response:
    """The hits are null for a text of which the model knows no word."""
    ask = await read_ask(request, BatchAsk)
    check_one_of(ask, "texts", "codes")
    count = len(ask.texts or ask.codes or ())
    if count * ask.k > MAX_TOTAL_HITS:
        raise invalid(f"{count:,} times {ask.k:,} hits are above the limit of {MAX_TOTAL_HITS:,}")

    max_bytes = limits(request).answer_bytes

    def work(collection: Collection) -> Json:
        found = _search_many(collection, ask)
        flat = iter(
            hits_to_json([hit for hits in found for hit in hits or ()], ask.characters, max_bytes=max_bytes)
        )
        rows = [None if hits is None else list(islice(flat, len(hits))) for hits in found]
        return {"bits": collection.model.bits, "answers": [{"hits": hits} for hits in rows]}

    return answer(request, await served(request, name).reading.run(work))


@router.post(
    "/explain",
    summary="Tell why a document was found",
    responses=answers(ExplainAnswer, others=WITH_BODY),
    openapi_extra=body_of(ExplainAsk),
)
async def explain(request: Request, name: str) -> Response:
    """Every bit of the two codes, and the words that made them agree or differ."""
    ask = await read_ask(request, ExplainAsk)
    check_one_of(ask, "text", "query_id")

    def work(collection: Collection) -> Json:
        query = ask.text if ask.query_id is None else collection.get(ask.query_id).text
        return explanation_to_json(collection.model, query or "", collection.get(ask.id).text)

    return answer(request, await served(request, name).reading.run(work))


@router.post(
    "/encode",
    summary="Turn texts into codes",
    responses=answers(EncodeAnswer, others=WITH_BODY),
    openapi_extra=body_of(EncodeAsk),
)
async def encode(request: Request, name: str) -> Response:
    """Codes as hexadecimal digits, the first bit first."""
    ask = await read_ask(request, EncodeAsk)

    def work(collection: Collection) -> Json:
        model = collection.model
        if model.features is None:
            raise InputError("this collection's model takes no texts")
        rows = model.features.transform(ask.texts)
        known = np.diff(rows.indptr) > 0
        codes = [code.tobytes().hex() for code in model.encoder.encode(rows)]
        return {
            "bits": model.bits,
            "codes": [code if one else None for code, one in zip(codes, known, strict=True)],
        }

    return answer(request, await served(request, name).reading.run(work))


async def _explained(collection: Served, ask: SearchAsk | SimilarAsk) -> bytes:
    max_bytes = collection.limits.answer_bytes
    return await collection.reading.run(lambda opened: answer_explained(opened, ask, max_bytes=max_bytes))


def _check_explained(ask: SearchAsk | SimilarAsk) -> None:
    if ask.explain and ask.k > MAX_EXPLAINED:
        raise invalid(f'with "explain", k must be from 1 to {MAX_EXPLAINED}, got {ask.k}')


def _search_many(collection: Collection, ask: BatchAsk) -> list[list[Hit] | None]:
    if ask.texts is not None:
        return collection.search_many(ask.texts, **ask.search_options)
    codes = ask.codes or []
    if len(wrong := {len(code) for code in codes} - {collection.model.bits // 4}):
        raise InputError(
            f"a code must have {collection.model.bits // 4} hexadecimal digits, got {min(wrong)}"
        )
    packed = np.frombuffer(bytes.fromhex("".join(codes)), dtype=np.uint8).reshape(len(codes), -1)
    return list(collection.search_codes(packed, **ask.search_options))
