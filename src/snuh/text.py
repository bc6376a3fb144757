"""Text for messages, terminals and pages: sanitized, shortened and quoted."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence

MAX_QUOTE = 60
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

# Control characters (a terminal would obey them), line separators and lone surrogates (not encodable).
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNSAFE_IN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def sanitize(text: str, *, multiline: bool = False) -> str:
    """Replace control characters and lone surrogates with U+FFFD; `multiline` keeps tabs and newlines."""
    return (_UNSAFE_IN_LINES if multiline else _UNSAFE).sub(REPLACEMENT, text)


def printable(text: str) -> str:
    """Replace every character that has no glyph of its own, such as a zero-width joiner, with U+FFFD."""
    return "".join(character if character.isprintable() else REPLACEMENT for character in text)


def shorten(text: str, limit: int = MAX_QUOTE) -> str:
    """Return at most `limit` characters of a text, ending in "..." if some were cut."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def quote(text: str) -> str:
    """Quote user input for a one-line message, shortened if it is long."""
    return json.dumps(shorten(text), ensure_ascii=False)


def html_table(rows: Iterable[Sequence[object]], *, header: Sequence[str] = ()) -> str:
    """Return an HTML table for notebooks, with everything escaped; without a header, rows are facts."""

    def line(cells: Sequence[object], tags: Sequence[str]) -> str:
        pairs = zip(tags, cells, strict=True)
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for tag, cell in pairs) + "</tr>"

    lines = [line(header, ["th"] * len(header))] if header else []
    lines += [line(row, ["td" if header or column else "th" for column in range(len(row))]) for row in rows]
    return f"<table>{''.join(lines)}</table>"
