"""Tables: comma or tab separated values with the column names in the first row."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from snuh.corpus.lines import Meter, text_lines
from snuh.corpus.record import quote
from snuh.corpus.records import Records
from snuh.errors import InputError

# The largest limit that every platform takes; the default refuses fields over 128 KiB.
FIELD_LIMIT = 2**31 - 1
HEADER_HINT = "; the first line of the file must hold the column names"
LABEL_SEPARATORS = re.compile(r"[;|]")


def read_csv(path: Path, meter: Meter) -> Records:
    """Yield the rows of a .csv file."""
    return _read_table(path, meter, ",")


def read_tsv(path: Path, meter: Meter) -> Records:
    """Yield the rows of a .tsv file; fields may be quoted as in .csv."""
    return _read_table(path, meter, "\t")


def _read_table(path: Path, meter: Meter, delimiter: str) -> Records:
    """Yield the rows by column name; `labels` holds several, separated by ";" or "|", `label` holds one."""
    csv.field_size_limit(max(FIELD_LIMIT, csv.field_size_limit()))
    lines = (line for _, line in text_lines(path, meter))
    # strict: a quote that never closes would otherwise swallow the rest of the file as one text.
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] | None = None
    number = 0
    line = 1
    try:
        for row in reader:
            if header is None:
                header = _check_header(row, f"{path.name} line {line}")
            elif row:
                number += 1
                yield line, number, _fields(header, row, f"{path.name} line {line}")
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path.name} line {line}: not a valid row ({error}): "
            "a field with quotes in it must be quoted, and its quotes doubled"
        ) from None


def _check_header(row: list[str], place: str) -> list[str]:
    names = [name.strip() for name in row]
    if not any(names):
        raise InputError(f"{place}: expected the column names, got a blank line")
    repeated = [name for name in names if name and names.count(name) > 1]
    if repeated:
        raise InputError(f"{place}: the column {quote(repeated[0])} is there twice: rename one")
    return names


def _fields(header: list[str], row: list[str], place: str) -> dict[str, Any]:
    if len(row) != len(header):
        raise InputError(f"{place}: expected {len(header)} fields as in the header, got {len(row)}")
    fields: dict[str, Any] = dict(zip(header, row, strict=True))
    # An unnamed column is the row index that some tools write.
    fields.pop("", None)
    if "labels" in fields:
        fields["labels"] = LABEL_SEPARATORS.split(fields["labels"])
    return fields
