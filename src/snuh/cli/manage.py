"""Commands on a whole collection: `snuh info`, `check`, `delete`, `copy`, `rehash`, `index` and `export`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.base_command import CollectionAddress, EmbedWith, IdField, Json, TextField, Where, check_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snuh.collection import Collection, Info
    from snuh.corpus import Document

MAX_PROBLEMS = 20  # to print
CHECK_EXAMPLES = ("snuh check tickets", "snuh check tickets --json")
INFO_EXAMPLES = ("snuh info tickets", "snuh info tickets --json")
DELETE_EXAMPLES = (
    "snuh delete tickets ticket-7 ticket-12",
    "snuh delete tickets --where 'year < 2020'",
    "snuh delete tickets -- -7",
)
COPY_EXAMPLES = (
    "snuh copy tickets backup",
    'snuh copy tickets "postgresql://user@host/database?collection=tickets"',
    'snuh copy "postgresql://user@host/database?collection=tickets" milvus://host:19530/tickets',
)
REHASH_EXAMPLES = ("snuh fit tickets --out better --bits 128", "snuh rehash tickets --model better")
INDEX_EXAMPLES = ("snuh index tickets", "snuh index tickets -k 100 --recall 0.999")
EXPORT_EXAMPLES = (
    "snuh export tickets --out tickets.jsonl.gz",
    "snuh export tickets --out recent.parquet --where 'year >= 2020'",
    "snuh export tickets --out tickets.csv --codes",
)


def info(collection: CollectionAddress, as_json: Json = False) -> None:
    """Show the contents of a collection, its size on disk, and the quality of its codes.

    Problems with the codes are reported with advice.
    """
    from snuh.cli.output import print_json
    from snuh.collection import Collection
    from snuh.collection.results import info_to_json

    with Collection(collection) as opened:
        about = opened.info()
        training = opened.model.training
    if as_json:
        print_json(info_to_json(about, training))
    else:
        _print_info(about, training)


def _print_info(about: Info, training: Mapping[str, Any]) -> None:
    from rich.text import Text

    from snuh.cli.output import print_facts, results_console
    from snuh.collection.results import hints, mean_balance
    from snuh.text import sanitize

    disk = (
        f"{about.bytes_per_document:,.0f} on disk with text and metadata" if about.documents else "none yet"
    )
    training_documents = training.get("documents")
    trained_on = f"{training_documents:,} documents" if isinstance(training_documents, int) else "unknown"
    if training.get("source"):
        trained_on += f" of {training['source']}"
    facts = [
        ("collection", about.name),
        ("documents", f"{about.documents:,}, {about.searchable:,} of them searchable"),
        ("bytes per document", f"{disk}; {about.bits // 8} read by a search"),
        ("model", f"{about.method}, {about.bits} bits, {about.model}"),
        ("trained on", sanitize(trained_on)),
        *([] if about.vectors is None else [("vectors", sanitize(_describe_vectors(about)))]),
        ("fields", sanitize(", ".join(about.fields)) or "no metadata"),
        ("index", _describe_index(about)),
    ]
    if (health := about.health) is not None:
        distinct = health.distinct_codes / health.documents
        sample = "" if health.documents == about.searchable else f" in a sample of {health.documents:,}"
        facts += [
            ("distinct codes", f"{health.distinct_codes:,}, {distinct:.0%} of the documents{sample}"),
            ("largest bucket", f"{health.largest_bucket_fraction:.2%} of the documents share one code"),
            ("bit balance", f"{mean_balance(about):.2f} on average (0.50 is ideal)"),
            ("constant bits", str(health.constant_bits)),
        ]
    print_facts(facts)
    console = results_console()
    for hint in hints(about):
        console.print(Text(f"! {hint}", style="yellow"), soft_wrap=True)


def _describe_vectors(about: Info) -> str:
    if about.vectors is None:
        return "none"
    embedded = "words alone" if about.embedding is None else f"embedded by {about.embedding}"
    fraction = "no documents yet"
    if about.vector_fraction is not None:
        fraction = f"{about.vector_fraction:.0%} of a sample of codes differ from those of words alone"
    return f"{about.vectors.name}, {about.vectors.dims} dimensions; {fraction}; texts without: {embedded}"


def _describe_index(about: Info) -> str:
    if (index := about.index) is None:
        return 'none; build one with "snuh index" if exact searches are too slow'
    return (
        f"{index.description}, recall {index.recall:.1%} of the nearest {index.k} "
        f"among {index.documents:,} documents"
    )


def check(collection: CollectionAddress, as_json: Json = False) -> None:
    """Verify a collection: its files, every document, and that every code is the one of its text.

    If the model reads vectors, the codes are not compared: vectors are not stored. Prints what is wrong and
    what to do, and exits with 1 if anything is. Nothing is changed.
    """
    from snuh.cli.output import display, plural, print_facts, print_json
    from snuh.collection import Collection
    from snuh.errors import CollectionError, ModelError

    documents, reads_vectors = 0, False
    try:
        with Collection(collection) as opened, display() as progress:
            documents, reads_vectors = len(opened), opened.model.vectors is not None
            problems = opened.check(progress=progress.stage("Checking"))
    except (CollectionError, ModelError) as error:
        problems = [str(error)]
    if as_json:
        print_json({"documents": documents, "codes_compared": not reads_vectors, "problems": problems})
    elif problems:
        print_facts(
            [
                *(("problem", problem) for problem in problems[:MAX_PROBLEMS]),
                ("problems", f"{len(problems):,}"),
                ("what to do", "restore the collection from a copy, or create it again from its source"),
            ]
        )
    else:
        compared = [("codes", "not compared: they depend on vectors, which are not stored")]
        facts = [("documents", plural(documents, "document")), *(compared if reads_vectors else [])]
        print_facts([*facts, ("problems", "none")])
    if problems:
        raise typer.Exit(1)


def delete(
    collection: CollectionAddress,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Documents to delete.", show_default=False)
    ] = None,
    where: Where = None,
    as_json: Json = False,
) -> None:
    """Delete documents from a collection, by id or by a filter.

    Deletion is not confirmed: try a filter with "snuh search --where" or "snuh export --where" first. If an
    id is unknown, nothing is deleted. Write "--" before ids that start with "-".
    """
    from snuh.cli.output import plural, print_facts, print_json
    from snuh.collection import Collection
    from snuh.errors import InputError
    from snuh.io import redact

    for doc_id in ids or ():
        check_text(doc_id)
    if bool(ids) == (where is not None):
        raise InputError("expected either ids or --where FILTER, got " + ("both" if ids else "neither"))
    with Collection(collection) as opened:
        deleted = opened.delete_where(where) if where is not None else opened.delete(ids or ())
        remaining = len(opened)
    if as_json:
        print_json({"collection": redact(collection), "deleted": deleted, "documents": remaining})
    else:
        print_facts([("deleted", plural(deleted, "document")), ("remaining", plural(remaining, "document"))])


def copy(
    collection: CollectionAddress,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="Folder or URL of the new collection.")],
    as_json: Json = False,
) -> None:
    """Copy a collection: documents, codes, order and model.

    The copy is a snapshot of the moment in which it started, and writes may continue meanwhile. (From Milvus,
    each document is as of the moment in which it was read.) The copy appears once it is complete; run the
    command again if it was interrupted. The index built by "snuh index" is not copied.
    """
    import shlex
    import time

    from snuh.cli.output import check_writable, display, plural, print_facts, print_json, print_steps
    from snuh.collection.copy import copy_collection
    from snuh.io import is_remote, redact

    started = time.perf_counter()
    if not is_remote(target):
        check_writable(Path(target))
    with display() as progress:
        count = copy_collection(collection, target, progress=progress.stage("Copying"))
    seconds = round(time.perf_counter() - started, 3)
    if as_json:
        summary = {"collection": redact(collection), "target": redact(target), "documents": count}
        print_json(summary | {"seconds": seconds})
    else:
        print_facts(
            [("created", f"{redact(target)}: {plural(count, 'document')}"), ("seconds", f"{seconds:.1f}")]
        )
        print_steps([f"snuh info {shlex.quote(redact(target))}"])


def rehash(
    collection: CollectionAddress,
    model: Annotated[Path, typer.Option(metavar="MODEL", help='Model folder made by "snuh fit".')],
    embed_with: EmbedWith = None,
    as_json: Json = False,
) -> None:
    """Encode all documents of a collection again, with another model.

    Searches use the old codes until all new ones are written; an interrupted rehash leaves the old codes in
    use. The model is copied into the collection. Collections store no vectors: a model that reads them
    encodes words alone, unless --embed-with makes the vectors again.
    """
    import time

    from snuh.cli.base_command import say
    from snuh.cli.output import display, load_embedder, print_facts, print_json
    from snuh.collection import Collection
    from snuh.io import redact
    from snuh.model import load

    started = time.perf_counter()
    with Collection(collection) as opened:
        loaded = load(model, embed=load_embedder(embed_with))
        bits_before = opened.model.bits
        if loaded.vectors is not None and loaded.embed is None:
            say("warning: vectors are not stored: words alone are encoded; --embed-with makes vectors again")
        with display() as progress:
            opened.rehash(loaded, progress=progress.stage("Rehashing"))
        count = len(opened)
    seconds = time.perf_counter() - started
    if as_json:
        summary = {"collection": redact(collection), "method": loaded.method, "bits": loaded.bits}
        print_json(summary | {"bits_before": bits_before, "documents": count, "seconds": round(seconds, 3)})
    else:
        facts = [("collection", redact(collection)), ("documents", f"{count:,}")]
        facts.append(("codes", f"{loaded.bits} bits of {loaded.method} (before: {bits_before} bits)"))
        print_facts([*facts, ("seconds", f"{seconds:.1f}")])


def index(
    collection: CollectionAddress,
    k: Annotated[int, typer.Option("-k", metavar="N", help="Number of hits to measure the recall for.")] = 10,
    recall: Annotated[
        float, typer.Option(metavar="FRACTION", help="Fraction of the exact hits to find.")
    ] = 0.99,
    as_json: Json = False,
) -> None:
    """Build an index for "snuh search --approximate", which reads only a part of the codes.

    Codes are assigned to IVF lists around centroids. A search reads as many of the nearest lists as it takes
    to reach the recall, measured on documents of the collection. Documents added later are found as well.
    Searches without --approximate stay exact.
    """
    from snuh.cli.output import print_facts, print_json
    from snuh.collection import Collection
    from snuh.collection.results import index_to_json
    from snuh.io import redact

    with Collection(collection) as opened:
        built = opened.build_index(k=k, recall=recall)
    if as_json:
        print_json({"collection": redact(collection), **index_to_json(built)})
    else:
        facts = [("collection", redact(collection)), ("documents", f"{built.documents:,}")]
        facts.append(("index", built.description))
        print_facts([*facts, ("measured recall", f"{built.recall:.4f} of the nearest {built.k}")])


def export(
    collection: CollectionAddress,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Output file: .jsonl, .jsonl.gz, .parquet or .csv.")
    ],
    where: Where = None,
    codes: Annotated[bool, typer.Option("--codes", help="Include the codes, in hexadecimal.")] = False,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Export the documents of a collection to a file, in insertion order.

    "snuh add", "snuh fit" and other commands read the file. Only JSON lines preserve all metadata: tables
    store lists and objects as JSON text. An existing file is replaced once the new one is complete.
    """
    from snuh.cli.output import check_writable, display, print_facts, print_json, with_progress
    from snuh.cli.writers import DOCUMENT_SUFFIXES, Layout, check_suffix, document_writer
    from snuh.collection import Collection
    from snuh.io import redact

    check_suffix(out, DOCUMENT_SUFFIXES, what="documents")
    check_writable(out)
    layout = Layout(text_field, id_field, has_codes=codes)
    count = 0
    with Collection(collection) as opened, display() as progress:

        def read(stage: str) -> Iterator[Document]:
            documents = opened.documents(where=where)
            return with_progress(documents, len(opened), progress.stage(stage))

        with document_writer(out, layout, lambda: read("Reading the fields")) as write:
            for document, code in _with_codes(opened, read("Writing"), wanted=codes):
                write(document, code)
                count += 1
    if as_json:
        print_json({"collection": redact(collection), "file": str(out), "documents": count})
    else:
        print_facts([("file", str(out)), ("documents", f"{count:,}")])


def _with_codes(
    collection: Collection, documents: Iterable[Document], *, wanted: bool
) -> Iterator[tuple[Document, str | None]]:
    """Yield documents with their codes in hexadecimal; None for documents without a code."""
    from snuh.encoding import document_batches

    if not wanted:
        yield from ((document, None) for document in documents)
        return
    for batch in document_batches(documents):
        codes = collection.codes(document.id for document in batch)
        for document in batch:
            code = codes.get(document.id)
            yield document, None if code is None else code.hex()
