"""`snuh search` and `snuh similar`: the documents nearest to a text or to a document."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from snuh.cli.base_command import (
    Approximate,
    CollectionAddress,
    EmbedWith,
    Explain,
    IdField,
    Json,
    K,
    Radius,
    RerankBy,
    SearchMode,
    TextField,
    Where,
    check_text,
    say,
)
from snuh.errors import InputError
from snuh.text import sanitize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console
    from rich.text import Text

    from snuh.collection import Rerank
    from snuh.collection.query import Mode, SearchOptions
    from snuh.explain import Explanation, WordContribution
    from snuh.features.vectors import Embed
    from snuh.model import Model
    from snuh.search import Hit, Hits

EXAMPLES = (
    'snuh search tickets "printer is on fire"',
    "snuh search tickets \"printer is on fire\" --where 'year >= 2020' --rerank cosine --explain",
    "snuh search tickets --queries questions.jsonl -k 3 > hits.jsonl",
    'snuh search tickets.jsonl "printer is on fire" --model model -k 3 --json',
)
SIMILAR_EXAMPLES = (
    "snuh similar tickets ticket-7",
    "snuh similar tickets ticket-7 -k 3 --where 'year >= 2020' --explain",
    "snuh similar tickets -- -7",
)

STRONG, WEAK = 0.35, 0.05  # weights from which a word is highlighted
MAX_QUERIES_PER_BATCH, MAX_HITS_PER_BATCH = 1_000, 20_000  # hits hold whole documents in memory
MAX_IDS_SHOWN = 5


def search(
    target: Annotated[
        str, typer.Argument(metavar="COLLECTION", help="Collection, or with --model any source.")
    ],
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="Text to search for.", callback=check_text, show_default=False),
    ] = None,
    k: K = 10,
    where: Where = None,
    mode: SearchMode = None,
    rerank: RerankBy = None,
    radius: Radius = None,
    approximate: Approximate = False,
    explain: Explain = False,
    queries: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Search for each text of this source; outputs JSON lines."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Search a source instead of a collection.")
    ] = None,
    text_field: TextField = "text",
    id_field: IdField = "id",
    embed_with: EmbedWith = None,
    as_json: Json = False,
) -> None:
    """Search for the documents that have the words of a text, or are about the same thing.

    The score of a hit is the sum of two: that of the words it has in common with the text (BM25), and that of
    its code. "Quoted phrases" and +words must occur, -words must not. With --mode words only words count.

    With --mode codes hits are ordered by Hamming distance, the number of differing bits, and then by
    their words; --radius, --rerank and --approximate imply it. --rerank asymmetric weighs each bit by how
    certain the query is of it, --rerank cosine compares TF-IDF rows.

    If the model reads vectors, --embed-with makes that of the text; without it, words alone are searched for.
    """
    from snuh.cli.output import holds_collection, load_embedder
    from snuh.io import is_remote, redact

    _check_k(k)
    if (text is None) == (queries is None):
        raise InputError(
            "expected a text to search for, or --queries FILE, got " + ("neither" if text is None else "both")
        )
    if model is not None:
        if holds_collection(target):
            raise InputError(f"{redact(target)} is a collection, which has its own model: omit --model")
        _reject_collection_options(
            {
                "--where": where,
                "--mode": mode,
                "--rerank": rerank,
                "--radius": radius,
                "--queries": queries,
                "--explain": explain or None,
                "--approximate": approximate or None,
                "--embed-with": embed_with,
            },
            target,
        )
        _search_source(target, text or "", model, k=k, text_field=text_field, id_field=id_field, json=as_json)
        return
    if not is_remote(target) and Path(target).exists() and not holds_collection(target):
        raise InputError(
            f'{target} is not a collection: create one with "snuh create FOLDER --from {target}", '
            "or name a model with --model"
        )
    options = _search_options(k, where, radius, rerank, approximate)
    if mode is not None:
        options["mode"] = cast("Mode", mode)
    embed = load_embedder(embed_with)
    if queries is not None:
        _search_queries(
            *(target, queries, options),
            explained=explain,
            text_field=text_field,
            id_field=id_field,
            embed=embed,
        )
    else:
        _search_collection(target, text or "", options, explained=explain, json=as_json, embed=embed)


def similar(
    collection: CollectionAddress,
    doc_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the document.", callback=check_text)],
    k: K = 10,
    where: Where = None,
    rerank: RerankBy = None,
    radius: Radius = None,
    approximate: Approximate = False,
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """Search for the documents whose codes are nearest to that of a document, without itself.

    The options are those of "snuh search".
    """
    _check_k(k)
    options = _search_options(k, where, radius, rerank, approximate)
    _search_similar(collection, doc_id, options, explained=explain, json=as_json)


def _search_options(
    k: int, where: str | None, radius: int | None, rerank: str | None, approximate: bool
) -> SearchOptions:
    return {
        "k": k,
        "where": where,
        "radius": radius,
        "rerank": cast("Rerank | None", rerank),
        "approximate": approximate,
    }


def _reject_collection_options(options: Mapping[str, object], source: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(
                f"{name} needs a collection: create one with "
                f'"snuh create FOLDER --from {source} --model MODEL"'
            )


def _check_k(k: int) -> None:
    if k < 1:
        raise InputError(f"-k must be at least 1, got {k}")


# Searches, and their hits: as a table, as JSON, or with the words that each match is based on.


@dataclass(frozen=True, slots=True)
class _SearchResult:
    """The hits of a query, and one explanation per hit if requested."""

    query: str
    hits: Hits
    explanations: Sequence[Explanation] = ()

    @classmethod
    def of(cls, query: str, hits: Hits, *, explained_by: Model | None = None) -> _SearchResult:
        """Return the hits, explained by a model if one is given."""
        from snuh.explain import explain

        if explained_by is None:
            return cls(query, hits)
        return cls(query, hits, [explain(explained_by, query, hit.document.text) for hit in hits])

    def to_json(self) -> list[dict[str, Any]]:
        """Return the hits as JSON objects, with the contributions of words if they are explained."""
        from snuh.cli.output import hit_to_json

        rows = [hit_to_json(hit) for hit in self.hits]
        for row, explanation in zip(rows, self.explanations, strict=False):
            row["query_words"] = [_contribution_to_json(word) for word in explanation.query_words]
            row["words"] = [_contribution_to_json(word) for word in explanation.hit_words]
        return rows


def _search_collection(
    address: str, text: str, options: SearchOptions, *, explained: bool, json: bool, embed: Embed | None
) -> None:
    """Search a collection for one text."""
    from snuh.cli.output import open_collection

    with open_collection(address, embed) as collection:
        hits = collection.search(text, **options)
        result = _SearchResult.of(text, hits, explained_by=collection.model if explained else None)
        bits = collection.model.bits
    _show(result, {"query": text, "bits": bits}, json=json)


def _search_similar(
    address: str, doc_id: str, options: SearchOptions, *, explained: bool, json: bool
) -> None:
    """Search a collection for the text of one of its documents."""
    from snuh.collection import Collection

    with Collection(address) as collection:
        hits = collection.similar(doc_id, **options)
        text = collection.get(doc_id).text
        result = _SearchResult.of(text, hits, explained_by=collection.model if explained else None)
        bits = collection.model.bits
    _show(result, {"id": doc_id, "bits": bits}, json=json)


def _search_queries(
    address: str,
    queries: str,
    options: SearchOptions,
    *,
    explained: bool,
    text_field: str,
    id_field: str,
    embed: Embed | None,
) -> None:
    """Search a collection for each text of a source, and print one line of JSON per query."""
    from snuh.cli.output import display, open_collection, open_texts
    from snuh.io import dump_json

    without_hits: list[str] = []
    out = sys.stdout  # progress bars replace sys.stdout by a stream that writes above them
    with open_collection(address, embed) as collection, display() as progress:
        model = collection.model if explained else None
        source = open_texts(queries, text_field=text_field, id_field=id_field)
        documents = source.documents(None if out.isatty() else progress.stage("Searching"))
        batch_size = max(1, min(MAX_QUERIES_PER_BATCH, MAX_HITS_PER_BATCH // options.get("k", 10)))
        while batch := list(islice(documents, batch_size)):
            hits_per_query = collection.search_many([query.text for query in batch], **options)
            for query, hits in zip(batch, hits_per_query, strict=True):
                result = _SearchResult.of(query.text, hits, explained_by=model)
                about = {"query": query.id, "note": hits.note}
                typer.echo(dump_json({**about, "hits": result.to_json()}), file=out)
                if not hits:
                    without_hits.append(query.id)
    if without_hits:
        ids = ", ".join(without_hits[:MAX_IDS_SHOWN]) + (", ..." if len(without_hits) > MAX_IDS_SHOWN else "")
        say(f"warning: no hits for {ids}")


def _search_source(
    spec: str, text: str, model: Path, *, k: int, text_field: str, id_field: str, json: bool
) -> None:
    """Encode a source and search it for one text."""
    from snuh.cli.output import display, open_documents
    from snuh.encoding import encode_source
    from snuh.model import load
    from snuh.search import search_source

    loaded = load(model)
    documents = open_documents(spec, text_field=text_field, id_field=id_field)
    with display() as progress:
        batches = encode_source(loaded, documents, progress=progress.stage("Searching"))
        hits = search_source(loaded, text, batches, k=k)
    _show(_SearchResult(text, hits), {"query": text, "bits": loaded.bits}, json=json)


def _show(result: _SearchResult, about: dict[str, object], *, json: bool) -> None:
    from snuh.cli.output import print_json

    if json:
        print_json({**about, "note": result.hits.note, "hits": result.to_json()})
        return
    if result.hits.note is not None:
        say(f"note: {result.hits.note}")
    if result.explanations and result.explanations[0].note is not None:
        say(f"note: {result.explanations[0].note}")
    if result.hits:
        _print_result(result)


def _print_result(result: _SearchResult) -> None:
    """Print hits as a table, one line each, followed by the explanation if there is one."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from snuh.cli.output import line_of_text, results_console

    console = results_console()
    has_labels = any(hit.document.labels for hit in result.hits)
    has_scores = any(hit.score is not None for hit in result.hits)
    if result.explanations:
        contributions = _summed([explanation.query_words for explanation in result.explanations])
        console.print(Text.assemble(("query  ", "dim"), _highlighted(result.query, contributions, console)))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    table.add_column("distance", justify="right", no_wrap=True)
    if has_scores:
        table.add_column("score", justify="right", no_wrap=True)
    table.add_column("id", no_wrap=True, style="cyan", max_width=48)
    if has_labels:
        table.add_column("labels", no_wrap=True, style="green", max_width=24)
    table.add_column("text", no_wrap=True, ratio=1)  # takes the remaining width
    for number, hit in enumerate(result.hits):
        scores = [f"{hit.score:.3f}" if hit.score is not None else ""] if has_scores else []
        labels = [Text(sanitize(", ".join(hit.document.labels)))] if has_labels else []
        line = Text(sanitize(line_of_text(hit.document.text)))
        table.add_row(str(hit.distance), *scores, Text(sanitize(hit.document.id)), *labels, line)
        if result.explanations:
            explanation = result.explanations[number]
            snippet = _highlighted(hit.document.text, explanation.hit_words, console)
            reason = Text(_reason(hit, bits=len(explanation.bits)), style="dim")
            table.add_row(*[""] * (2 + has_scores + has_labels), reason)
            table.add_row(*[""] * (2 + has_scores + has_labels), snippet)
    console.print(table)


