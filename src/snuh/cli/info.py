"""`snuh info`: what a collection is, and how well its codes tell documents apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snuh.cli.options import CollectionFolder, Json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snuh.collection import Info

EXAMPLES = ("snuh info tickets", "snuh info tickets --json")

FEWEST_TO_JUDGE = 100  # documents; the codes of a handful have nothing to tell
BIG_BUCKET, FEW_DISTINCT, FEW_SEARCHABLE, LOPSIDED = 0.1, 0.5, 0.9, 0.2


def info(collection: CollectionFolder, as_json: Json = False) -> None:
    """Tell what a collection holds, what it takes on disk, and how good its codes look.

    Where something about the codes is bad, a line says so in plain words, and what to do.
    """
    from snuh.cli.output import print_json
    from snuh.collection import Collection

    with Collection(collection) as opened:
        found = opened.info()
        training = opened.model.training
    if as_json:
        print_json(_to_json(found, training))
    else:
        _print(found, training)


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
    if _balance(found) < LOPSIDED:
        said.append(f"most bits are nearly the same for all documents, and tell little apart: {again}")
    return said


def _balance(found: Info) -> float:
    """Return the mean share of the rarer value of a bit: 0.5 is best."""
    shares = found.health.ones_share if found.health is not None else (0.5,)
    return sum(min(share, 1 - share) for share in shares) / len(shares)


def _to_json(found: Info, training: Mapping[str, Any]) -> dict[str, Any]:
    from dataclasses import asdict

    health = None
    if found.health is not None:
        health = asdict(found.health) | {"alive": found.health.alive, "mean_balance": _balance(found)}
    return {
        "collection": str(found.folder),
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
        "fast": _fast_to_json(found),
        "health": health,
        "hints": hints(found),
    }


def _fast_to_json(found: Info) -> dict[str, Any] | None:
    if (lists := found.fast) is None:
        return None
    count = len(lists.clusters.centres)
    told = {"lists": count, "read": lists.probes, "k": lists.k, "recall": lists.recall}
    return told | {"documents": lists.documents}


def _fast_in_words(found: Info) -> str:
    if (lists := found.fast) is None:
        return 'no lists; make them with "snuh index" where exact searches take too long'
    return (
        f"{lists.probes:,} of {len(lists.clusters.centres):,} lists are read, "
        f"which found {lists.recall:.1%} of the nearest {lists.k} among {lists.documents:,} documents"
    )


def _print(found: Info, training: Mapping[str, Any]) -> None:
    from rich.text import Text

    from snuh.cli.output import print_facts, results_console
    from snuh.cli.plain import harmless

    disk = (
        f"{found.bytes_per_document:,.0f} on disk with text and metadata" if found.documents else "none yet"
    )
    learnt_from = training.get("documents")
    origin = f"{learnt_from:,} documents" if isinstance(learnt_from, int) else "unknown"
    if training.get("source"):
        origin += f" of {training['source']}"
    facts = [
        ("collection", str(found.folder)),
        ("documents", f"{found.documents:,}, of which searches can find {found.searchable:,}"),
        ("bytes a document", f"{disk}; {found.bits // 8} scanned by a search"),
        ("model", f"{found.method}, {found.bits} bits, {found.model}"),
        ("learnt from", harmless(origin)),
        ("fields", harmless(", ".join(found.fields)) or "no metadata"),
        ("fast searches", _fast_in_words(found)),
    ]
    if (health := found.health) is not None:
        share = health.distinct_codes / health.documents
        of = "" if health.documents == found.searchable else f" in a sample of {health.documents:,}"
        facts += [
            ("distinct codes", f"{health.distinct_codes:,}, {share:.0%} of the documents{of}"),
            ("biggest bucket", f"{health.biggest_bucket_share:.2%} of the documents share one code"),
            ("bit balance", f"{_balance(found):.2f} on average (0.50 is best)"),
            ("constant bits", str(health.constant_bits)),
        ]
    print_facts(facts)
    console = results_console()
    for hint in hints(found):
        console.print(Text(f"! {hint}", style="yellow"), soft_wrap=True)
