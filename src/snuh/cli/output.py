"""Results on stdout: tables for people, JSON for machines; and looking at a place before slow work starts."""

from __future__ import annotations

import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from snuh.corpus import Document, FractionCallback, MatrixSource, TextSource, open_source
from snuh.corpus.source import source_path
from snuh.errors import InputError
from snuh.io import dump_json, is_collection_folder, is_model
from snuh.progress import EpochReport, Progress
from snuh.urls import is_remote, redact

# How far a command has come, on stderr: live bars on a terminal, now and then a line elsewhere.

STAGES = {
    "words": "Learning the vocabulary",
    "rows": "Weighing the words",
    "similarity": "Comparing documents",
    "graph": "Finding neighbours",
    "trees": "Drawing trees",
    "training": "Training",
}
SECONDS_BETWEEN_LINES = 10.0
SECONDS_WORTH_A_LINE = 1.0


class Display(ABC):
    """Shows stages by their label; it is itself the callback that a fit takes."""

    @abstractmethod
    def show(self, label: str, done: float) -> None:
        """Show that the stage `label` is done to the share `done`; 0 means it is not known how far."""

    @abstractmethod
    def show_epoch(self, label: str, line: str) -> None:
        """Show one finished epoch."""

    def __call__(self, progress: Progress) -> None:
        """Show what a fit reports."""
        label = STAGES.get(progress.stage, progress.stage)
        if progress.epoch is not None:
            epochs = round(progress.epoch.epoch / progress.done)
            self.show_epoch(label, describe_epoch(progress.epoch, epochs))
        self.show(label, progress.done)

    def stage(self, label: str) -> Callable[[float], None]:
        """Return the callback of one stage."""
        return lambda done: self.show(label, done)


@contextmanager
def display() -> Iterator[Display]:
    """Show progress for the length of the block."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from snuh.cli.progress_bars import Bars

    with Bars() as bars:
        yield bars


def describe_epoch(report: EpochReport, epochs: int) -> str:
    """Put an epoch into one line."""
    parts = ", ".join(f"{name} {value:.4g}" for name, value in report.parts.items())
    loss = f"loss {sum(report.parts.values()):.2f} ({parts})"
    alive = "" if report.alive else " · codes not alive yet"
    score = f"score {report.score:.4f} (best {report.best_score:.4f})"
    return f"epoch {report.epoch}/{epochs} · {loss} · {score}{alive} · {report.seconds:.1f} s"


@dataclass
class Lines(Display):
    """Plain lines for logs: one an epoch, one at the end of other stages, and more where they take long."""

    clock: Callable[[], float] = time.monotonic
    _started: dict[str, float] = field(default_factory=dict)
    _last_line: float = 0.0
    _has_epochs: set[str] = field(default_factory=set)

    def show(self, label: str, done: float) -> None:
        """Write a line at the end of a stage, and from time to time before it."""
        now = self.clock()
        if label not in self._started:
            self._started[label] = self._last_line = now
        if label in self._has_epochs:
            return
        if done >= 1.0:
            seconds = now - self._started.pop(label)
            if seconds >= SECONDS_WORTH_A_LINE:
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


# Documents to read: a source of any kind, or a collection in the place of one.

DOCUMENTS_PER_REPORT = 256


class CollectionSource(TextSource):
    """The documents of a collection, in order of insertion."""

    def __init__(self, address: str) -> None:
        from snuh.collection import short_name

        self.name = short_name(address)
        self._address = address

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        """Yield the documents; the collection is open only meanwhile."""
        from snuh.collection import Collection

        with Collection(self._address) as collection:
            total = len(collection)
            if not total:
                raise InputError(f'{collection.name}: there are no documents in it: add some with "snuh add"')
            for count, document in enumerate(collection.documents()):
                if progress is not None and count % DOCUMENTS_PER_REPORT == 0:
                    progress(min(1.0, count / total))
                yield document
        if progress is not None:
            progress(1.0)


class LimitedSource(TextSource):
    """The documents of another source, refused where a text is too long for a collection."""

    def __init__(self, source: TextSource, *, max_characters: int) -> None:
        self.name = source.name
        self._source = source
        self._limit = max_characters

    def documents(self, progress: FractionCallback | None = None) -> Iterator[Document]:
        """Yield the documents up to the first that is too long."""
        from snuh.collection.validation import checked_documents

        yield from checked_documents(self._source.documents(progress), self._limit)


def open_documents(spec: str, *, text_field: str = "text", id_field: str = "id") -> TextSource | MatrixSource:
    """Open a source, or a collection."""
    if not holds_collection(spec):
        return open_source(spec, text_field=text_field, id_field=id_field)
    for option, name, usual in (("--text-field", text_field, "text"), ("--id-field", id_field, "id")):
        if name != usual:
            raise InputError(
                f"{redact(spec)} is a collection, which knows its own fields: leave {option} out"
            )
    return CollectionSource(spec)


def open_texts(spec: str, *, text_field: str = "text", id_field: str = "id") -> TextSource:
    """Open a source of texts, or a collection."""
    source = open_documents(spec, text_field=text_field, id_field=id_field)
    if isinstance(source, MatrixSource):
        raise InputError(f"{source.name} holds feature rows: expected a source of texts")
    return source


def holds_collection(spec: str | Path) -> bool:
    """Tell whether a collection is at `spec`."""
    # Whether a remote collection exists is seen when it is opened.
    return is_remote(spec) or is_collection_folder(Path(spec))


if TYPE_CHECKING:
    from rich.console import Console

    from snuh.search import Hit

WIDTH_WITHOUT_TERMINAL = 120
LINE_CHARACTERS = 500  # more than any terminal is wide
SCORE = "how much of what one half of a document is about the code of the other half finds"


def print_json(value: object) -> None:
    """Print one JSON object."""
    typer.echo(dump_json(value, indent=2))


def duration(seconds: float) -> str:
    """Write a time for people, in the unit that suits it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def results_console() -> Console:
    """Return a console on stdout, of a fixed width where stdout is no terminal and COLUMNS is not set."""
    from rich.console import Console

    is_free = not sys.stdout.isatty() and not os.environ.get("COLUMNS", "").isdigit()
    # Highlighting would colour every number in the texts of documents.
    return Console(width=WIDTH_WITHOUT_TERMINAL if is_free else None, highlight=False)


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    from rich.text import Text

    console = results_console()
    width = max(len(name) for name, _ in facts) + 2
    for name, value in facts:
        console.print(Text.assemble((name.ljust(width), "dim"), value), soft_wrap=True)


