"""What a collection is as plain values, and what is bad about its codes in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from snuh.collection.results import Fast, Info

FEWEST_TO_JUDGE = 100  # documents; the codes of a handful have nothing to tell
BIG_BUCKET, FEW_DISTINCT, FEW_SEARCHABLE, LOPSIDED = 0.1, 0.5, 0.9, 0.2


def hints(found: Info) -> list[str]:
    """Return what is bad about the codes, a sentence each."""
    health = found.health
    if health is None or health.documents < FEWEST_TO_JUDGE:
        return []
    again = 'learn from these documents with "snuh fit", and take that model with "snuh rehash"'
    said = []
    if found.searchable < FEW_SEARCHABLE * found.documents:
        hidden = found.documents - found.searchable
        said.append(
            f"{hidden:,} of {found.documents:,} documents hold no word that the model knows, "
            f"and searches do not find them: {again}"
        )
    if health.constant_bits:
        said.append(
            f"{health.constant_bits} of {health.bits} bits are the same for all documents: "
            f"they tell nothing apart; {again}"
        )
    if health.biggest_bucket_share > BIG_BUCKET:
        said.append(
            f"{health.biggest_bucket_share:.0%} of the documents share one code, "
            'and searches cannot tell them apart: look for copies with "snuh dedup", or take more bits'
        )
    elif health.distinct_codes < FEW_DISTINCT * health.documents:
        share = health.distinct_codes / health.documents
        said.append(
            f"there are only {share:.0%} as many codes as documents: "
            'look for copies with "snuh dedup", or take more bits'
        )
    if mean_balance(found) < LOPSIDED:
        said.append(f"most bits are nearly the same for all documents, and tell little apart: {again}")
    return said


def mean_balance(found: Info) -> float:
    """Return the mean share of the rarer value of a bit: 0.5 is best."""
    shares = found.health.ones_share if found.health is not None else (0.5,)
    return sum(min(share, 1 - share) for share in shares) / len(shares)


def info_to_json(found: Info, training: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain values for JSON; `training` is what the model says of its own."""
    health = None
    if found.health is not None:
        health = asdict(found.health) | {"alive": found.health.alive, "mean_balance": mean_balance(found)}
    return {
        "collection": found.address,
        "documents": found.documents,
        "searchable": found.searchable,
        "bytes_per_document": found.bytes_per_document,
        "scanned_bytes_per_document": found.bits // 8,
        "store_bytes": found.store_bytes,
        "code_bytes": found.code_bytes,
        "model": {
            "method": found.method,
            "bits": found.bits,
            "fingerprint": found.model,
            "source": training.get("source"),
            "documents": training.get("documents"),
        },
        "fields": list(found.fields),
        "fast": None if found.fast is None else fast_to_json(found.fast),
        "health": health,
        "hints": hints(found),
    }


def fast_to_json(fast: Fast) -> dict[str, Any]:
    """Return plain values for JSON."""
    return {**fast.settings, "k": fast.k, "recall": fast.recall, "documents": fast.documents}
