"""`snuh index`: lists of neighbouring codes, for fast searches in a large collection."""

from __future__ import annotations

from typing import Annotated

import typer

from snuh.cli.options import CollectionFolder, Json

EXAMPLES = ("snuh index tickets", "snuh index tickets -k 100 --recall 0.999")


def index(
    collection: CollectionFolder,
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
    from snuh.cli.output import print_facts, print_json
    from snuh.collection import Collection

    with Collection(collection) as opened:
        lists = opened.make_lists(k=k, recall=recall)
    count = len(lists.clusters.centres)
    if as_json:
        told = {"lists": count, "read": lists.probes, "k": lists.k, "recall": lists.recall}
        print_json({"collection": str(collection), **told, "documents": lists.documents})
    else:
        facts = [("collection", str(collection)), ("lists", f"{count:,} of {lists.documents:,} documents")]
        facts.append(("read by a search", f"{lists.probes:,} lists"))
        print_facts([*facts, ("measured recall", f"{lists.recall:.4f} of the nearest {lists.k}")])
