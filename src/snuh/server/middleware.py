"""Every request passes here first: who asks, from where, how often; and every answer is made safe to show."""

from __future__ import annotations

import math
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, TypeAlias, cast

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from snuh.errors import InputError
from snuh.server.errors import Refusal
from snuh.server.metrics import Metrics
from snuh.server.settings import Settings

# How often one address may ask: a bucket of tokens that fills again as time goes by.

MAX_ADDRESSES = 10_000
BURST_SECONDS = 2.0  # of requests may come at once


class Rate:
    """Counts the requests of each address."""

    def __init__(self, per_second: float, *, clock: Callable[[], float]) -> None:
        self._per_second, self._clock = per_second, clock
        self._limit = max(1.0, BURST_SECONDS * per_second)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and as of when

    def wait_of(self, address: str) -> int:
        """Count a request; return 0, or after how many whole seconds the next may come."""
        if not self._per_second:
            return 0
        now = self._clock()
        left, since = self._buckets.pop(address, (self._limit, now))
        left = min(self._limit, left + (now - since) * self._per_second)
        allowed = left >= 1.0
        self._buckets[address] = (left - 1.0 if allowed else left, now)
        if len(self._buckets) > MAX_ADDRESSES:
            self._buckets.popitem(last=False)
        return 0 if allowed else math.ceil((1.0 - left) / self._per_second)


# Servers in front of this one, whose word on where a request comes from is believed.


@dataclass(frozen=True, slots=True)
class Sender:
    """Whoever sent a request."""

    address: str
    host: str  # the name by which it called the server
    is_passed_on: bool  # by a server in front, which answers for that name


class Proxies:
    """Addresses, or networks, of servers in front; nobody else's `X-Forwarded-` headers are read."""

    def __init__(self, addresses: Iterable[str]) -> None:
        self._networks = [_network(address) for address in addresses]

    def sender_of(self, peer: str, headers: Mapping[bytes, bytes]) -> Sender:
        """Return who sent a request that came from the address `peer`."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._networks or not self._has(peer):
            return Sender(peer, host, is_passed_on=False)
        named = _items(headers.get(b"x-forwarded-host", b""))
        passed = _items(headers.get(b"x-forwarded-for", b""))
        # Each server adds the address it saw at the end: what stands before a stranger's is his own word.
        address = next((one for one in reversed(passed) if not self._has(one)), peer)
        return Sender(address, named[-1] if named else host, is_passed_on=True)

    def _has(self, address: str) -> bool:
        try:
            return any(ip_address(address) in network for network in self._networks)
        except ValueError:
            return False


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise InputError(f'--proxy expects an address such as "127.0.0.1", got "{text}"') from None


def _items(header: bytes) -> list[str]:
    return [item.strip() for item in header.decode("latin-1").split(",") if item.strip()]


Message: TypeAlias = MutableMapping[str, Any]  # what ASGI passes around
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
OTHER_SITES = (b"cross-site", b"same-site")  # as browsers say: the latter has another port or subdomain
PROTECTED = ("/v1/", "/metrics")  # need a token where there are tokens

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }.items()
]


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: App, settings: Settings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics
        self._rate = Rate(settings.limits.rate, clock=time.monotonic)
        self._proxies = Proxies(settings.proxies)
        self._names = LOCAL_NAMES | {settings.host} if settings.is_loopback else None  # None: any
        self._open_right = "read" if settings.is_read_only else "write"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(header for header in HEADERS if header[0] not in given),
                ]
            await send(message)

        try:
            self._check(scope)
        except Refusal as refusal:
            await refusal.response()(scope, receive, send_safely)
        else:
            await self._app(scope, receive, send_safely)
        finally:
            self._metrics.count(scope, status, time.perf_counter() - started)

    def _check(self, scope: Message) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        sender = self._proxies.sender_of(scope["client"][0] if scope.get("client") else "", headers)
        if not sender.is_passed_on:
            self._check_host(sender.host)
        self._check_site(headers, sender.host, scope["path"])
        if not _is_page(scope["path"]) and (wait := self._rate.wait_of(sender.address)):
            refusal = Refusal(429, "rate", f"too many requests: come again in {wait} s")
            refusal.headers["retry-after"] = str(wait)
            raise refusal
        scope["state"]["may_write"] = self._right(scope["path"], headers) == "write"

    def _check_host(self, host: str) -> None:
        """Refuse other names on this machine: a page of another site may have been given one of them."""
        if self._names is None:
            return
        name, _, port = host.rpartition(":")
        if (name if port.isdigit() else host).lower() not in self._names:
            known = self._settings.host
            raise Refusal(421, "host", f"this server goes by the name of {known}, not by another")

    def _check_site(self, headers: dict[bytes, bytes], host: str, path: str) -> None:
        """Refuse pages of other sites; browsers tell of their images and scripts in another header."""
        if (origin := headers.get(b"origin")) is not None:
            known = (*self._settings.origins, f"http://{host}", f"https://{host}")
            is_other = origin.decode("latin-1") not in known
        else:
            is_other = headers.get(b"sec-fetch-site") in OTHER_SITES and path.startswith(PROTECTED)
        if is_other:
            raise Refusal(403, "forbidden", "pages of other sites may not use this server")

    def _right(self, path: str, headers: dict[bytes, bytes]) -> str | None:
        tokens = self._settings.tokens
        if not tokens:
            return self._open_right
        if not path.startswith(PROTECTED):
            return None
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        right = tokens.right_of(token.strip()) if scheme.lower() == "bearer" else None
        if right is None:
            refusal = Refusal(401, "token", 'a token is needed: send "Authorization: Bearer TOKEN"')
            refusal.headers["www-authenticate"] = "Bearer"
            raise refusal
        return "read" if self._settings.is_read_only else right


def _is_page(path: str) -> bool:
    """Tell whether it is one of the page's files: many, small, in memory, and useless without the others."""
    return path == "/" or path.startswith("/page/")


