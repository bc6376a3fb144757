"""`snuh index`: lists of neighbouring codes, for fast searches in a large collection."""

from __future__ import annotations

from typing import Annotated

import typer

from snuh.cli.options import CollectionAddress, Json

EXAMPLES = ("snuh index tickets", "snuh index tickets -k 100 --recall 0.999")


def index(
    collection: CollectionAddress,
    k: Annotated[int, typer.Option("-k", metavar="N", help="The hits for which the recall counts.")] = 10,
    recall: Annotated[
        float, typer.Option(metavar="SHARE", help="The share of the exact answer to find.")
    ] = 0.99,
    as_json: Json = False,
) -> None:
    """Prepare a large collection for "snuh search --fast", which reads only a part of the codes.

    The codes are put into lists around centres; as many of the nearest lists are read as it takes to find the
    wanted share of the exact answer, measured on documents of the collection itself. Documents that come
    later are found as well. Without --fast, searches stay exact.
    """
    from snuh.addresses import shown
    from snuh.cli.output import print_facts, print_json
    from snuh.collection import Collection
    from snuh.collection.describing import fast_to_json

    with Collection(collection) as opened:
        made = opened.make_lists(k=k, recall=recall)
    if as_json:
        print_json({"collection": shown(collection), **fast_to_json(made)})
    else:
        facts = [("collection", shown(collection)), ("documents", f"{made.documents:,}")]
        facts.append(("fast searches", made.words))
        print_facts([*facts, ("measured recall", f"{made.recall:.4f} of the nearest {made.k}")])
