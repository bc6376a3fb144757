"""`snuh encode` and `snuh evaluate`: write the codes of documents, and measure their quality."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.base_command import (
    EmbedWith,
    IdField,
    Json,
    LabelsField,
    ModelFolder,
    ModelOrCollection,
    Source,
    SplitField,
    TextField,
    Vectors,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snuh.metrics import Evaluation

EXAMPLES = (
    "snuh encode model tickets.jsonl --out codes.parquet",
    "cat new.jsonl | snuh encode model - --out codes.jsonl",
)
EVALUATE_EXAMPLES = (
    "snuh evaluate model tickets.jsonl",
    "snuh evaluate model tickets.jsonl --cutoffs 10,100 --json",
    "snuh evaluate model tickets.jsonl --query-split val",
    "snuh evaluate model articles.csv --labels-field topic --split-field part",
    "snuh evaluate tickets",
    "snuh evaluate tickets --queries queries.jsonl --qrels qrels.tsv",
    "snuh evaluate cranfield --queries beir/cranfield --mode hybrid --mode words",
)
RANKED = 1_000  # hits of each judged query


def encode(
    model: ModelFolder,
    source: Source,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Output file: .parquet, .npy or .jsonl.")],
    text_field: TextField = "text",
    id_field: IdField = "id",
    vectors: Vectors = None,
    embed_with: EmbedWith = None,
    as_json: Json = False,
) -> None:
    """Encode documents and write their ids and codes to a file.

    .parquet has the columns id (string) and code (binary). .jsonl has "id" and "code" (hexadecimal) on each
    line. .npy is a uint8 array with one row per document; the ids go to a JSON list with the suffix
    .ids.json. An existing file is replaced once the new one is complete.

    A model that was trained on vectors encodes documents without one by their words.
    """
    import time

    from snuh.cli.base_command import say
    from snuh.cli.output import (
        check_no_source,
        check_writable,
        display,
        load_embedder,
        open_documents,
        plural,
        print_facts,
        print_json,
    )
    from snuh.cli.writers import code_files, code_writer
    from snuh.encoding import encode_source
    from snuh.model import load

    started = time.perf_counter()
    for file in code_files(out):
        check_writable(file)
        check_no_source(file, source)
    loaded = load(model)
    loaded.use_embedding(load_embedder(embed_with, vectors))
    documents = open_documents(source, text_field=text_field, id_field=id_field, vectors=vectors)
    count = unknown = 0
    with display() as progress, code_writer(out, bits=loaded.bits) as write:
        for batch in encode_source(loaded, documents, progress=progress.stage("Encoding")):
            write([document.id for document in batch.documents], batch.codes)
            count += len(batch.documents)
            unknown += int((~batch.known).sum())
    if unknown:
        total = plural(count, "document")
        say(f"warning: {unknown:,} of {total} have no known word: all of them get the same code")
    seconds = time.perf_counter() - started
    if as_json:
        print_json(
            {
                "file": str(out),
                "documents": count,
                "bits": loaded.bits,
                "without_known_words": unknown,
                "seconds": round(seconds, 3),
            }
        )
        return
    facts = [("codes", str(out)), ("documents", f"{count:,}"), ("bits", str(loaded.bits))]
    print_facts([*facts, ("seconds", f"{seconds:.1f}")])


def evaluate(
    model: ModelOrCollection,
    source: Annotated[
        str | None,
        typer.Argument(metavar="SOURCE", help="Documents with labels; default: those of the collection."),
    ] = None,
    cutoffs: Annotated[
        str | None,
        typer.Option(metavar="K,K,...", help="Cutoffs k of precision@k (default: 1,10,50,100,1000)."),
    ] = None,
    query_split: Annotated[str, typer.Option(metavar="SPLIT", help="Split of the queries.")] = "test",
    database_split: Annotated[
        str, typer.Option(metavar="SPLIT", help="Split of the documents to search.")
    ] = "train",
    queries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Judged queries (JSON lines), or a folder in BEIR's layout."),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Grades of documents for the queries.")
    ] = None,
    modes: Annotated[
        list[str] | None,
        typer.Option("--mode", metavar="MODE", help="Mode of the searches; repeat it to compare several."),
    ] = None,
    text_field: TextField = "text",
    id_field: IdField = "id",
    labels_field: LabelsField = "labels",
    split_field: SplitField = "split",
    vectors: Vectors = None,
    embed_with: EmbedWith = None,
    as_json: Json = False,
) -> None:
    """Evaluate a model by labels, or the searches of a collection by judged queries.

    A model: each test document is a query against the train documents, which include documents without a
    split. A hit is relevant if it shares a label with the query. Precision is its expectation over random
    orders of ties. With a collection instead of a model, its own documents are evaluated unless SOURCE is
    given.

    A collection, with --queries: nDCG@10, MAP, recall@100 and MRR of its searches. --qrels has a query id, a
    document id and a grade on each line. With several modes, the first is compared with the others.
    """
    from snuh.cli.output import (
        display,
        holds_collection,
        load_embedder,
        load_model,
        open_documents,
        print_json,
    )
    from snuh.encoding import encode_source
    from snuh.errors import InputError
    from snuh.evaluation import evaluate_splits
    from snuh.io import redact

    if queries is not None:
        if source is not None:
            raise InputError("a collection is evaluated by --queries, a model by SOURCE: omit one of them")
        _evaluate_searches(model, queries, qrels, modes or ["hybrid"], json=as_json)
        return
    if qrels is not None or modes:
        raise InputError("--qrels and --mode are for judged queries: give them with --queries")
    parsed_cutoffs = _parse_cutoffs(cutoffs)
    if source is None and not holds_collection(model):
        raise InputError(f"{redact(model)} is not a collection: give the documents to evaluate as SOURCE")
    loaded = load_model(model)
    loaded.use_embedding(load_embedder(embed_with, vectors))
    documents = open_documents(
        source or model,
        vectors=vectors,
        text_field=text_field,
        id_field=id_field,
        labels_field=labels_field,
        split_field=split_field,
    )
    with display() as progress:
        evaluation = evaluate_splits(
            encode_source(loaded, documents, progress=progress.stage("Encoding")),
            name=documents.name,
            query_split=query_split,
            database_split=database_split,
            cutoffs=parsed_cutoffs,
        )
    summary = {
        "model": redact(model),
        "method": loaded.method,
        "bits": loaded.bits,
        "source": documents.name,
        "query_split": query_split,
        "database_split": database_split,
        **evaluation.to_json(),
    }
    if as_json:
        print_json(summary)
    else:
        _print_evaluation(summary, evaluation)


def _evaluate_searches(
    address: str, queries: Path, qrels: Path | None, modes: Sequence[str], *, json: bool
) -> None:
    from dataclasses import asdict, fields
    from typing import cast

    from snuh.cli.output import display, print_json
    from snuh.collection import Collection
    from snuh.collection.query import Mode
    from snuh.corpus.beir import read_judged
    from snuh.evaluation import evaluate_search
    from snuh.metrics import RankingQuality, paired_interval

    judged = read_judged(queries, qrels)
    qualities: dict[str, dict[str, RankingQuality]] = {}
    with Collection(address) as collection, display() as progress:
        for mode in dict.fromkeys(modes):

            def rank_many(texts: list[str], mode: str = mode) -> list[list[str]]:
                found = collection.search_many(texts, k=RANKED, mode=cast("Mode", mode), characters=1)
                return [[hit.document.id for hit in hits] for hits in found]

            stage = progress.stage(f"Searching by {mode}")
            qualities[mode] = evaluate_search(rank_many, judged, progress=stage)
    first, *others = qualities
    measures = [field.name for field in fields(RankingQuality)]

    def values(mode: str, measure: str) -> list[float]:
        return [getattr(quality, measure) for quality in qualities[mode].values()]

    means = {
        mode: {measure: sum(values(mode, measure)) / len(judged.texts) for measure in measures}
        for mode in qualities
    }
    differences = {
        other: {
            measure: {
                "difference": means[first][measure] - means[other][measure],
                "interval": paired_interval(
                    [a - b for a, b in zip(values(first, measure), values(other, measure), strict=True)]
                ),
            }
            for measure in measures
        }
        for other in others
    }
    summary = {
        "collection": address,
        "queries": len(judged.texts),
        "modes": means,
        "differences": {f"{first} - {other}": by_measure for other, by_measure in differences.items()},
        "per_query": {
            mode: {query: asdict(quality) for query, quality in by_query.items()}
            for mode, by_query in qualities.items()
        },
    }
    if json:
        print_json(summary)
    else:
        _print_searches(len(judged.texts), means, differences)


def _print_searches(
    queries: int, means: dict[str, dict[str, float]], differences: dict[str, dict[str, Any]]
) -> None:
    from rich import box
    from rich.table import Table

    from snuh.cli.output import plural, results_console

    names = {
        "ndcg_at_10": "nDCG@10",
        "average_precision": "MAP",
        "recall_at_100": "recall@100",
        "reciprocal_rank": "MRR",
    }
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("mode", no_wrap=True)
    for name in names.values():
        table.add_column(name, justify="right", no_wrap=True)
    for mode, values in means.items():
        table.add_row(mode, *(f"{values[measure]:.3f}" for measure in names))
    first = next(iter(means))
    for other, by_measure in differences.items():
        cells = []
        for measure in names:
            low, high = by_measure[measure]["interval"]
            cells.append(f"{by_measure[measure]['difference']:+.3f} [{low:+.3f}, {high:+.3f}]")
        table.add_row(f"{first} - {other}", *cells, style="dim")
    console = results_console()
    console.print(
        f"{plural(queries, 'judged query', 'judged queries')}; differences with 95 % intervals over queries"
    )
    console.print(table)


def _parse_cutoffs(text: str | None) -> Sequence[int] | None:
    from snuh.errors import InputError

    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InputError(f'--cutoffs must be positive integers, such as 10,100, got "{text}"')
    return sorted({int(part) for part in parts})


def _print_evaluation(summary: dict[str, Any], evaluation: Evaluation) -> None:
    from rich import box
    from rich.table import Table

    from snuh.cli.output import plural, results_console
    from snuh.metrics import HEADLINE_CUTOFF

    health = evaluation.health
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("", style="dim")
    for cutoff, precision in evaluation.precision.items():
        style = "bold green" if cutoff == HEADLINE_CUTOFF else None
        table.add_row(f"precision@{cutoff}", f"{precision:.4f}", style=style)
    table.add_row(
        "random codes",
        f"{evaluation.random_precision:.4f}",
        "expected precision of random codes",
        end_section=True,
    )
    table.add_row(
        f"within radius {evaluation.radius}",
        f"{evaluation.precision_within_radius:.4f}",
        f"precision; {evaluation.empty_radius_fraction:.0%} of the queries have no document there",
    )
    distinct = health.distinct_codes / health.documents
    table.add_row("distinct codes", f"{health.distinct_codes:,}", f"{distinct:.0%} of the documents")
    table.add_row(
        "largest bucket", f"{health.largest_bucket_fraction:.2%}", "of the documents share one code"
    )
    ones = health.ones_fraction
    constant = f"; {plural(health.constant_bits, 'constant bit')}" if health.constant_bits else ""
    table.add_row("bit balance", f"{min(ones):.2f}–{max(ones):.2f}", f"fraction of ones per bit{constant}")
    correlation = "none" if health.bit_correlation is None else f"{health.bit_correlation:.4f}"
    table.add_row("bit correlation", correlation, "mean absolute value over pairs of bits")
    console = results_console()
    console.print(
        f"[bold]{summary['method']}[/bold], {summary['bits']} bits: "
        f"{plural(evaluation.queries, 'query', 'queries')} ({summary['query_split']}) "
        f"against {plural(health.documents, 'document')} ({summary['database_split']}) of {summary['source']}"
    )
    if evaluation.queries_without_labels:
        skipped = plural(evaluation.queries_without_labels, "document")
        console.print(f"{skipped} of {summary['query_split']} without labels skipped", style="dim")
    console.print(table)
    if not health.alive:
        console.print("The codes are dead: they hardly distinguish documents.", style="bold red")