# A shorter way to searches: the same function, without what the framework does around each request.
#
# To find the route, resolve its parameters and wrap the request takes FastAPI longer than all else that a
# search over HTTP needs beside the search itself. The route stays in the schema.

Endpoint: TypeAlias = Callable[[Request, str], Awaitable[Response]]
Handler: TypeAlias = Callable[[Request, Exception], Awaitable[Response]]


class Shortcut:
    """An ASGI application around FastAPI's, for one route of a POST whose only parameter is `{name}`."""

    def __init__(self, app: FastAPI, router: APIRouter, endpoint: Endpoint) -> None:
        self._app, self._endpoint = app, endpoint
        self._route = next(
            route for route in router.routes if isinstance(route, APIRoute) and route.endpoint is endpoint
        )
        before, after = self._route.path.split("{name}")
        self._path = re.compile(f"{re.escape(before)}([^/]+){re.escape(after)}")

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request for the route, and pass on every other one."""
        found = None
        if scope["type"] == "http" and scope["method"] == "POST":
            found = self._path.fullmatch(scope["path"])
        if found is None:
            await self._app(scope, receive, send)
            return
        scope["app"], scope["route"] = self._app, self._route
        request = Request(scope, receive)
        try:
            response = await self._endpoint(request, found[1])
        except Exception as error:
            await self._refuse(request, error, send)
        else:
            await response(scope, receive, send)

    async def _refuse(self, request: Request, error: Exception, send: Send) -> None:
        """Answer as the application's own handlers do; a bug goes on to the log."""
        handlers = self._app.exception_handlers
        kind = next(kind for kind in type(error).__mro__ if kind in handlers)
        handler = cast(Handler, handlers[kind])  # all of them are coroutines
        response = await handler(request, error)
        await response(request.scope, request.receive, send)
        if kind is Exception:
            raise error
