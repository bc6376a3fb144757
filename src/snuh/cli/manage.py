"""`snuh info`: what a collection is, and how well its codes tell documents apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.base_command import check_text
from snuh.cli.options import CollectionAddress, IdField, Json, TextField, Where

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snuh.collection import Info

INFO_EXAMPLES = ("snuh info tickets", "snuh info tickets --json")


def info(collection: CollectionAddress, as_json: Json = False) -> None:
    """Tell what a collection holds, what it takes on disk, and how good its codes look.

    Where something about the codes is bad, a line says so in plain words, and what to do.
    """
    from snuh.cli.output import print_json
    from snuh.collection import Collection
    from snuh.collection.results import info_to_json

    with Collection(collection) as opened:
        found = opened.info()
        training = opened.model.training
    if as_json:
        print_json(info_to_json(found, training))
    else:
        _print(found, training)


def _describe_index(found: Info) -> str:
    if (index := found.index) is None:
        return 'not prepared; "snuh index" does it where exact searches take too long'
    return (
        f"{index.description}, which found {index.recall:.1%} of the nearest {index.k} "
        f"among {index.documents:,} documents"
    )


def _print(found: Info, training: Mapping[str, Any]) -> None:
    from rich.text import Text

    from snuh.cli.base_command import harmless
    from snuh.cli.output import print_facts, results_console
    from snuh.collection.results import hints, mean_balance

    disk = (
        f"{found.bytes_per_document:,.0f} on disk with text and metadata" if found.documents else "none yet"
    )
    learnt_from = training.get("documents")
    origin = f"{learnt_from:,} documents" if isinstance(learnt_from, int) else "unknown"
    if training.get("source"):
        origin += f" of {training['source']}"
    facts = [
        ("collection", found.name),
        ("documents", f"{found.documents:,}, of which searches can find {found.searchable:,}"),
        ("bytes a document", f"{disk}; {found.bits // 8} scanned by a search"),
        ("model", f"{found.method}, {found.bits} bits, {found.model}"),
        ("learnt from", harmless(origin)),
        ("fields", harmless(", ".join(found.fields)) or "no metadata"),
        ("index", _describe_index(found)),
    ]
    if (health := found.health) is not None:
        share = health.distinct_codes / health.documents
        of = "" if health.documents == found.searchable else f" in a sample of {health.documents:,}"
        facts += [
            ("distinct codes", f"{health.distinct_codes:,}, {share:.0%} of the documents{of}"),
            ("biggest bucket", f"{health.largest_bucket_fraction:.2%} of the documents share one code"),
            ("bit balance", f"{mean_balance(found):.2f} on average (0.50 is best)"),
            ("constant bits", str(health.constant_bits)),
        ]
    print_facts(facts)
    console = results_console()
    for hint in hints(found):
        console.print(Text(f"! {hint}", style="yellow"), soft_wrap=True)


# `snuh delete`: documents out of a collection.

DELETE_EXAMPLES = (
    "snuh delete tickets ticket-7 ticket-12",
    "snuh delete tickets --where 'year < 2020'",
    "snuh delete tickets -- -7",
)


def delete(
    collection: CollectionAddress,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="The documents to delete.", show_default=False)
    ] = None,
    where: Where = None,
    as_json: Json = False,
) -> None:
    """Delete documents from a collection, by their ids or by a filter.

    Nothing is asked: try the filter with "snuh search --where" or "snuh export --where" first. Where an id is
    unknown, nothing is deleted. An id that starts with "-" comes after "--".
    """
    from snuh.cli.output import plural, print_facts, print_json
    from snuh.collection import Collection
    from snuh.errors import InputError
    from snuh.urls import redact

    for doc_id in ids or ():
        check_text(doc_id)
    if bool(ids) == (where is not None):
        raise InputError("expected either ids or --where FILTER, got " + ("both" if ids else "neither"))
    with Collection(collection) as opened:
        deleted = opened.delete_where(where) if where is not None else opened.delete(ids or ())
        left = len(opened)
    if as_json:
        print_json({"collection": redact(collection), "deleted": deleted, "documents": left})
    else:
        print_facts([("deleted", plural(deleted, "document")), ("left", plural(left, "document"))])


# `snuh copy`: a collection at another place, or in another engine.

COPY_EXAMPLES = (
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

    from snuh.cli.output import check_writable, display, plural, print_facts, print_json, print_steps
    from snuh.collection.copy import copy_collection
    from snuh.urls import is_remote, redact

    started = time.perf_counter()
    if not is_remote(target):
        check_writable(Path(target))
    with display() as bars:
        count = copy_collection(collection, target, progress=bars.stage("Copying"))
    seconds = round(time.perf_counter() - started, 3)
    if as_json:
        told = {"collection": redact(collection), "target": redact(target), "documents": count}
        print_json(told | {"seconds": seconds})
    else:
        print_facts(
            [("made", f"{redact(target)}: {plural(count, 'document')}"), ("seconds", f"{seconds:.1f}")]
        )
        print_steps([f"snuh info {shlex.quote(redact(target))}"])


# `snuh rehash`: codes of another model for a collection.

REHASH_EXAMPLES = ("snuh fit tickets --out better --bits 128", "snuh rehash tickets --model better")


def rehash(
    collection: CollectionAddress,
    model: Annotated[Path, typer.Option(metavar="MODEL", help='A model folder made by "snuh fit".')],
    as_json: Json = False,
) -> None:
    """Encode all documents of a collection anew, with another model.

    Searches go on with the old codes until all new ones are there; a stop at any point leaves the old ones in
    use. The model is copied into the collection.
    """
    import time

    from snuh.cli.output import display, print_facts, print_json
    from snuh.collection import Collection
    from snuh.model import load
    from snuh.urls import redact

    started = time.perf_counter()
    with Collection(collection) as opened:
        loaded = load(model)
        before = opened.model.bits
        with display() as bars:
            opened.rehash(loaded, progress=bars.stage("Rehashing"))
        count = len(opened)
    seconds = time.perf_counter() - started
    if as_json:
        told = {"collection": redact(collection), "method": loaded.method, "bits": loaded.bits}
        print_json(told | {"bits_before": before, "documents": count, "seconds": round(seconds, 3)})
    else:
        facts = [("collection", redact(collection)), ("documents", f"{count:,}")]
        facts.append(("codes", f"{loaded.bits} bits of {loaded.method} (before: {before} bits)"))
        print_facts([*facts, ("seconds", f"{seconds:.1f}")])


# `snuh index`: lists of neighbouring codes, for approximate searches in a large collection.

INDEX_EXAMPLES = ("snuh index tickets", "snuh index tickets -k 100 --recall 0.999")


def index(
    collection: CollectionAddress,
    k: Annotated[int, typer.Option("-k", metavar="N", help="The hits for which the recall counts.")] = 10,
    recall: Annotated[
        float, typer.Option(metavar="SHARE", help="The share of the exact answer to find.")
    ] = 0.99,
    as_json: Json = False,
) -> None:
    """Prepare a large collection for "snuh search --approximate", which reads only a part of the codes.

    The codes are put into lists around centres; as many of the nearest lists are read as it takes to find the
    wanted share of the exact answer, measured on documents of the collection itself. Documents that come
    later are found as well. Without --approximate, searches stay exact.
    """
    from snuh.cli.output import print_facts, print_json
    from snuh.collection import Collection
    from snuh.collection.results import index_to_json
    from snuh.urls import redact

    with Collection(collection) as opened:
        made = opened.build_index(k=k, recall=recall)
    if as_json:
        print_json({"collection": redact(collection), **index_to_json(made)})
    else:
        facts = [("collection", redact(collection)), ("documents", f"{made.documents:,}")]
        facts.append(("index", made.description))
        print_facts([*facts, ("measured recall", f"{made.recall:.4f} of the nearest {made.k}")])


# `snuh export`: the documents of a collection, as a file that every other command reads.

if TYPE_CHECKING:
    from snuh.collection import Collection
    from snuh.corpus import Document, FractionCallback
    from snuh.model import Model

EXPORT_EXAMPLES = (
    "snuh export tickets --out tickets.jsonl.gz",
    "snuh export tickets --out recent.parquet --where 'year >= 2020'",
    "snuh export tickets --out tickets.csv --codes",
)
DOCUMENTS_PER_REPORT = 256


def export(
    collection: CollectionAddress,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="A file ending in .jsonl, .jsonl.gz, .parquet or .csv.")
    ],
    where: Where = None,
    codes: Annotated[bool, typer.Option("--codes", help="Add the code of each, in hexadecimal.")] = False,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Write the documents of a collection to a file, in order of insertion.

    "snuh add", "snuh fit" and the others read it back. Only JSON lines keep all metadata as they are: a cell
    of a table holds a list or an object as JSON text. An existing file is replaced once the new one is
    complete.
    """
    from snuh.cli.document_writers import Layout, check_suffix, open_writer
    from snuh.cli.output import check_writable, display, print_facts, print_json
    from snuh.collection import Collection
    from snuh.urls import redact

    check_suffix(out)
    check_writable(out)
    layout = Layout(text_field, id_field, has_codes=codes)
    count = 0
    with Collection(collection) as opened, display() as bars:
        look = _documents(opened, where, bars.stage("Looking at the fields"))
        with open_writer(out, layout, lambda: look) as write:
            documents = _documents(opened, where, bars.stage("Writing"))
            for document, code in _with_codes(opened.model, documents, wanted=codes):
                write(document, code)
                count += 1
    if as_json:
        print_json({"collection": redact(collection), "file": str(out), "documents": count})
    else:
        print_facts([("file", str(out)), ("documents", f"{count:,}")])


def _documents(collection: Collection, where: str | None, progress: FractionCallback) -> Iterator[Document]:
    total = max(1, len(collection))
    for count, document in enumerate(collection.documents(where=where)):
        if count % DOCUMENTS_PER_REPORT == 0:
            progress(min(1.0, count / total))
        yield document
    progress(1.0)


def _with_codes(
    model: Model, documents: Iterable[Document], *, wanted: bool
) -> Iterator[tuple[Document, str | None]]:
    """Yield documents with their codes; None for one without any word that the model knows."""
    from snuh.encoding import encode_documents

    if not wanted:
        yield from ((document, None) for document in documents)
        return
    for batch in encode_documents(model, documents):
        for document, code, known in zip(batch.documents, batch.codes, batch.known, strict=True):
            yield document, code.tobytes().hex() if known else None
