"""`snuh spark fit` and `snuh spark encode`: batch jobs on Apache Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.base_command import IdField, Json, Length, Method, Seed, Settings, TextField

if TYPE_CHECKING:
    from snuh.spark.encoding import WrittenCodes

HELP = "Fit and encode on Apache Spark, on this machine or a cluster."
FIT_EXAMPLES = (
    "snuh spark fit tickets.parquet --out model --workers 2",
    "snuh spark fit tickets.jsonl --out model --master spark://host:7077 --conf spark.executor.memory=8g",
)
ENCODE_EXAMPLES = (
    "snuh spark encode tickets.parquet --model model --out codes.parquet",
    "snuh spark encode tickets.jsonl --into postgresql://localhost/tickets --master spark://host:7077",
)

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="Parquet or JSON lines: a file, a folder of files, a URL that Spark reads, or a corpus name.",
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The Spark master, such as local[2] or spark://host:7077; default: this machine.",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="KEY=VALUE",
        help="A Spark property, such as spark.executor.memory=8g; repeatable.",
    ),
]


def fit(
    source: Source,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The model folder to write.")],
    method: Method = None,
    bits: Length = None,
    seed: Seed = None,
    settings: Settings = None,
    workers: Annotated[
        int, typer.Option(metavar="N", help="Processes that train together, on one core each.")
    ] = 1,
    master: Master = None,
    conf: Conf = None,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Fit a model with Spark and write a model folder.

    The vocabulary equals that of "snuh fit". A model that exists at --out is replaced once the new one is
    complete.
    """
    import time

    from snuh.cli.fit import print_summary, summarize
    from snuh.cli.output import check_writable, display, print_json
    from snuh.cli.training import make_hasher
    from snuh.io import check_replaceable
    from snuh.spark import fit as fit_on_spark
    from snuh.spark import open_session, read_documents

    started = time.perf_counter()
    hasher = make_hasher(method, bits=bits, seed=seed, settings=settings or ())
    check_replaceable(out)
    check_writable(out)
    with display() as shown:
        shown.show("Starting Spark", 0.0)
        with open_session(master, settings=_spark_settings(conf or ())) as session:
            frame = read_documents(session, source, text_field=text_field, id_field=id_field)
            model = fit_on_spark(
                frame,
                method=hasher.method,
                bits=hasher.bits,
                seed=hasher.seed,
                features=hasher.features,
                parameters=hasher.parameters,
                workers=workers,
                source=Path(source).name,
                on_progress=shown,
            )
            model.save(out)
    summary = summarize(model, out, seconds=time.perf_counter() - started)
    if as_json:
        print_json(summary)
    else:
        print_summary(summary)


def encode(
    source: Source,
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help='A model folder made by "snuh fit"; required with --out.'),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The folder of Parquet files to write, such as codes.parquet."),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            metavar="COLLECTION", help='A collection made by "snuh create", to add the documents to.'
        ),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of files, or of executors that write to the collection."),
    ] = None,
    master: Master = None,
    conf: Conf = None,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Encode documents with Spark, to Parquet files or into a collection.

    The files have the columns id (string) and code (binary). A job that was stopped resumes, and one that is
    finished writes nothing. A collection is upserted by id and encodes with its own model.
    """
    import time

    from snuh.cli.create import added_facts, added_to_json
    from snuh.cli.output import check_writable, display, print_facts, print_json
    from snuh.errors import InputError
    from snuh.spark import add_to_collection, open_session, read_documents, write_codes

    if (out is None) == (into is None):
        raise InputError("expected either --out FOLDER or --into COLLECTION")
    if (out is None) != (model is None):
        raise InputError("--model and --out go together: a collection encodes with its own model")
    if out is not None:
        check_writable(out)
    started = time.perf_counter()
    facts: list[tuple[str, str]]
    with display() as shown:
        shown.show("Starting Spark", 0.0)
        with open_session(master, settings=_spark_settings(conf or ())) as session:
            frame = read_documents(session, source, text_field=text_field, id_field=id_field)
            on_check, on_progress = shown.stage("Checking the documents"), shown.stage("Encoding")
            if into is not None:
                added = add_to_collection(
                    frame, into, writers=parts, on_check=on_check, on_progress=on_progress
                )
                result, facts = added_to_json(added), added_facts(added)
            else:
                written = write_codes(
                    frame, model or "", out or "", parts=parts, on_check=on_check, on_progress=on_progress
                )
                result, facts = _written_to_json(written), _written_facts(written)
    seconds = time.perf_counter() - started
    if as_json:
        print_json({**result, "seconds": round(seconds, 3)})
    else:
        print_facts([*facts, ("seconds", f"{seconds:.1f}")])


def _written_to_json(written: WrittenCodes) -> dict[str, Any]:
    return {
        "folder": str(written.folder),
        "documents": written.documents,
        "without_known_words": written.without_known_words,
        "parts": written.parts,
        "parts_reused": written.parts_reused,
        "already_written": written.already_written,
    }


def _written_facts(written: WrittenCodes) -> list[tuple[str, str]]:
    state = "written"
    if written.already_written:
        state = "already written, for the same documents and model: nothing to do"
    elif written.parts_reused:
        state = f"written, {written.parts_reused} of {written.parts} parts by an earlier run"
    return [
        ("codes", str(written.folder)),
        ("state", state),
        ("documents", f"{written.documents:,}"),
        ("without any known word", f"{written.without_known_words:,}"),
        ("files", str(written.parts)),
    ]


def _spark_settings(assignments: list[str] | tuple[str, ...]) -> dict[str, str]:
    from snuh.errors import InputError

    settings = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not key.startswith("spark.") or not equals:
            raise InputError(f'--conf expects spark.KEY=VALUE, got "{assignment}"')
        settings[key] = value
    return settings
