"""Datasets by name: files in the folder that the environment variable SNUH_DATA points to."""

from __future__ import annotations

import os
from pathlib import Path

from snuh.errors import InputError, suggest

VARIABLE = "SNUH_DATA"

# Sources of the datasets of the experiments, for the message about a missing one.
ORIGINS = {
    "ng20": "20 Newsgroups, from scikit-learn's fetch_20newsgroups or qwone.com/~jason/20Newsgroups",
    "reuters": "Reuters-21578, from archive.ics.uci.edu/dataset/137",
    "tmc": "the reports of the SIAM 2007 text mining competition, from NASA's DASHlink",
    "tmc500": "500 terms of the SIAM 2007 text mining competition's reports, from NASA's DASHlink",
    "agnews": "AG News, from huggingface.co/datasets/fancyzhx/ag_news",
    "arxiv100k": "titles and abstracts of arXiv, from kaggle.com/datasets/Cornell-University/arxiv",
}
MATRIX_ORIGIN = "rows as in the paper's files, from github.com/unsuthee/VariationalDeepSemanticHashing"


def find_corpus(name: str, suffixes: tuple[str, ...]) -> Path:
    """Return the file of the dataset `name`, such as ng20 or ng20.tfidf, with or without its suffix.

    If several files match, the first of the suffixes wins.
    """
    value = os.environ.get(VARIABLE)
    if not value:
        raise InputError(
            f'there is no file or folder "{name[:60]}"; to use a corpus by its name, set {VARIABLE} '
            f"to the folder that holds it{_origin(name)}"
        )
    folder = Path(value)
    if not folder.is_dir():
        raise InputError(f"{VARIABLE} must be an existing folder, got {folder}")
    candidates = [name] if name.endswith(suffixes) else []
    candidates += [name + suffix for suffix in suffixes]
    for candidate in candidates:
        if os.path.isfile(folder / candidate):
            return folder / candidate
    known = _corpora(folder, suffixes)
    listed = ", ".join(known) or "no readable files"
    raise InputError(
        f'there is no file, folder or corpus "{name[:60]}"{suggest(name, known)}; {VARIABLE} holds: '
        f"{listed}{_origin(name)}"
    )


def _origin(name: str) -> str:
    """Return a hint on how to get a known dataset."""
    corpus = name.removesuffix(".tfidf")
    if corpus not in ORIGINS:
        return ""
    if corpus != name:
        return f"; {name}.mat has {MATRIX_ORIGIN}"
    return (
        f"; {name} is {ORIGINS[name]}, saved as {name}.jsonl.gz with id, text, labels and split on each line"
    )


def _corpora(folder: Path, suffixes: tuple[str, ...]) -> list[str]:
    files = [path.name for path in folder.iterdir() if path.is_file()]
    return sorted(
        {file.removesuffix(suffix) for file in files for suffix in suffixes if file.endswith(suffix)}
    )