def print_steps(steps: Sequence[str]) -> None:
    """Print what to type next."""
    from rich.text import Text

    console = results_console()
    console.print("\nGo on with:")
    for step in steps:
        console.print(Text(f"  {step}", style="cyan"), soft_wrap=True)


def check_writable(path: Path) -> None:
    """Raise InputError where nothing can be written at `path`, before the work is done for nothing."""
    for folder in path.resolve().parents:
        kind = "a model" if is_model(folder) else "a collection" if holds_collection(folder) else ""
        if kind:
            raise InputError(
                f"cannot write {path}: {folder} is {kind}, which nothing else may be in: choose another place"
            )
    wanted = path.resolve()
    while not os.path.lexists(wanted.parent):
        wanted = wanted.parent
    if not wanted.parent.is_dir():
        raise InputError(f"cannot write {path}: {wanted.parent} is not a folder")
    try:
        # Permissions do not tell all: nobody can make anything in /proc, and a name may be too long.
        with TemporaryDirectory(prefix=f".{wanted.name}.", dir=wanted.parent):
            pass
    except OSError as error:
        raise InputError(
            f"cannot write {path}: nothing can be made in the folder {wanted.parent} "
            f"({error.strerror or error}): choose another place"
        ) from None


def check_no_source(path: Path, source: str) -> None:
    """Raise InputError where writing `path` would replace the source that is read."""
    read = source_path(source)
    # By what they are, not by their names: either may be a link.
    if read is not None and os.path.exists(path) and os.path.exists(read) and path.samefile(read):
        raise InputError(f"cannot write {path}: it is the source, which would be lost: choose another file")


def hit_to_json(hit: Hit) -> dict[str, Any]:
    """Return plain values for JSON, with the first line of the text."""
    from snuh.collection import results

    fields = results.hit_to_json(hit) | {"text": first_line(hit.document.text)}
    del fields["split"]
    if hit.score is None:
        del fields["score"]
    return fields


def start_of(text: str) -> str:
    """Return what fills a line, also behind a title of few words, its spaces evened out."""
    return " ".join(text[: 4 * LINE_CHARACTERS].split())[:LINE_CHARACTERS]


def first_line(text: str) -> str:
    """Return the first line with something on it, its spaces evened out."""
    return next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")


def plural(count: int, noun: str) -> str:
    """Return '1 document' or '1,234 documents'."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
