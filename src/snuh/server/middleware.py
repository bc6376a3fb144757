"""ASGI middleware: request ids, rate limits, checks of hosts, origins and tokens, the access log, metrics."""

from __future__ import annotations

import logging
import math
import random
import re
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, TypeAlias

import prometheus_client as prometheus
from prometheus_client import multiprocess

import snuh
from snuh.errors import InputError
from snuh.server.requests import ApiError
from snuh.server.settings import Settings

Message: TypeAlias = MutableMapping[str, Any]  # Any: scopes and messages of ASGI
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

access_log = logging.getLogger("snuh.access")

MAX_ADDRESSES = 10_000  # clients whose request rate is tracked
BURST_SECONDS = 2.0  # of requests may arrive at once
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
SINGLE_HEADERS = (b"host", b"origin", b"authorization")
OTHER_SITES = (b"cross-site", b"same-site")  # Sec-Fetch-Site; same-site: another port or subdomain
PROTECTED_PATHS = ("/v1/", "/metrics")  # require a token if the server has tokens
REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")  # of a client or proxy

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = [
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": CONTENT_SECURITY_POLICY,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }.items()
]
NO_STORE, NO_CACHE = (b"cache-control", b"no-store"), (b"cache-control", b"no-cache")  # no-cache: by ETag

DURATION_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds
BATCH_BUCKETS = (1, 2, 4, 8, 16, 32)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class RateLimiter:
    """A token bucket per client address."""

    def __init__(self, per_second: float, *, clock: Callable[[], float]) -> None:
        self._per_second, self._clock = per_second, clock
        self._capacity = max(1.0, BURST_SECONDS * per_second)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # (tokens, time of update)

    def retry_after(self, address: str) -> int:
        """Count a request; return 0 if it is allowed, else the seconds to wait, rounded up."""
        if not self._per_second:
            return 0
        now = self._clock()
        tokens, updated = self._buckets.pop(address, (self._capacity, now))
        tokens = min(self._capacity, tokens + (now - updated) * self._per_second)
        is_allowed = tokens >= 1.0
        self._buckets[address] = (tokens - 1.0 if is_allowed else tokens, now)
        if len(self._buckets) > MAX_ADDRESSES:
            self._buckets.popitem(last=False)
        return 0 if is_allowed else math.ceil((1.0 - tokens) / self._per_second)


@dataclass(frozen=True, slots=True)
class Sender:
    """The client that sent a request."""

    address: str
    host: str  # the host name that the client used
    is_proxied: bool  # the reverse proxy has checked the host name


class Proxies:
    """Addresses or networks of trusted reverse proxies; `X-Forwarded-*` from others is ignored."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self._networks = [_parse_network(address) for address in addresses]

    def sender_of(self, peer: str, headers: Mapping[bytes, bytes]) -> Sender:
        """Return the client of a request on a connection from the address `peer`."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._networks or not self._is_trusted(peer):
            return Sender(peer, host, is_proxied=False)
        forwarded_hosts = _split_header(headers.get(b"x-forwarded-host", b""))
        forwarded_for = _split_header(headers.get(b"x-forwarded-for", b""))
        # Each proxy appends the address it saw: entries before the last untrusted one may be forged.
        address = next((item for item in reversed(forwarded_for) if not self._is_trusted(item)), peer)
        return Sender(address, forwarded_hosts[-1] if forwarded_hosts else host, is_proxied=True)

    def _is_trusted(self, address: str) -> bool:
        try:
            return any(ip_address(address) in network for network in self._networks)
        except ValueError:
            return False


def _parse_network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise InputError(f'--proxy expects an address such as "127.0.0.1", got "{text}"') from None


def _split_header(header: bytes) -> list[str]:
    return [item.strip() for item in header.decode("latin-1").split(",") if item.strip()]


