"""Read Parquet files in batches of rows."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snuh.corpus.reader import Meter, Records
from snuh.errors import InputError, import_extra
from snuh.text import quote

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_BATCH = 1024


def read_parquet(path: Path, meter: Meter) -> Records:
    """Yield the rows by column name; binary columns are left out."""
    rows = (fields for batch in _batches(path, meter) for fields in json_rows(batch))
    for number, fields in enumerate(rows, start=1):
        yield number, number, fields


def json_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield the rows of a batch as JSON objects, without binary columns."""
    batch = batch.select(_text_columns(batch.schema))
    converted = [column.name for column in batch.schema if not _is_json(column.type)]
    for fields in batch.to_pylist():
        for name in converted:
            fields[name] = _to_json(fields[name])
        yield fields


def _batches(path: Path, meter: Meter) -> Iterator[pa.RecordBatch]:
    pa, pq = import_extra("pyarrow"), import_extra("pyarrow.parquet")
    done = 0
    try:
        with pq.ParquetFile(path) as file:
            rows = max(file.metadata.num_rows, 1)
            meter.fraction = lambda: done / rows
            _check_names(file.schema_arrow, path.name)
            for batch in file.iter_batches(ROWS_PER_BATCH, columns=_text_columns(file.schema_arrow)):
                yield batch
                done += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path.name}: not a Parquet file, or a damaged one ({reason})") from None


def _check_names(schema: pa.Schema, file: str) -> None:
    repeated = [name for name in schema.names if schema.names.count(name) > 1]
    if repeated:
        raise InputError(f"{file}: the column {quote(repeated[0])} appears twice: rename one")


def _text_columns(schema: pa.Schema) -> list[str]:
    return [column.name for column in schema if not _is_binary(column.type)]


def _is_binary(kind: pa.DataType) -> bool:
    import pyarrow.types as kinds

    if kinds.is_dictionary(kind):
        kind = kind.value_type
    names = (
        "is_binary",
        "is_large_binary",
        "is_fixed_size_binary",
        "is_binary_view",
    )  # the last since pyarrow 16
    return any(getattr(kinds, name)(kind) for name in names if hasattr(kinds, name))


def _is_json(kind: pa.DataType) -> bool:
    """Return whether the values of a column need no conversion."""
    import pyarrow.types as kinds

    return any(
        test(kind) for test in (kinds.is_string, kinds.is_large_string, kinds.is_integer, kinds.is_boolean)
    )


def _to_json(value: Any) -> Any:  # Any: a cell of any Arrow type
    """Convert a cell to JSON: dates to text, NaN to null, maps to objects; nested bytes are left out."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(key): _to_json(item) for key, item in value.items() if not isinstance(item, bytes)}
    if isinstance(value, list) and value and isinstance(value[0], tuple):  # a map
        return _to_json(dict(value))
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value if not isinstance(item, bytes)]
    return value if value is None or isinstance(value, str | int) else str(value)
