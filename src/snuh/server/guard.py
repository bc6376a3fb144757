"""Every request passes here first: who asks, from where, how often; and every answer is made safe to show."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from snuh.server.metrics import Metrics
from snuh.server.proxies import Proxies
from snuh.server.rate import Rate
from snuh.server.refusals import Refusal
from snuh.server.settings import Settings

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
