"""Prometheus metrics; with several worker processes their counters are merged through files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import prometheus_client as prometheus
from prometheus_client import multiprocess

DURATION_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds
BATCH_BUCKETS = (1, 2, 4, 8, 16, 32)
METHODS = ("GET", "POST", "HEAD", "OPTIONS")


class Metrics:
    """Counters and histograms of one server process."""

    def __init__(self, *, is_shared: bool) -> None:
        self._is_shared = is_shared
        self._registry = prometheus.CollectorRegistry()
        registry = None if is_shared else self._registry
        if not is_shared:
            prometheus.ProcessCollector(registry=self._registry)
        self._requests = prometheus.Counter(
            "snuh_requests", "Requests handled.", ["method", "path", "status"], registry=registry
        )
        self._seconds = prometheus.Histogram(
            "snuh_request_seconds",
            "Duration of requests in seconds.",
            ["path"],
            buckets=DURATION_BUCKETS,
            registry=registry,
        )
        self._written = prometheus.Counter(
            "snuh_documents_written",
            "Documents added, replaced or deleted.",
            ["collection"],
            registry=registry,
        )
        self._batch_size = prometheus.Histogram(
            "snuh_search_batch_size",
            "Searches answered by one scan of the codes.",
            buckets=BATCH_BUCKETS,
            registry=registry,
        )
        self._children: dict[tuple[str, ...], Any] = {}  # `labels()` is slow

    def count_request(self, scope: Mapping[str, Any], status: int, seconds: float) -> None:
        """Count a request under its route's path template, to bound the number of label values."""
        path = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._child(self._requests, method, path, str(status)).inc()
        self._child(self._seconds, path).observe(seconds)

    def count_written(self, collection: str, documents: int) -> None:
        """Count documents that were added, replaced or deleted."""
        self._written.labels(collection).inc(documents)

    def count_batch(self, searches: int) -> None:
        """Record the number of searches in a batch."""
        self._batch_size.observe(searches)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        registry = self._registry
        if self._is_shared:
            registry = prometheus.CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return prometheus.generate_latest(registry)

    def _child(self, metric: Any, *labels: str) -> Any:  # Any: counters and histograms share no useful base
        key = (metric._name, *labels)
        if key not in self._children:
            self._children[key] = metric.labels(*labels)
        return self._children[key]
