"""`snuh analyze`: what the analyzer makes of a text or of a source."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from snuh.cli.base_command import IdField, Json, Settings, TextField

if TYPE_CHECKING:
    from snuh.corpus import TextSource
    from snuh.features import TfidfFeatures

EXAMPLES = (
    'snuh analyze "The e-mails were re-sent"',
    "snuh analyze tickets.jsonl",
    "snuh analyze tickets.jsonl --model model",
    "snuh analyze app.log --set features.fold_numbers=true",
)


def analyze(
    text: Annotated[
        str, typer.Argument(metavar="TEXT|SOURCE", help="A text, or documents as for the other commands.")
    ],
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Use the analyzer and the vocabulary of a model.")
    ] = None,
    settings: Settings = None,
    words: Annotated[int, typer.Option(metavar="N", help="Number of words in the lists.")] = 20,
    text_field: TextField = "text",
    id_field: IdField = "id",
    as_json: Json = False,
) -> None:
    """Show how texts are split into terms: languages, tokens, and how much of it a vocabulary knows.

    A text is shown token by token, with the term of each word. Of a source you see the languages that were
    recognized, the size of its vocabulary, and how many words and documents that vocabulary covers. Without
    --model, languages and vocabulary are those that "snuh fit" would choose.
    """
    from snuh.cli.output import open_texts, print_json
    from snuh.errors import InputError

    if words < 1:
        raise InputError(f"--words must be at least 1, got {words}")
    if _is_source(text):
        source = open_texts(text, text_field=text_field, id_field=id_field)
        report = _describe_source(source, _features(model, settings, source), words=words)
    else:
        report = _describe_text(text, _features(model, settings, None, text))
    if as_json:
        print_json(report)
    else:
        _print(report)


def _is_source(text: str) -> bool:
    from snuh.cli.output import holds_collection
    from snuh.corpus.source import source_path
    from snuh.errors import InputError

    if text == "-" or (Path(text).suffix and not any(character.isspace() for character in text)):
        return True  # the name of a file, even if it is misspelt
    try:
        return holds_collection(text) or source_path(text) is not None
    except (InputError, OSError, ValueError):  # no such file; too long for a path; a NUL
        return False


def _features(
    model: Path | None, settings: list[str] | None, source: TextSource | None, text: str = ""
) -> TfidfFeatures:
    from snuh.cli.training import parse_settings
    from snuh.errors import InputError, check_arguments
    from snuh.features import TfidfFeatures
    from snuh.features.analyzer import Analyzer

    if model is not None:
        import snuh

        if settings:
            raise InputError("a model has its own analyzer: omit --set or --model")
        features = snuh.load(model).features
        if features is None:
            raise InputError(f"{model} was trained on a matrix of features: it has no analyzer")
        return features
    parsed = parse_settings(settings or ())
    if parsed.method:
        name = next(iter(parsed.method))
        raise InputError(f"expected settings of the features, such as features.language=de, got {name}")
    check_arguments(TfidfFeatures, parsed.features, what="the features' settings")
    features = TfidfFeatures(**parsed.features)
    if source is None:
        features.analyzer = features.choose_analyzer(Counter(Analyzer(stemming=False).terms(text)))
        return features
    return features.fit(doc.text for doc in source.documents() if doc.split in (None, "train"))


def _describe_text(text: str, features: TfidfFeatures) -> dict[str, Any]:
    known = set(features.terms)
    tokens = [
        {"term": token.term, "word": text[token.start : token.end], "start": token.start, "end": token.end}
        | ({"known": token.term in known} if known else {})
        for token in features.analyzer.tokens(text)
    ]
    return {"languages": list(features.analyzer.languages), "tokens": tokens}


def _describe_source(source: TextSource, features: TfidfFeatures, *, words: int) -> dict[str, Any]:
    known = dict(zip(features.terms, features.words, strict=True))
    counts: Counter[str] = Counter()
    documents = empty = 0
    for document in source.documents():
        terms = features.analyzer.terms(document.text)
        counts.update(terms)
        documents += 1
        empty += known.keys().isdisjoint(terms)
    total = sum(counts.values())
    covered = sum(count for term, count in counts.items() if term in known)
    return {
        "source": source.name,
        "documents": documents,
        "documents_without_known_words": empty,
        "languages": list(features.analyzer.languages),
        "stemming": features.analyzer.stemming,
        "words": total,
        "distinct_terms": len(counts),
        "vocabulary": len(known),
        "coverage": covered / total if total else 0.0,
        "frequent": [[known[term], count] for term, count in counts.most_common() if term in known][:words],
        "unknown": [[term, count] for term, count in counts.most_common() if term not in known][:words],
    }


def _print(report: dict[str, Any]) -> None:
    from snuh.cli.output import print_facts, results_console
    from snuh.text import printable

    languages = ", ".join(report["languages"]) or "none recognized"
    if "tokens" in report:
        print_facts([("languages", languages)])
        for token in report["tokens"]:
            note = "" if token.get("known", True) else "  not in the vocabulary"
            span = f"{token['start']}-{token['end']}"
            line = f"{printable(token['term']):24} {printable(token['word']):24} {span}{note}"
            results_console().print(line, markup=False, highlight=False)
        return

    def listed(pairs: list[list[Any]]) -> str:
        return ", ".join(f"{printable(word)} {count:,}" for word, count in pairs) or "none"

    print_facts(
        [
            ("source", f"{report['source']}, {report['documents']:,} documents"),
            ("languages", languages + (", stemmed" if report["stemming"] and report["languages"] else "")),
            ("words", f"{report['words']:,}, {report['distinct_terms']:,} distinct terms"),
            ("vocabulary", f"{report['vocabulary']:,} terms, {report['coverage']:.1%} of the words"),
            ("without known words", f"{report['documents_without_known_words']:,} documents"),
            ("most frequent", listed(report["frequent"])),
            ("unknown", listed(report["unknown"])),
        ]
    )
