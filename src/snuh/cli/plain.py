"""Text that a terminal can show as it is."""

from __future__ import annotations

import re

CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")


def harmless(text: str) -> str:
    """Put a replacement sign for each control character: in a terminal it could move things, or worse."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
