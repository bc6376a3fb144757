"""Input and output shared by the commands: sources, output paths, progress and results."""

from __future__ import annotations

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from snuh.corpus import Document, FractionCallback, MatrixSource, TextSource, open_source
from snuh.corpus.rows import VECTORS_SUFFIX, VectorSource, open_vectors
from snuh.corpus.source import source_path
from snuh.errors import InputError
from snuh.io import dump_json, is_collection_folder, is_model, is_remote, redact, resolve
from snuh.progress import EpochReport, Progress

if TYPE_CHECKING:
    from rich.console import Console

    from snuh.collection import Collection
    from snuh.features.vectors import Embed
    from snuh.model import Model
    from snuh.search import Hit

STAGE_LABELS = {
    "words": "Building the vocabulary",
    "rows": "Computing TF-IDF",
    "vectors": "Reading vectors",
    "similarity": "Comparing documents",
    "graph": "Finding neighbours",
    "trees": "Sampling trees",
    "training": "Training",
}
SECONDS_BETWEEN_LINES = 10.0
MIN_SECONDS_FOR_A_LINE = 1.0
DOCUMENTS_PER_REPORT = 256

WIDTH_WITHOUT_TERMINAL = 120
MAX_LINE_CHARACTERS = 500  # wider than any terminal


class Display(ABC):
    """Shows the progress of named stages; an instance is also the callback of a fit."""

    @abstractmethod
    def show(self, label: str, done: float) -> None:
        """Show that the fraction `done` of a stage is complete; 0 means that the fraction is unknown."""

    @abstractmethod
    def show_epoch(self, label: str, line: str) -> None:
        """Show a finished epoch."""

    def __call__(self, progress: Progress) -> None:
        """Show the progress of a fit."""
        label = STAGE_LABELS.get(progress.stage, progress.stage)
        if progress.epoch is not None:
            epochs = round(progress.epoch.epoch / progress.done)
            self.show_epoch(label, describe_epoch(progress.epoch, epochs))
        self.show(label, progress.done)

    def stage(self, label: str) -> Callable[[float], None]:
        """Return a callback for one stage."""
        return lambda done: self.show(label, done)


