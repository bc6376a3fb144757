"""Approximate searches: how many lists of Milvus's index to read, measured on the collection's own codes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from snuh.collection.backend import recall_of
from snuh.collection.milvus.entities import FACT, Row
from snuh.collection.milvus.finding import ALL_LISTS, Found
from snuh.collection.milvus.rows import Rows
from snuh.collection.results import IndexInfo
from snuh.errors import CollectionError

LISTS = 1_024  # of each part that Milvus indexes; fewer where it has few rows
INDEX = {"index_type": "BIN_IVF_FLAT", "metric_type": "HAMMING", "params": {"nlist": LISTS}}
FAST_KEY = "fast"
MIN_INDEXED = 1_024  # rows of a segment
QUERIES = 100  # that the recall is measured on
INDEXING_SECONDS, POLL_SECONDS = 3_600.0, 0.2

Find = Callable[[NDArray[np.uint8], int], list[list[Found]]]  # queries and how many lists to read


def wait_for_index(rows: Rows) -> None:
    """Wait until Milvus has indexed all codes, and its searches go through the index."""
    rows.connection.flush(rows.facts.documents)
    end = time.monotonic() + INDEXING_SECONDS
    while not rows.connection.is_indexed(rows.facts.documents, "code"):
        if time.monotonic() > end:
            raise CollectionError(
                f"{rows.connection.site.shown}: Milvus has not finished its index: try again later"
            )
        time.sleep(POLL_SECONDS)


def unmeasured(*, k: int, documents: int) -> IndexInfo:
    """Return what is true of a collection that is too small for Milvus to index it."""
    words = f"all lists are read: Milvus indexes no fewer than {MIN_INDEXED:,} documents"
    return IndexInfo({"lists": LISTS, "read": LISTS}, words, k, 1.0, documents)


def measured(queries: NDArray[np.uint8], find: Find, *, k: int, recall: float, documents: int) -> IndexInfo:
    """Return the smallest power of two of lists to read that finds the wanted share of the exact answer."""
    exact = find(queries, ALL_LISTS)
    probes = 1
    while (reached := recall_of(exact, find(queries, probes))) < recall and probes < LISTS:
        probes *= 2
    words = f"{probes} of up to {LISTS:,} lists are read in each segment"
    return IndexInfo({"lists": LISTS, "read": probes}, words, k, reached, documents)


def write_fast(rows: Rows, approximate: IndexInfo, *, write: int) -> None:
    """Remember what was measured."""
    told = {"read": approximate.settings["read"], "words": approximate.words, "k": approximate.k}
    text = json.dumps({**told, "recall": approximate.recall, "documents": approximate.documents})
    rows.write([Row(FAST_KEY, FACT, text, write)])


def read_index_info(rows: Rows) -> IndexInfo | None:
    """Return what was measured; None where nothing was, or it cannot be read."""
    try:
        told = json.loads(rows.by_keys([FAST_KEY], ["text"])[FAST_KEY]["text"])
        settings = {"lists": LISTS, "read": int(told["read"])}
        return IndexInfo(
            settings, str(told["words"]), int(told["k"]), float(told["recall"]), int(told["documents"])
        )
    except (KeyError, ValueError, TypeError):
        return None