class SecurityMiddleware:
    """Checks every request before the application sees it, and adds security headers to every response."""

    def __init__(self, app: App, settings: Settings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._rate_limiter = RateLimiter(settings.limits.rate, clock=time.monotonic)
        self._proxies = Proxies(settings.proxies)
        self._hosts = LOCAL_HOSTS | {settings.host} if settings.is_loopback else None  # None: any
        self._needs_token = bool(settings.tokens)
        self._default_right = "read" if settings.is_read_only else "write"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on, or respond with an error."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, method, status, size = time.perf_counter(), scope["method"], 0, 0
        if method == "HEAD":
            scope = {**scope, "method": "GET"}  # uvicorn leaves the body out
        request_id = _request_id(scope["headers"])
        scope["state"]["request_id"] = request_id.decode()
        cache_control = NO_CACHE if _is_page(scope["path"]) else NO_STORE

        async def send_with_headers(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    *SECURITY_HEADERS,
                    cache_control,
                    (b"x-request-id", request_id),
                ]
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            self._check(scope)
        except ApiError as error:
            await error.response()(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - started
            self._metrics.count_request(scope, method, status, seconds)
            if access_log.isEnabledFor(logging.INFO):
                self._log(scope, method, status, size, seconds)

    def _log(self, scope: Message, method: str, status: int, size: int, seconds: float) -> None:
        values = {
            "request_id": scope["state"]["request_id"],
            "client": scope["state"].get("client"),
            "method": method,
            "path": scope["path"],
            "status": status,
            "bytes": size,
            "ms": round(1e3 * seconds, 2),
        }
        access_log.info("%s %s %s", method, scope["path"], status, extra={"values": values})

    def _check(self, scope: Message) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if len(headers) < len(scope["headers"]):
            _check_single(scope["headers"])
        sender = self._proxies.sender_of(scope["client"][0] if scope.get("client") else "", headers)
        scope["state"]["client"] = sender.address
        if not sender.is_proxied:
            self._check_host(sender.host)
        self._check_origin(headers, sender.host, scope["path"])
        if not _is_page(scope["path"]) and (seconds := self._rate_limiter.retry_after(sender.address)):
            message = f"too many requests: retry in {seconds} s"
            raise ApiError(429, "rate", message, headers={"retry-after": str(seconds)})
        scope["state"]["may_write"] = self._right(scope["path"], headers) == "write"

    def _check_host(self, host: str) -> None:
        """Raise a 421 error for other host names, to prevent DNS rebinding on a loopback address."""
        if self._hosts is None:
            return
        name, _, port = host.rpartition(":")
        name = name if port.isdigit() else host
        if name.lower() not in self._hosts:
            known = self._settings.host
            raise ApiError(421, "host", f'unknown host "{name}": this server answers to {known}')

    def _check_origin(self, headers: dict[bytes, bytes], host: str, path: str) -> None:
        """Raise a 403 error for pages of other sites; images and scripts send Sec-Fetch-Site only."""
        if (origin := headers.get(b"origin")) is not None:
            allowed = (*self._settings.origins, f"http://{host}", f"https://{host}")
            is_other = origin.decode("latin-1") not in allowed
        else:
            is_other = headers.get(b"sec-fetch-site") in OTHER_SITES and path.startswith(PROTECTED_PATHS)
        if is_other:
            raise ApiError(403, "forbidden", "pages of other sites may not use this server")

    def _right(self, path: str, headers: dict[bytes, bytes]) -> str | None:
        if not self._needs_token:
            return self._default_right
        if not path.startswith(PROTECTED_PATHS):
            return None
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        right = self._settings.tokens.right_of(token.strip()) if scheme.lower() == "bearer" else None
        if right is None:
            message = 'a token is required: send "Authorization: Bearer TOKEN"'
            raise ApiError(401, "token", message, headers={"www-authenticate": "Bearer"})
        return "read" if self._settings.is_read_only else right


def _check_single(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Raise a 400 error if a header that must be unique is given more than once."""
    counts = Counter(name for name, _ in headers)
    for name in SINGLE_HEADERS:
        if counts[name] > 1:
            raise ApiError(400, "invalid", f"the header {name.decode()} is given more than once")


def _request_id(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the id that the client or a proxy has given to a request, or a new one."""
    given = next((value for name, value in headers if name == b"x-request-id"), b"")
    # Not a secret, and reading random bytes of the system would let other threads run.
    return given if REQUEST_ID.fullmatch(given) else b"%016x" % random.getrandbits(64)


def _is_page(path: str) -> bool:
    """Return whether a path is a file of the web page or of the API's documentation."""
    return path in ("/", "/docs") or path.startswith("/page/")


# Prometheus metrics; with several worker processes their counters are merged through files.


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
        self._documents = prometheus.Gauge(
            "snuh_documents",
            "Documents of a collection.",
            ["collection"],
            registry=registry,
            multiprocess_mode="mostrecent",
        )
        self._queue_length = prometheus.Gauge(
            "snuh_queue_length",
            "Requests that wait for a collection, or are being answered.",
            ["collection"],
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._jobs = prometheus.Gauge(
            "snuh_jobs_running",
            "Running jobs: maps, duplicates and indexes.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        prometheus.Gauge(
            "snuh_build_info",
            "Always 1; the version is a label.",
            ["version"],
            registry=registry,
            multiprocess_mode="max",
        ).labels(snuh.__version__).set(1)
        self._children: dict[tuple[str, ...], Any] = {}  # `labels()` is slow

    def count_request(self, scope: Mapping[str, Any], method: str, status: int, seconds: float) -> None:
        """Count a request under its route's path template, to bound the number of label values."""
        path = getattr(scope.get("route"), "path_format", "other")
        method = method if method in METHODS else "other"
        self._child(self._requests, method, path, str(status)).inc()
        self._child(self._seconds, path).observe(seconds)

    def count_written(self, collection: str, documents: int) -> None:
        """Count documents that were added, replaced or deleted."""
        self._written.labels(collection).inc(documents)

    def count_batch(self, searches: int) -> None:
        """Record the number of searches in a batch."""
        self._batch_size.observe(searches)

    def set_collection(self, name: str, *, documents: int, queue_length: int) -> None:
        """Record the size of a collection, and how many requests are waiting for it."""
        self._documents.labels(name).set(documents)
        self._queue_length.labels(name).set(queue_length)

    def set_jobs(self, running: int) -> None:
        """Record the number of running jobs."""
        self._jobs.set(running)

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