@contextmanager
def display() -> Iterator[Display]:
    """Show progress on stderr inside the block: bars on a terminal, lines elsewhere."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from snuh.cli.progress_bars import Bars

    with Bars() as bars:
        yield bars


def describe_epoch(report: EpochReport, epochs: int) -> str:
    """Describe an epoch in one line."""
    parts = ", ".join(f"{name} {value:.4g}" for name, value in report.parts.items())
    loss = f"loss {sum(report.parts.values()):.2f} ({parts})"
    alive = "" if report.alive else " · codes not alive yet"
    score = f"score {report.score:.4f} (best {report.best_score:.4f})"
    return f"epoch {report.epoch}/{epochs} · {loss} · {score}{alive} · {report.seconds:.1f} s"


@dataclass
class Lines(Display):
    """Plain lines for logs: one per epoch, one per finished stage, and more for slow stages."""

    clock: Callable[[], float] = time.monotonic
    _started: dict[str, float] = field(default_factory=dict)
    _last_line: float = 0.0
    _has_epochs: set[str] = field(default_factory=set)

    def show(self, label: str, done: float) -> None:
        """Write a line at the end of a stage, and every few seconds before."""
        now = self.clock()
        if label not in self._started:
            self._started[label] = self._last_line = now
        if label in self._has_epochs:
            return
        if done >= 1.0:
            seconds = now - self._started.pop(label)
            if seconds >= MIN_SECONDS_FOR_A_LINE:
                self._write(f"{label}: done in {seconds:.1f} s")
        elif now - self._last_line >= SECONDS_BETWEEN_LINES:
            elapsed = now - self._started[label]
            self._write(f"{label}: {done:.0%}" if done else f"{label}: running for {elapsed:.0f} s")

    def show_epoch(self, label: str, line: str) -> None:
        """Write a line for every epoch."""
        self._has_epochs.add(label)
        self._write(line)

    def _write(self, line: str) -> None:
        self._last_line = self.clock()
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


class CollectionSource(TextSource):
    """The documents of a collection, in insertion order."""

    def __init__(self, address: str) -> None:
        from snuh.collection import short_name

        self.name = short_name(address)
        self._address = address

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        """Yield the documents; the collection is open only while they are read."""
        from snuh.collection import Collection

        with Collection(self._address) as collection:
            if not len(collection):
                raise InputError(f'the collection {collection.name} is empty: add documents with "snuh add"')
            yield from with_progress(collection.documents(), len(collection), progress)


class LimitedSource(TextSource):
    """Another source, with InputError for texts too long for a collection."""

    def __init__(self, source: TextSource, *, max_characters: int) -> None:
        self.name = source.name
        self._source = source
        self._max_characters = max_characters

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        """Yield the documents up to the first that is too long."""
        from snuh.corpus.rows import checked_documents

        yield from checked_documents(self._source.documents(progress), self._max_characters)


def with_progress(
    documents: Iterable[Document], total: int, progress: FractionCallback | None
) -> Iterator[Document]:
    """Yield documents and report the fraction read, which may be an estimate."""
    for count, document in enumerate(documents):
        if progress is not None and count % DOCUMENTS_PER_REPORT == 0:
            progress(min(1.0, count / max(1, total)))
        yield document
    if progress is not None:
        progress(1.0)


def open_documents(spec: str, *, vectors: str | None = None, **fields: str) -> TextSource | MatrixSource:
    """Open a source or a collection; `fields` are the names of fields that `open_source` takes."""
    if not holds_collection(spec):
        return open_source(spec, vectors=vectors, **fields)
    for argument, name in fields.items():
        if name != argument.removesuffix("_field"):
            option = f"--{argument.replace('_', '-')}"
            raise InputError(f"{redact(spec)} is a collection, which has its own fields: omit {option}")
    if vectors is None:
        return CollectionSource(spec)
    if not vectors.endswith(VECTORS_SUFFIX):
        raise InputError(f"{redact(spec)} is a collection, which stores no vectors: give a .npy file")
    return VectorSource(CollectionSource(spec), open_vectors(Path(vectors)), name=Path(vectors).name)


def open_texts(spec: str, *, vectors: str | None = None, **fields: str) -> TextSource:
    """Open a source of texts or a collection; `fields` as for `open_documents`."""
    source = open_documents(spec, vectors=vectors, **fields)
    if isinstance(source, MatrixSource):
        raise InputError(f"{source.name} contains feature rows: expected a source of texts")
    return source


def load_embedder(folder: Path | None, vectors: str | None = None) -> Embed | None:
    """Load an embedding model whose vectors are cached on disk; None if no folder is given."""
    if folder is None:
        return None
    from snuh.features.embedding import cache_folder, load_embedding

    if vectors is not None:
        raise InputError("--vectors and --embed-with both give the vectors: omit one of them")
    return load_embedding(folder, cache=cache_folder())


def open_collection(address: str, embed: Embed | None) -> Collection:
    """Open a collection with an embedding; InputError if there is one and the model reads words alone."""
    from snuh.collection import Collection

    collection = Collection(address, embed=embed)
    if embed is not None and collection.model.vectors is None:
        collection.close()
        raise InputError(f"the model of {collection.name} reads words alone: omit --embed-with")
    return collection


def load_model(spec: str) -> Model:
    """Load a model folder, or the model of a collection."""
    from snuh.collection import Collection
    from snuh.model import load

    if not holds_collection(spec):
        return load(spec)
    with Collection(spec) as collection:
        return collection.model


def holds_collection(spec: str | Path) -> bool:
    """Tell whether `spec` names a collection; a remote one is not checked for existence."""
    return is_remote(spec) or is_collection_folder(Path(spec))


def check_writable(path: Path) -> None:
    """Raise InputError, before slow work starts, if `path` cannot be written."""
    for folder in resolve(path).parents:
        kind = "a model" if is_model(folder) else "a collection" if holds_collection(folder) else ""
        if kind:
            raise InputError(
                f"cannot write {path}: {folder} is {kind} and must not contain other files: "
                "choose another path"
            )
    missing = resolve(path)
    while not os.path.lexists(missing.parent):
        missing = missing.parent
    parent = missing.parent
    if not parent.is_dir():
        raise InputError(f"cannot write {path}: {parent} is not a folder")
    try:
        # Permissions do not tell everything: nothing can be created in /proc, and a name may be too long.
        with TemporaryDirectory(prefix=f".{missing.name}.", dir=parent):
            pass
    except OSError as error:
        raise InputError(
            f"cannot write {path}: nothing can be created in the folder {parent} "
            f"({error.strerror or error}): choose another path"
        ) from None


def check_no_source(path: Path, source: str) -> None:
    """Raise InputError if writing `path` would replace the source."""
    input_path = source_path(source)
    # samefile sees through links.
    if (
        input_path is not None
        and os.path.exists(path)
        and os.path.exists(input_path)
        and path.samefile(input_path)
    ):
        raise InputError(
            f"cannot write {path}: it is the source, which would be overwritten: choose another file"
        )


def print_json(value: object) -> None:
    """Print one JSON object."""
    text = dump_json(value, indent=2)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # a terminal in an older encoding: JSON can escape what it lacks
        text = json.dumps(json.loads(text), indent=2)
    typer.echo(text)


def results_console() -> Console:
    """Return a console on stdout, with a fixed width if stdout is not a terminal and COLUMNS is not set."""
    from rich.console import Console

    is_fixed = not sys.stdout.isatty() and not os.environ.get("COLUMNS", "").isdigit()
    # Highlighting would colour every number in the texts of documents.
    return Console(width=WIDTH_WITHOUT_TERMINAL if is_fixed else None, highlight=False)


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    from rich.text import Text

    console = results_console()
    width = max(len(name) for name, _ in facts) + 2
    for name, value in facts:
        console.print(Text.assemble((name.ljust(width), "dim"), value), soft_wrap=True)


def print_steps(steps: Sequence[str]) -> None:
    """Print commands to run next."""
    from rich.text import Text

    console = results_console()
    console.print("\nNext steps:")
    for step in steps:
        console.print(Text(f"  {step}", style="cyan"), soft_wrap=True)


def hit_to_json(hit: Hit) -> dict[str, Any]:
    """Return a hit as a JSON object, with the first line of its text."""
    from snuh.collection import query

    fields = query.hit_to_json(hit) | {"text": first_line(hit.document.text)}
    del fields["split"]
    if hit.score is None:
        del fields["score"]
    return fields


def line_of_text(text: str) -> str:
    """Return the start of a text as one line, long enough for any terminal, with whitespace collapsed."""
    return " ".join(text[: 4 * MAX_LINE_CHARACTERS].split())[:MAX_LINE_CHARACTERS]


def first_line(text: str) -> str:
    """Return the first line that is not blank, with whitespace collapsed."""
    return next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Return '1 document' or '1,234 documents'; `nouns` is an irregular plural."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def duration(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
