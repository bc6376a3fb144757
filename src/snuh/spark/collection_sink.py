"""Add the documents of a frame to a collection: executors write to a server, the driver to a local folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import snuh
from snuh.collection import Added, Collection
from snuh.corpus import Document
from snuh.corpus.document import FieldNames, RecordError, to_document
from snuh.corpus.parquet import json_rows
from snuh.errors import InputError
from snuh.io import is_remote
from snuh.spark.documents import check_documents, normalize_columns
from snuh.spark.jobs import Report, check_version, track_jobs
from snuh.text import quote

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, Row

LOCK_TIMEOUT_SECONDS = 600.0  # waiting for other executors, if the engine has one writer at a time
COUNTS_SCHEMA = "inserted long, replaced long, without_code long"
ROWS_PER_REPORT = 256


def add_to_collection(
    frame: DataFrame,
    address: str,
    *,
    writers: int | None = None,
    on_check: Report | None = None,
    on_progress: Report | None = None,
) -> Added:
    """Add the documents of a frame, with all columns, to a collection; idempotent, because it upserts by id.

    Args:
        frame: one document per row, with the columns id and text.
        address: of the collection, whose own model encodes the documents.
        writers: executors that write at the same time; None: one per partition.
        on_check: called with the fraction done of checking the documents.
        on_progress: called with the fraction done of adding them.
    """
    frame = normalize_columns(frame)
    with Collection(address):  # fails early if it does not exist or has another version
        pass
    summary = check_documents(frame, report=on_check)
    if not is_remote(address):
        return _add_from_driver(frame, address, summary.documents, on_progress)
    partitions = frame if writers is None else frame.repartition(writers, "id")
    add = partial(add_partition, address=address, version=snuh.__version__)
    with track_jobs(frame.sparkSession, on_progress):
        counts = partitions.mapInArrow(add, COUNTS_SCHEMA).toArrow().to_pylist()
    return sum((Added(**count) for count in counts), start=Added(0, 0, 0))


def add_partition(
    batches: Iterable[pa.RecordBatch], *, address: str, version: str
) -> Iterator[pa.RecordBatch]:
    """Add the documents of one partition."""
    import pyarrow as pa

    check_version(version)
    records = (fields for batch in batches for fields in json_rows(batch))
    with Collection(address, timeout=LOCK_TIMEOUT_SECONDS) as collection:
        added = collection.add(_to_document(fields) for fields in records)
    yield pa.RecordBatch.from_pydict(
        {
            "inserted": [added.inserted],
            "replaced": [added.replaced],
            "without_code": [added.without_code],
        }
    )


def rows_to_json(batches: Iterable[pa.RecordBatch], *, version: str) -> Iterator[pa.RecordBatch]:
    """Serialize every row of one partition."""
    import pyarrow as pa

    check_version(version)
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"json": [json.dumps(fields) for fields in json_rows(batch)]})


def _add_from_driver(frame: DataFrame, address: str, total: int, report: Report | None) -> Added:
    # Executors serialize the rows as for a server, so that dates and maps are converted in the same way.
    serialized = frame.mapInArrow(partial(rows_to_json, version=snuh.__version__), "json string")

    def documents() -> Iterator[Document]:
        rows: Iterable[Row] = serialized.toLocalIterator(prefetchPartitions=True)
        for number, row in enumerate(rows):
            if report is not None and number % ROWS_PER_REPORT == 0:
                report(number / total)
            yield _to_document(json.loads(row["json"]))

    with track_jobs(frame.sparkSession, None), Collection(address) as collection:
        added = collection.add(documents())
    if report is not None:
        report(1.0)
    return added


def _to_document(fields: dict[str, Any]) -> Document:
    doc_id = fields["id"]
    try:
        return to_document(fields, 0, FieldNames())
    except RecordError as error:
        raise InputError(f"the document {quote(doc_id)}: {error}") from None
