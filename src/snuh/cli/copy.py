"""`snuh copy`: a collection at another place, or in another engine."""

from __future__ import annotations

from typing import Annotated

import typer

from snuh.cli.options import CollectionAddress, Json

EXAMPLES = (
    "snuh copy tickets backup",
    'snuh copy tickets "postgresql://user@host/database?collection=tickets"',
    'snuh copy "postgresql://user@host/database?collection=tickets" milvus://host:19530/tickets',
)


def copy(
    collection: CollectionAddress,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="The folder or address, where no collection is yet.")
    ],
    as_json: Json = False,
) -> None:
    """Copy a collection: the same documents, codes, order and model; nothing is encoded anew.

    Others may go on to write; the copy is of the moment in which it started (from Milvus: each document of
    the moment in which it was read). It can be used once it is whole: where the copying is stopped, run it
    again. What "snuh index" made is not copied.
    """
    import shlex
    import time
    from pathlib import Path

    from snuh.addresses import is_remote, shown
    from snuh.cli.display import display
    from snuh.cli.output import check_place, plural, print_facts, print_json, print_steps
    from snuh.collection.copying import copy_collection

    started = time.perf_counter()
    if not is_remote(target):
        check_place(Path(target))
    with display() as bars:
        count = copy_collection(collection, target, progress=bars.stage("Copying"))
    seconds = round(time.perf_counter() - started, 3)
    if as_json:
        told = {"collection": shown(collection), "target": shown(target), "documents": count}
        print_json(told | {"seconds": seconds})
    else:
        print_facts(
            [("made", f"{shown(target)}: {plural(count, 'document')}"), ("seconds", f"{seconds:.1f}")]
        )
        print_steps([f"snuh info {shlex.quote(shown(target))}"])
