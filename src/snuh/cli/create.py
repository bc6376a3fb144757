"""`snuh create`: a new collection, from a model, or from the documents themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.options import (
    MAX_CHARACTERS,
    CollectionAddress,
    IdField,
    Json,
    Length,
    MaxCharacters,
    Method,
    Seed,
    Settings,
    Source,
    TextField,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snuh.collection import Added, Collection
    from snuh.corpus import TextSource
    from snuh.hasher import TextHasher

EXAMPLES = (
    "snuh create tickets --from tickets.jsonl",
    "snuh create articles --from articles.csv --text-field body --bits 128",
    "snuh create tickets --model model --from tickets.jsonl",
    "snuh create tickets --model model",
)


def create(
    collection: Annotated[
        str, typer.Argument(metavar="COLLECTION", help="The folder to make, or an address in a database.")
    ],
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Encode with this model, and learn none.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="SOURCE", help="The documents to fill it with.")
    ] = None,
    bits: Length = None,
    method: Method = None,
    seed: Seed = None,
    settings: Settings = None,
    text_field: TextField = "text",
    id_field: IdField = "id",
    max_characters: MaxCharacters = MAX_CHARACTERS,
    as_json: Json = False,
) -> None:
    """Make a collection: a folder with documents, their codes and a model, that answers searches.

    With --from alone, a model is learnt from the documents, as "snuh fit" does it, and then all of them are
    added, whatever their split. With --model, nothing is learnt, and PyTorch is not needed.
    """
    import time

    from snuh.cli.ingest import added_to_json, check_limit
    from snuh.cli.output import LimitedSource, check_writable, open_texts, print_json
    from snuh.cli.training import make_hasher
    from snuh.collection import Added, Collection, ensure_absent
    from snuh.errors import InputError
    from snuh.model import load
    from snuh.urls import is_remote

    started = time.perf_counter()
    ensure_absent(collection)
    if not is_remote(collection):
        check_writable(Path(collection))
    check_limit(max_characters)
    documents = None
    if source is not None:
        found = open_texts(source, text_field=text_field, id_field=id_field)
        documents = LimitedSource(found, max_characters=max_characters)  # a long text ends even the fit
    learnt = None
    if model is not None:
        _refuse({"--bits": bits, "--method": method, "--seed": seed, "--set": settings})
        Collection.create(collection, load(model)).close()
    elif documents is not None:
        learnt = _learn(
            collection, documents, make_hasher(method, bits=bits, seed=seed, settings=settings or ())
        )
    else:
        raise InputError("a new collection needs --from SOURCE, or --model MODEL, or both")
    with Collection(collection) as made:
        added = Added(0, 0, 0) if documents is None else _fill(made, documents, max_characters)
        told = {
            "collection": made.name,
            "method": made.model.method,
            "bits": made.model.bits,
            **added_to_json(added),
            "fit": learnt,
            "seconds": round(time.perf_counter() - started, 3),
        }
    if as_json:
        print_json(told)
    else:
        _print_made(told)


def _refuse(learning: Mapping[str, object]) -> None:
    from snuh.errors import InputError

    for option, value in learning.items():
        if value not in (None, []):
            raise InputError(f"{option} is for learning a model, and --model names one: leave out either")


def _learn(address: str, source: TextSource, hasher: TextHasher) -> dict[str, Any]:
    """Learn a model and make the collection with it; return a summary."""
    import time
    from tempfile import mkdtemp

    from snuh.cli.fit import summarize
    from snuh.cli.training import learn
    from snuh.collection import Collection
    from snuh.errors import CollectionError, SnuhError
    from snuh.urls import redact

    def make() -> None:
        if hasher.model_ is None:
            return
        try:
            Collection.create(address, hasher.model_).close()
        except SnuhError as error:
            kept = Path(mkdtemp(prefix="snuh-")) / "model"
            hasher.model_.save(kept)
            raise CollectionError(
                f"{error}; the model that was learnt is kept: use --model {kept}"
            ) from error

    started = time.perf_counter()
    model = learn(hasher, source, save=make)
    return summarize(model, redact(address), seconds=time.perf_counter() - started)


def _fill(collection: Collection, source: TextSource, max_characters: int) -> Added:
    from snuh.cli.ingest import fill
    from snuh.errors import InputError, SnuhError

    try:
        return fill(collection, source, max_characters=max_characters)
    except SnuhError as error:
        raise InputError(
            f'{error}; {collection.name} is made: put this right and go on with "snuh add"'
        ) from error


def _print_made(told: Mapping[str, Any]) -> None:
    import shlex

    from snuh.cli.fit import print_summary
    from snuh.cli.output import plural, print_facts, print_steps

    if told["fit"] is not None:
        print_summary(told["fit"])
    folder = shlex.quote(told["collection"])
    documents = plural(told["inserted"] + told["replaced"], "document")
    print_facts(
        [("made", f"{told['collection']}: {documents}, {told['bits']}-bit codes of {told['method']}")]
    )
    steps = [f'snuh search {folder} "what to look for"', f"snuh info {folder}"]
    print_steps(steps if told["inserted"] else [f"snuh add {folder} SOURCE"])


# `snuh add`: documents into a collection.

ADD_EXAMPLES = (
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

    from snuh.cli.ingest import added_facts, added_to_json, check_limit, fill
    from snuh.cli.output import open_texts, print_facts, print_json
    from snuh.collection import Collection
    from snuh.urls import redact

    started = time.perf_counter()
    check_limit(max_characters)
    with Collection(collection) as opened:
        documents = open_texts(source, text_field=text_field, id_field=id_field)
        added = fill(opened, documents, max_characters=max_characters)
        count = len(opened)
    seconds = time.perf_counter() - started
    if as_json:
        told = {"collection": redact(collection), **added_to_json(added), "documents": count}
        print_json(told | {"seconds": round(seconds, 3)})
    else:
        facts = [("collection", f"{redact(collection)}, now {count:,} documents"), *added_facts(added)]
        print_facts([*facts, ("seconds", f"{seconds:.1f}")])
