"""Corpora by name: the files in the folder that the environment variable SNUH_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

from snuh.errors import InputError, suggest

VARIABLE = "SNUH_DATA"


def find_corpus(name: str, suffixes: tuple[str, ...]) -> Path:
    """Return the file of the corpus `name`, such as ng20 or ng20.tfidf, with or without its suffix.

    Of several files of one name the suffix that comes first counts.
    """
    value = os.environ.get(VARIABLE)
    if not value:
        raise InputError(
            f'there is no file or folder "{name[:60]}"; to use a corpus by its name, set {VARIABLE} '
            "to the folder that holds it"
        )
    folder = Path(value)
    if not folder.is_dir():
        raise InputError(f"{VARIABLE} must name a folder, got {folder}, which is not there")
    candidates = [name] if name.endswith(suffixes) else []
    candidates += [name + suffix for suffix in suffixes]
    for candidate in candidates:
        if os.path.isfile(folder / candidate):
            return folder / candidate
    known = _corpora(folder, suffixes)
    listed = ", ".join(known) or "nothing that can be read"
    raise InputError(
        f'there is no file, folder or corpus "{name[:60]}"{suggest(name, known)}; {VARIABLE} holds: {listed}'
    )


def _corpora(folder: Path, suffixes: tuple[str, ...]) -> list[str]:
    files = [path.name for path in folder.iterdir() if path.is_file()]
    return sorted(
        {file.removesuffix(suffix) for file in files for suffix in suffixes if file.endswith(suffix)}
    )