def _reason(hit: Hit, *, bits: int) -> str:
    """Return what a hit has in common with the query: words and bits."""
    agreement = f"{bits - hit.distance} of {bits} bits agree"
    if hit.matched is None:
        return agreement
    return f"has {', '.join(hit.matched) or 'none of the words'}; {agreement}"


def _highlighted(text: str, contributions: Sequence[WordContribution], console: Console) -> Text:
    """Highlight the words that made two codes agree or differ, with colours or, without a terminal, * and ~.

    The weight of a word is its contribution to the bits that agree minus that to the bits that differ.
    """
    from rich.text import Text

    from snuh.explain import marked

    has_colours = console.color_system is not None and not console.no_color
    net = [replace(word, agreeing=word.agreeing - word.differing) for word in contributions]
    line = Text(no_wrap=False)
    for fragment in marked(text, net):
        words, weight = sanitize(fragment.text), fragment.weight
        if abs(weight) < WEAK:
            line.append(words)
        elif has_colours:
            style = "dim red" if weight < 0 else "bold green" if weight >= STRONG else "green"
            line.append(words, style=style)
        else:
            line.append(f"*{words}*" if weight > 0 else f"~{words}~")
    return line


def _summed(explanations: Sequence[Sequence[WordContribution]]) -> list[WordContribution]:
    """Add up the contributions of the words of one text in several explanations."""
    sums: dict[str, WordContribution] = {}
    for contributions in explanations:
        for word in contributions:
            total = sums.get(word.word, replace(word, agreeing=0.0, differing=0.0))
            sums[word.word] = replace(
                word, agreeing=total.agreeing + word.agreeing, differing=total.differing + word.differing
            )
    return list(sums.values())


def _contribution_to_json(word: WordContribution) -> dict[str, Any]:
    return {"word": word.word, "agreeing": round(word.agreeing, 6), "differing": round(word.differing, 6)}
