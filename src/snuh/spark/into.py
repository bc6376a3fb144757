"""Documents straight into a collection: an engine is written to by all executors, a folder by the driver."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import snuh
from snuh.collection import Added, Collection
from snuh.corpus import Document
from snuh.corpus.document import FieldNames, RecordError, quote, to_document
from snuh.corpus.parquet import json_rows
from snuh.errors import InputError
from snuh.spark.documents import look_at, named_columns
from snuh.spark.failures import check_version
from snuh.spark.watching import Report, watched
from snuh.urls import is_remote

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row

SECONDS_TO_WAIT = 600.0  # for other executors, where an engine has one writer at a time
COUNTS = "inserted long, replaced long, without_code long"


def add_to_collection(
    frame: DataFrame,
    address: str,
    *,
    writers: int | None = None,
    on_check: Report | None = None,
    on_progress: Report | None = None,
) -> Added:
    """Add the documents of a frame, all columns, to a collection; by id, so that again changes nothing.

    Args:
        frame: one document a row, with the columns id and text.
        address: of the collection; its own model encodes the documents.
        writers: how many executors write at the same time; None: as many as there are partitions.
        on_check: told the share done of looking at the documents.
        on_progress: told the share done of adding.
    """
    frame = named_columns(frame)
    with Collection(address):  # there, and of this version
        pass
    contents = look_at(frame, report=on_check)
    if not is_remote(address):
        return _add_from_driver(frame, address, contents.documents, on_progress)
    dealt = frame if writers is None else frame.repartition(writers, "id")
    add = partial(add_part, address=address, version=snuh.__version__)
    with watched(frame.sparkSession, on_progress):
        counts = dealt.mapInArrow(add, COUNTS).toArrow().to_pylist()
    return sum((Added(**count) for count in counts), start=Added(0, 0, 0))


def add_part(batches: Iterable[pa.RecordBatch], *, address: str, version: str) -> Iterator[pa.RecordBatch]:
    """Add the documents of one partition."""
    import pyarrow as pa

    check_version(version)
    records = (fields for batch in batches for fields in json_rows(batch))
    with Collection(address, timeout=SECONDS_TO_WAIT) as collection:
        added = collection.add(_document(fields) for fields in records)
    yield pa.RecordBatch.from_pydict(
        {
            "inserted": [added.inserted],
            "replaced": [added.replaced],
            "without_code": [added.without_code],
        }
    )


def as_lines(batches: Iterable[pa.RecordBatch], *, version: str) -> Iterator[pa.RecordBatch]:
    """Write every row of one partition as JSON."""
    import pyarrow as pa

    check_version(version)
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"line": [json.dumps(fields) for fields in json_rows(batch)]})


def _add_from_driver(frame: DataFrame, address: str, total: int, report: Report | None) -> Added:
    # As JSON from the executors, so that dates and maps become what they become in an engine.
    lines = frame.mapInArrow(partial(as_lines, version=snuh.__version__), "line string")

    def documents() -> Iterator[Document]:
        rows: Iterable[Row] = lines.toLocalIterator(prefetchPartitions=True)
        for number, row in enumerate(rows):
            if report is not None and number % 256 == 0:
                report(number / total)
            yield _document(json.loads(row["line"]))

    with watched(frame.sparkSession, None), Collection(address) as collection:
        added = collection.add(documents())
    if report is not None:
        report(1.0)
    return added


def _document(fields: dict[str, Any]) -> Document:
    doc_id = fields["id"]
    try:
        return to_document(fields, 0, FieldNames())
    except RecordError as error:
        raise InputError(f"the document {quote(doc_id)}: {error}") from None
