"""JSON lines: one object a line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from snuh.corpus.lines import Meter, text_lines
from snuh.corpus.record import describe
from snuh.corpus.records import Records
from snuh.errors import InputError


def _no_number(_: str) -> None:
    # Python writes NaN and Infinity, which are not JSON and could not be written again: they become null.
    return None


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def read_jsonl(path: Path, meter: Meter) -> Records:
    """Yield each line's object, skipping blank lines; a document without an id is named by its line."""
    for number, line in text_lines(path, meter):
        try:
            fields = _DECODER.decode(line)
        except (ValueError, RecursionError) as error:
            if line.isspace() or not line:
                continue
            raise InputError(f"{path.name} line {number}: {_reason(error)}") from None
        if type(fields) is not dict:
            raise InputError(f"{path.name} line {number}: expected a JSON object, got {describe(fields)}")
        if "\\ud" in line or "\\uD" in line:
            _check_surrogates(fields, f"{path.name} line {number}")
        yield number, number, fields


def _check_surrogates(fields: object, place: str) -> None:
    # JSON can write half a character, such as "\\ud83d" alone, which no UTF-8 file can hold again.
    try:
        json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise InputError(
            f"{place}: holds half a character ({half}): remove it, or write the whole character"
        ) from None


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        what = error.msg.removesuffix(" at")  # as in "Unterminated string starting at"
        return f"not valid JSON ({what} at character {error.pos + 1})"
    if isinstance(error, RecursionError):
        return "not valid JSON (nested too deeply)"
    # All that is left: Python refuses whole numbers that take long to convert.
    most = sys.get_int_max_str_digits()
    return f"holds a number of more than {most:,} digits: shorten it, or write it as a string"
