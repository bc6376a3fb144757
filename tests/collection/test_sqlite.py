"""Stores that threads of one process open and close at the same time."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from snuh.collection import Collection
from snuh.collection.local.sqlite import StoreConnection
from snuh.collection.local.store import STORE_FILE
from tests.collection.worlds import toy_model


def test_threads_open_and_close_stores_at_the_same_time(tmp_path: Path) -> None:
    stores = [tmp_path / name / STORE_FILE for name in ("a", "b")]
    for store in stores:
        Collection.create(store.parent, toy_model()).close()
    many = [StoreConnection(stores[0], timeout=5) for _ in range(50)]
    problems: list[Exception] = []
    end = time.monotonic() + 1.0

    def work(store: Path) -> None:
        try:
            while time.monotonic() < end:
                StoreConnection(store, timeout=5).close()
        except Exception as error:
            problems.append(error)

    default = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(store,)) for store in (*stores, stores[0])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(default)
        for one in many:
            one.close()
    assert not problems
