"""`snuh add`: documents into a collection."""

from __future__ import annotations

from snuh.cli.options import (
    MAX_CHARACTERS,
    CollectionAddress,
    IdField,
    Json,
    MaxCharacters,
    Source,
    TextField,
)

EXAMPLES = (
    "snuh add tickets new.jsonl",
    "cat new.jsonl | snuh add tickets -",
    "snuh add tickets articles.csv --text-field body --id-field key",
)


def add(
    collection: CollectionAddress,
    source: Source,
    text_field: TextField = "text",
    id_field: IdField = "id",
    max_characters: MaxCharacters = MAX_CHARACTERS,
    as_json: Json = False,
) -> None:
    """Add documents to a collection; one whose id is already there is replaced, and keeps its place.

    Documents are written in batches, and a batch that is written stays, also where a later one fails. Those
    without any word that the model knows are kept, but searches do not find them.
    """
    import time

    from snuh.addresses import shown
    from snuh.cli.filling import added_facts, added_to_json, check_limit, fill
    from snuh.cli.output import print_facts, print_json
    from snuh.cli.sources import open_texts
    from snuh.collection import Collection

    started = time.perf_counter()
    check_limit(max_characters)
    with Collection(collection) as opened:
        documents = open_texts(source, text_field=text_field, id_field=id_field)
        added = fill(opened, documents, max_characters=max_characters)
        count = len(opened)
    seconds = time.perf_counter() - started
    if as_json:
        told = {"collection": shown(collection), **added_to_json(added), "documents": count}
        print_json(told | {"seconds": round(seconds, 3)})
    else:
        facts = [("collection", f"{shown(collection)}, now {count:,} documents"), *added_facts(added)]
        print_facts([*facts, ("seconds", f"{seconds:.1f}")])
