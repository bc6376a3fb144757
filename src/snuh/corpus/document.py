"""A document, and what a source of documents promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
Progress: TypeAlias = Callable[[float], None]

SPLITS = ("train", "val", "test")


@dataclass(frozen=True, slots=True)
class Document:
    """One text with its id; labels serve evaluation only."""

    id: str
    text: str
    labels: tuple[str, ...] = ()
    split: str | None = None
    metadata: Mapping[str, JSON] = field(default_factory=dict)


class TextSource(ABC):
    """Documents that can be read again and again, each time from the start, one at a time."""

    name: str

    @abstractmethod
    def documents(self, progress: Progress | None = None) -> Iterator[Document]:
        """Yield the documents in a fixed order, reporting the fraction (0 to 1) of the source read so far."""

    def __iter__(self) -> Iterator[Document]:
        """Yield the documents without reporting progress."""
        return self.documents()
