"""Files of documents that every command reads back: .jsonl, .jsonl.gz, .csv or .parquet."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from snuh.corpus import Document
from snuh.corpus.document import quote
from snuh.errors import InputError, suggest
from snuh.io import atomic_write

Record: TypeAlias = dict[str, Any]  # Any: whatever JSON can say
Write: TypeAlias = Callable[[Document, str | None], None]
Documents: TypeAlias = Callable[[], Iterable[Document]]

ROWS_PER_BATCH = 1_000
EXACT_AS_FLOAT = 2**53  # whole numbers up to here
INT64_RANGE = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Layout:
    """Under which names the parts of a document are written."""

    text: str = "text"
    id: str = "id"
    has_codes: bool = False

    @property
    def own(self) -> tuple[str, ...]:
        """The names that metadata cannot have beside them."""
        return (self.id, self.text, "labels", "split", *(["code"] if self.has_codes else []))

    def record(self, document: Document, code: str | None) -> Record:
        """Return a document as named fields."""
        if taken := [name for name in self.own if name in document.metadata]:
            raise InputError(
                f"the document {quote(document.id)} has metadata called {quote(taken[0])}: choose another "
                "name for the text or the id with --text-field and --id-field, or leave --codes out"
            )
        # Labels are there even where there are none: metadata called "label" would be read as such.
        values = (document.id, document.text, list(document.labels), document.split, code)
        return {**dict(zip(self.own, values, strict=False)), **document.metadata}


def check_suffix(path: Path) -> str:
    """Return the kind of file that `path` asks for; InputError where there is no such kind."""
    found = next((suffix for suffix in _FORMATS if path.name.lower().endswith(suffix)), None)
    if found is None:
        kinds = ", ".join(_FORMATS)
        near = suggest(path.suffix, _FORMATS)
        raise InputError(f"{path}: documents are written to files ending in {kinds}{near}")
    return found


def open_writer(path: Path, layout: Layout, documents: Documents) -> AbstractContextManager[Write]:
    """Return a context whose value writes a document and its code; the file appears when all went well.

    Args:
        path: the file; its ending says in which form.
        layout: the names of the fields.
        documents: yields what will be written, for a look at the metadata where a table needs columns.
    """
    return _FORMATS[check_suffix(path)](path, layout, documents)


@contextmanager
def _jsonl(path: Path, layout: Layout, documents: Documents) -> Iterator[Write]:
    with atomic_write(path) as beside, _open_text(beside) as file:

        def write(document: Document, code: str | None) -> None:
            record = layout.record(document, code)
            if document.split is None:
                del record["split"]
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

        yield write


def _open_text(path: Path) -> IO[str]:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "wt", encoding="utf-8", newline="\n")
    return path.open("w", encoding="utf-8", newline="\n")


@contextmanager
def _csv(path: Path, layout: Layout, documents: Documents) -> Iterator[Write]:
    names = [*layout.own, *_kinds(documents())]
    with atomic_write(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        # The usual line ends, \r\n, also make it quote a text with either of the two in it.
        writer = csv.DictWriter(file, names, restval="", extrasaction="raise")
        writer.writeheader()

        def write(document: Document, code: str | None) -> None:
            for label in document.labels:
                if ";" in label or "|" in label:
                    raise InputError(
                        f"{path}: the label {quote(label)} has a sign in it that separates labels: "
                        "write .jsonl or .parquet"
                    )
            cells = layout.record(document, code) | {"labels": ";".join(document.labels)}
            with _unless_changed(path):
                writer.writerow({name: _cell(value) for name, value in cells.items()})

        yield write


def _cell(value: Any) -> str:  # Any: whatever JSON can say
    """Return text for a cell of a table: strings as they are, nothing for null, else JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@contextmanager
def _parquet(path: Path, layout: Layout, documents: Documents) -> Iterator[Write]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {name: _arrow_type(kinds) for name, kinds in _kinds(documents()).items()}
    as_text = {name for name, kind in types.items() if kind is None}
    own = [(name, pa.list_(pa.string()) if name == "labels" else pa.string()) for name in layout.own]
    schema = pa.schema([*own, *((name, kind or pa.string()) for name, kind in types.items())])
    rows: list[Record] = []
    with atomic_write(path) as beside, pq.ParquetWriter(beside, schema) as file:

        def flush() -> None:
            with _unless_changed(path):
                file.write_table(pa.Table.from_pylist(rows, schema=schema))
            rows.clear()

        def write(document: Document, code: str | None) -> None:
            record = layout.record(document, code)
            for name in as_text & record.keys():
                record[name] = None if record[name] is None else _cell(record[name])
            rows.append(record)
            if len(rows) >= ROWS_PER_BATCH:
                flush()

        yield write
        flush()


@contextmanager
def _unless_changed(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # Arrow's own errors are ValueErrors too
        raise InputError(f"{path}: the collection was changed meanwhile: run it again ({error})") from error


def _kinds(documents: Iterable[Document]) -> dict[str, set[str]]:
    """Return which kinds of values each metadata field has, by name in order of appearance."""
    kinds: dict[str, set[str]] = {}
    for document in documents:
        for name, value in document.metadata.items():
            kinds.setdefault(name, set()).update(_kind(value))
    return kinds


def _kind(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, bool | str | float):
        return (type(value).__name__,)
    if isinstance(value, int) and value in INT64_RANGE:
        return ("int",) if abs(value) <= EXACT_AS_FLOAT else ("long",)
    return ("other",)


def _arrow_type(kinds: set[str]) -> Any:  # a pyarrow type, which has no stubs
    """Return the type of a column; None where only JSON text can hold all of its values."""
    import pyarrow as pa

    for allowed, kind in (
        ({"str"}, pa.string()),
        ({"bool"}, pa.bool_()),
        ({"int", "long"}, pa.int64()),
        ({"int", "float"}, pa.float64()),
    ):
        if kinds <= allowed:
            return kind
    return None


_FORMATS: dict[str, Callable[[Path, Layout, Documents], AbstractContextManager[Write]]] = {
    ".jsonl": _jsonl,
    ".jsonl.gz": _jsonl,
    ".csv": _csv,
    ".parquet": _parquet,
}
