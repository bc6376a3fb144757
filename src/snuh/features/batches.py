"""Reading texts as a stream: in batches of bounded size, worked on by a few threads, results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from snuh.errors import InputError
from snuh.threads import usable_processors

BATCH_CHARACTERS = 2_000_000
BATCH_TEXTS = 100_000  # a stream of empty texts has batches too

Batch = list[str]
Result = TypeVar("Result")


def text_batches(texts: Iterable[str], *, most: int = BATCH_CHARACTERS) -> Iterator[Batch]:
    """Yield the texts in lists of about `most` characters; InputError for what is no text."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InputError(
            f"expected several texts, such as a list of str, got one {type(texts).__name__}: put it in a list"
        )
    batch: Batch = []
    characters = 0
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"document {number}: expected a text (str), got {type(text).__name__}")
        batch.append(text)
        characters += len(text)
        if characters >= most or len(batch) >= BATCH_TEXTS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def usable_threads() -> int:
    """Return the number of processors this process may use, four at most."""
    return min(usable_processors(), 4)


def map_in_order(
    work: Callable[[Batch], Result], batches: Iterable[Batch], *, threads: int
) -> Iterator[Result]:
    """Yield the result for each batch in order, at most `threads` + 1 batches being held at a time."""
    if threads == 1:
        yield from map(work, batches)
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[Result]] = deque()
        for batch in batches:
            pending.append(pool.submit(work, batch))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
