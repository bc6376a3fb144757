"""`snuh create` and `snuh add`: make a collection, and add documents to it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.base_command import (
    EXIT_INTERRUPTED,
    MAX_CHARACTERS,
    CollectionAddress,
    ConfigFile,
    EmbedWith,
    IdField,
    Json,
    LabelsField,
    Length,
    MaxCharacters,
    Method,
    Seed,
    Settings,
    Source,
    SplitField,
    TextField,
    Vectors,
    say,
)
from snuh.errors import InputError, SnuhError

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
ADD_EXAMPLES = (
    "snuh add tickets new.jsonl",
    "cat new.jsonl | snuh add tickets -",
    "snuh add tickets articles.csv --text-field body --id-field key",
)


def create(
    collection: Annotated[
        str, typer.Argument(metavar="COLLECTION", help="Folder to create, or URL of a database.")
    ],
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Use this model instead of training one.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="SOURCE", help="Documents to add to the collection.")
    ] = None,
    bits: Length = None,
    method: Method = None,
    seed: Seed = None,
    settings: Settings = None,
    config: ConfigFile = None,
    no_words: Annotated[
        bool,
        typer.Option(
            "--no-words", help="Do not index words: smaller, but only the nearest codes are ranked."
        ),
    ] = False,
    text_field: TextField = "text",
    id_field: IdField = "id",
    labels_field: LabelsField = "labels",
    split_field: SplitField = "split",
    vectors: Vectors = None,
    embed_with: EmbedWith = None,
    max_characters: MaxCharacters = MAX_CHARACTERS,
    as_json: Json = False,
) -> None:
    """Create a collection: searchable documents with their codes and a model.

    With --from alone, a model is trained on the documents as by "snuh fit"; then all documents are added,
    whatever their split. With --model, nothing is trained, and PyTorch is not needed.
    """
    from snuh.cli.output import LimitedSource, check_writable, load_embedder, open_texts, print_json
    from snuh.cli.training import make_hasher
    from snuh.collection import Added, Collection, ensure_absent
    from snuh.io import is_remote
    from snuh.model import load

    started = time.perf_counter()
    ensure_absent(collection)
    if not is_remote(collection):
        check_writable(Path(collection))
    _check_max_characters(max_characters)
    documents = None
    if source is not None:
        texts = open_texts(
            source,
            text_field=text_field,
            id_field=id_field,
            labels_field=labels_field,
            split_field=split_field,
            vectors=vectors,
        )
        documents = LimitedSource(texts, max_characters=max_characters)  # checked during training as well
    embed = load_embedder(embed_with, vectors)
    training = None
    if model is not None:
        _reject_training_options(
            {"--bits": bits, "--method": method, "--seed": seed, "--set": settings, "--config": config}
        )
        Collection.create(collection, load(model, embed=embed), words=not no_words).close()
    elif documents is not None:
        hasher = make_hasher(method, bits=bits, seed=seed, settings=settings or (), config=config)
        hasher.embed = embed
        training = _train(collection, documents, hasher, words=not no_words)
    else:
        raise InputError("a new collection needs --from SOURCE, or --model MODEL, or both")
    with Collection(collection, embed=embed) as created:
        added = Added(0, 0, 0) if documents is None else _add_documents(created, documents, max_characters)
        summary = {
            "collection": created.name,
            "method": created.model.method,
            "bits": created.model.bits,
            **added_to_json(added),
            "fit": training,
            "seconds": round(time.perf_counter() - started, 3),
        }
    if as_json:
        print_json(summary)
    else:
        _print_created(summary)


def _reject_training_options(options: Mapping[str, object]) -> None:
    for option, value in options.items():
        if value not in (None, []):
            raise InputError(
                f"{option} is an option for training, and --model skips training: omit one of them"
            )


def _train(address: str, source: TextSource, hasher: TextHasher, *, words: bool) -> dict[str, Any]:
    """Train a model, create the collection with it, and return a summary of the training."""
    from tempfile import mkdtemp

    from snuh.cli.fit import summarize
    from snuh.cli.training import train
    from snuh.collection import Collection
    from snuh.errors import CollectionError
    from snuh.io import redact

    def create_collection() -> None:
        if hasher.model_ is None:
            return
        try:
            Collection.create(address, hasher.model_, words=words).close()
        except SnuhError as error:
            rescued = Path(mkdtemp(prefix="snuh-")) / "model"
            hasher.model_.save(rescued)
            raise CollectionError(f"{error}; the trained model was saved: use --model {rescued}") from error

    started = time.perf_counter()
    model = train(hasher, source, save=create_collection)
    return summarize(model, redact(address), seconds=time.perf_counter() - started)


def _add_documents(collection: Collection, source: TextSource, max_characters: int) -> Added:
    try:
        return _ingest(collection, source, max_characters=max_characters)
    except SnuhError as error:
        raise InputError(
            f'{error}; the collection {collection.name} was created: fix this, then use "snuh add"'
        ) from error


def _print_created(summary: Mapping[str, Any]) -> None:
    import shlex

    from snuh.cli.fit import print_summary
    from snuh.cli.output import plural, print_facts, print_steps

    if summary["fit"] is not None:
        print_summary(summary["fit"])
    name = summary["collection"]
    documents = plural(summary["inserted"] + summary["replaced"], "document")
    print_facts([("created", f"{name}: {documents}, {summary['bits']}-bit codes of {summary['method']}")])
    folder = shlex.quote(name)
    steps = [f'snuh search {folder} "what to look for"', f"snuh info {folder}"]
    print_steps(steps if summary["inserted"] else [f"snuh add {folder} SOURCE"])


def add(
    collection: CollectionAddress,
    source: Source,
    text_field: TextField = "text",
    id_field: IdField = "id",
    labels_field: LabelsField = "labels",
    split_field: SplitField = "split",
    vectors: Vectors = None,
    embed_with: EmbedWith = None,
    max_characters: MaxCharacters = MAX_CHARACTERS,
    as_json: Json = False,
) -> None:
    """Add documents to a collection, replacing documents with the same id.

    A replaced document keeps its position. Documents are written in batches; batches written before an error
    are kept. Documents without known words have no code, and are found by their words only.
    """
    from snuh.cli.output import load_embedder, open_collection, open_texts, print_facts, print_json
    from snuh.io import redact

    started = time.perf_counter()
    _check_max_characters(max_characters)
    with open_collection(collection, load_embedder(embed_with, vectors)) as opened:
        documents = open_texts(
            source,
            text_field=text_field,
            id_field=id_field,
            labels_field=labels_field,
            split_field=split_field,
            vectors=vectors,
        )
        added = _ingest(opened, documents, max_characters=max_characters)
        count = len(opened)
    seconds = time.perf_counter() - started
    if as_json:
        summary = {"collection": redact(collection), **added_to_json(added), "documents": count}
        print_json(summary | {"seconds": round(seconds, 3)})
    else:
        facts = [("collection", f"{redact(collection)}, now {count:,} documents"), *added_facts(added)]
        print_facts([*facts, ("seconds", f"{seconds:.1f}")])


def _check_max_characters(max_characters: int) -> None:
    """Raise InputError for a limit below one character."""
    if max_characters < 1:
        raise InputError(f"--max-characters must be at least 1, got {max_characters}")


def _ingest(collection: Collection, source: TextSource, *, max_characters: int) -> Added:
    """Add the documents of a source; on Ctrl-C exit 130 and keep the documents added so far."""
    from snuh.cli.output import display, plural

    try:
        with display() as progress:
            added = collection.add(source.documents(progress.stage("Adding")), max_characters=max_characters)
    except KeyboardInterrupt:
        documents = plural(len(collection), "document")
        say(f"interrupted: documents added so far are kept, {collection.name} now has {documents}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if added.without_code:
        total = plural(added.inserted + added.replaced, "document")
        say(f"warning: {added.without_code:,} of {total} have no word that the model knows, and so no code")
    return added


def added_to_json(added: Added) -> dict[str, Any]:
    """Return the counts as a JSON object."""
    return {
        "inserted": added.inserted,
        "replaced": added.replaced,
        "without_known_words": added.without_code,
    }


def added_facts(added: Added) -> list[tuple[str, str]]:
    """Return the counts as names and values to print."""
    return [
        ("inserted", f"{added.inserted:,}"),
        ("replaced", f"{added.replaced:,}"),
        ("without known words", f"{added.without_code:,}"),
    ]
