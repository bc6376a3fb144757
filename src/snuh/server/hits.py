"""Hits as JSON, with the words that brought them up where that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from snuh.collection import Collection
from snuh.errors import SnuhError
from snuh.explain import Explanation, WordShare, explain, marked
from snuh.model import Model
from snuh.search import Hit, unknown_words
from snuh.server.asks import SearchAsk, SimilarAsk
from snuh.server.refusals import Refusal, check_length
from snuh.server.writing import json_bytes

Json: TypeAlias = dict[str, Any]  # Any: whatever JSON can say
SNIPPET, WHOLE = 160, 2_000  # characters of fragments


def answer_texts(
    collection: Collection, asks: Sequence[SearchAsk], *, most_bytes: int
) -> list[bytes | Exception]:
    """Answer searches for texts; those that ask alike are searched for at once."""
    alike: dict[tuple[Any, ...], list[int]] = {}
    for number, ask in enumerate(asks):
        alike.setdefault(tuple(ask.search_options.values()), []).append(number)
    answers: list[bytes | Exception] = [b""] * len(asks)
    for numbers in alike.values():
        texts = [asks[number].text or "" for number in numbers]
        try:
            found = collection.search_many(texts, **asks[numbers[0]].search_options)
        except SnuhError as error:
            for number in numbers:
                answers[number] = error
            continue
        bits = collection.model.bits
        for number, text, hits in zip(numbers, texts, found, strict=True):
            try:
                answers[number] = (
                    unknown_words(text)
                    if hits is None
                    else search_to_json(bits, asks[number], hits, most_bytes=most_bytes)
                )
            except Refusal as refusal:
                answers[number] = refusal
    return answers


def answer_explained(collection: Collection, ask: SearchAsk | SimilarAsk, *, most_bytes: int) -> bytes:
    """Answer one search, for a text or a document, and tell why where that is asked for."""
    if ask.id is not None:
        hits = collection.similar(ask.id, **ask.search_options)
        text = collection.get(ask.id).text if ask.explain else ""
    else:
        text = getattr(ask, "text", None) or ""
        hits = collection.search(text, **ask.search_options)
    model = collection.model
    reasons = [explain(model, text, hit.document.text) for hit in hits] if ask.explain else []
    return search_to_json(model.bits, ask, hits, reasons, most_bytes=most_bytes)


def search_to_json(
    bits: int,
    ask: SearchAsk | SimilarAsk,
    hits: Sequence[Hit],
    reasons: Sequence[Explanation] = (),
    *,
    most_bytes: int,
) -> bytes:
    """Return the answer to one search."""
    rows = hits_to_json(hits, ask.characters, most_bytes=most_bytes)
    for row, hit, reason in zip(rows, hits, reasons, strict=False):
        row["fragments"] = _fragments(hit.document.text, reason.hit_words, SNIPPET)
        row["words"] = _shares(reason.hit_words)
        row["query_words"] = _shares(reason.query_words)
    query = None if ask.id is not None else getattr(ask, "text", None)
    return json_bytes({"query": query, "id": ask.id, "bits": bits, "hits": rows})


def hits_to_json(hits: Sequence[Hit], characters: int | None, *, most_bytes: int) -> list[Json]:
    """Return hits as plain values; Refusal where their texts alone are too long to be answered."""
    rows = [_hit_to_json(hit, characters) for hit in hits]
    check_length(sum(len(row["text"]) for row in rows), most_bytes)
    return rows


def _hit_to_json(hit: Hit, characters: int | None) -> Json:
    document = hit.document
    text = document.text
    return {
        "id": document.id,
        "distance": hit.distance,
        "score": hit.score,
        "text": text if characters is None else text[:characters],
        "length": len(text),
        "labels": document.labels,
        "split": document.split,
        "metadata": document.metadata,
    }


def explanation_to_json(model: Model, query: str, hit: str) -> Json:
    """Explain one hit, with all bits."""
    reason = explain(model, query, hit)
    return {
        "distance": reason.distance,
        "bits": [
            {
                "bit": pair.bit,
                "query": pair.query,
                "hit": pair.hit,
                "query_margin": round(pair.query_margin, 6),
                "hit_margin": round(pair.hit_margin, 6),
            }
            for pair in reason.bits
        ],
        "query_words": _shares(reason.query_words),
        "hit_words": _shares(reason.hit_words),
        "query_fragments": _fragments(query, reason.query_words, WHOLE),
        "hit_fragments": _fragments(hit, reason.hit_words, WHOLE),
    }


def _fragments(text: str, shares: Sequence[WordShare], width: int) -> list[tuple[str, float]]:
    """Return pieces of a text; a word weighs how far it pushed its code towards the other, or away."""
    pushes = [replace(share, agreeing=share.agreeing - share.differing) for share in shares]
    return [(piece.text, round(piece.weight, 4)) for piece in marked(text, pushes, width=width)]


def _shares(shares: Sequence[WordShare]) -> list[Json]:
    return [
        {
            "word": share.word,
            "agreeing": round(share.agreeing, 6),
            "differing": round(share.differing, 6),
            "spans": share.spans,
        }
        for share in shares
    ]
