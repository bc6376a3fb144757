"""`snuh info`: what a collection is, and how well its codes tell documents apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from snuh.cli.options import CollectionAddress, Json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snuh.collection import Info

EXAMPLES = ("snuh info tickets", "snuh info tickets --json")


def info(collection: CollectionAddress, as_json: Json = False) -> None:
    """Tell what a collection holds, what it takes on disk, and how good its codes look.

    Where something about the codes is bad, a line says so in plain words, and what to do.
    """
    from snuh.cli.output import print_json
    from snuh.collection import Collection
    from snuh.collection.describing import info_to_json

    with Collection(collection) as opened:
        found = opened.info()
        training = opened.model.training
    if as_json:
        print_json(info_to_json(found, training))
    else:
        _print(found, training)


def _fast_in_words(found: Info) -> str:
    if (fast := found.fast) is None:
        return 'not prepared; "snuh index" does it where exact searches take too long'
    return (
        f"{fast.words}, which found {fast.recall:.1%} of the nearest {fast.k} "
        f"among {fast.documents:,} documents"
    )


def _print(found: Info, training: Mapping[str, Any]) -> None:
    from rich.text import Text

    from snuh.cli.output import print_facts, results_console
    from snuh.cli.plain import harmless
    from snuh.collection.describing import hints, mean_balance

    disk = (
        f"{found.bytes_per_document:,.0f} on disk with text and metadata" if found.documents else "none yet"
    )
    learnt_from = training.get("documents")
    origin = f"{learnt_from:,} documents" if isinstance(learnt_from, int) else "unknown"
    if training.get("source"):
        origin += f" of {training['source']}"
    facts = [
        ("collection", found.address),
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
            ("bit balance", f"{mean_balance(found):.2f} on average (0.50 is best)"),
            ("constant bits", str(health.constant_bits)),
        ]
    print_facts(facts)
    console = results_console()
    for hint in hints(found):
        console.print(Text(f"! {hint}", style="yellow"), soft_wrap=True)
