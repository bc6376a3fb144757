"""Judged queries, and folders in the layout of the BEIR benchmark: corpus.jsonl, queries.jsonl, qrels/."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from snuh.corpus.document import Document, FieldNames, FractionCallback, TextSource
from snuh.corpus.reader import Format, Meter, RecordSource, text_lines
from snuh.corpus.text_files import read_jsonl
from snuh.errors import InputError

FIELDS = FieldNames(id="_id")
Judgments = dict[str, dict[str, int]]  # the grade of each judged document, by query id


@dataclass(frozen=True, slots=True)
class JudgedQueries:
    """Queries by id, and the documents that were judged for each: 0 is not relevant, more is better."""

    texts: dict[str, str]
    judgments: Judgments


class BeirSource(TextSource):
    """The corpus of a BEIR folder; the text of a document begins with its title."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self._records = RecordSource(
            find_file(folder, "corpus"), Format(read_jsonl), name=self.name, fields=FIELDS
        )

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        """Yield the documents."""
        for document in self._records.documents(progress):
            title = document.metadata.get("title")
            if isinstance(title, str) and title.strip():
                document = replace(document, text=f"{title}\n{document.text}")
            yield document


def is_beir_folder(folder: Path) -> bool:
    """Tell whether a folder has a corpus and queries."""
    return all(_files(folder, name) for name in ("corpus", "queries"))


def read_judged(queries: Path, qrels: Path | None = None, *, split: str = "test") -> JudgedQueries:
    """Read judged queries.

    Args:
        queries: a JSON lines file with "_id" (or "id") and "text", or a BEIR folder.
        qrels: a file with a query id, a document id and a grade on each line, separated by tabs, or in TREC's
            format with four columns; not needed for a BEIR folder.
        split: of the judgments in a BEIR folder.
    """
    if queries.is_dir():
        folder, queries = queries, find_file(queries, "queries")
        qrels = qrels or folder / "qrels" / f"{split}.tsv"
    elif qrels is None:
        raise InputError(f"{queries} needs judgments: give a file with --qrels, or a BEIR folder")
    texts = _read_queries(queries)
    judgments = {query: grades for query, grades in _read_qrels(qrels).items() if max(grades.values()) > 0}
    if not judgments.keys() & texts.keys():
        raise InputError(
            f"no query of {queries.name} has a relevant document in {qrels.name}: compare their ids"
        )
    return JudgedQueries({query: texts[query] for query in judgments if query in texts}, judgments)


def find_file(folder: Path, name: str) -> Path:
    """Return a file of a BEIR folder, which may be compressed."""
    if not (files := _files(folder, name)):
        raise InputError(f"{folder} has no {name}.jsonl: expected a folder in the layout of BEIR")
    return files[0]


def _files(folder: Path, name: str) -> list[Path]:
    return [path for suffix in (".jsonl", ".jsonl.gz") if (path := folder / f"{name}{suffix}").is_file()]


def _read_queries(path: Path) -> dict[str, str]:
    texts = {}
    for line, _, fields in read_jsonl(path, Meter()):
        query, text = fields.get("_id", fields.get("id")), fields.get("text")
        if not isinstance(query, str | int) or not isinstance(text, str):
            raise InputError(f'{path.name} line {line}: expected a query with "_id" and "text"')
        texts[str(query)] = text
    return texts


def _read_qrels(path: Path) -> Judgments:
    judgments: Judgments = {}
    for number, line in text_lines(path, Meter()):
        row = next(csv.reader([line], delimiter="\t" if "\t" in line else " "), [])
        if not row or (number == 1 and not row[-1].strip().lstrip("-").isdigit()):
            continue  # an empty line, or a header
        query, document, grade = (
            row if len(row) == 3 else (row[0], *row[2:4]) if len(row) == 4 else ("", "", "")
        )
        if not query or not grade.strip().lstrip("-").isdigit():
            raise InputError(
                f"{path.name} line {number}: expected a query id, a document id and an integer grade"
            )
        judgments.setdefault(query, {})[document] = int(grade)
    return judgments
