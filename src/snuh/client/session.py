"""HTTP sessions of the clients: retries with back-off, jobs, and errors as a collection raises them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from snuh.client.calls import Call
from snuh.errors import CollectionError, InputError, UnknownDocumentError

DEFAULT_URL = "http://127.0.0.1:8765"
FIRST_PAUSE, MAX_PAUSE = 0.05, 1.0  # seconds between two requests for the result of a job
FIRST_DELAY, MAX_DELAY = 0.1, 10.0  # seconds before a request is repeated; doubled each time
NOT_READY = (httpx.codes.ACCEPTED, httpx.codes.TOO_MANY_REQUESTS)  # 429: other jobs are running
# The server has refused these without doing anything, so any request may be repeated.
REFUSED = (
    httpx.codes.TOO_MANY_REQUESTS,
    httpx.codes.BAD_GATEWAY,
    httpx.codes.SERVICE_UNAVAILABLE,
    httpx.codes.GATEWAY_TIMEOUT,
)
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a collection is served, and how patient its client is."""

    name: str
    server: str = DEFAULT_URL
    token: str | None = None
    timeout: float = 60.0  # seconds to wait for a response
    retries: int = 3  # times that a request is repeated if the server is unreachable or overloaded

    @property
    def path(self) -> str:
        """The path of the collection."""
        return f"/v1/collections/{quote(self.name, safe='')}"

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of an httpx client."""
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        return {"base_url": self.server, "headers": headers, "timeout": self.timeout}

    def delay(
        self, attempt: int, call: Call[Any], outcome: httpx.Response | httpx.TransportError
    ) -> float | None:
        """Return the seconds to wait before a request is repeated; None to give up."""
        if attempt >= self.retries:
            return None
        delay = min(MAX_DELAY, FIRST_DELAY * 2.0**attempt) * random.uniform(0.5, 1.0)
        if isinstance(outcome, httpx.TransportError):
            return delay if call.is_read or isinstance(outcome, NOT_SENT) else None
        if outcome.status_code not in REFUSED:
            return None
        after = outcome.headers.get("retry-after", "")
        if not after.isdecimal():
            return delay
        return float(after) if float(after) <= MAX_DELAY else None


class Session:
    """Blocking requests about one collection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        with _checked_url(connection.server):
            self._http = httpx.Client(**connection.options)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def send(self, call: Call[Result]) -> Result:
        """Send a request, repeatedly if it fails, and return its parsed response."""
        with _translated_errors():
            for attempt in range(self._connection.retries + 1):
                outcome = self._try(call)
                delay = self._connection.delay(attempt, call, outcome)
                if delay is None:
                    break
                time.sleep(delay)
            return call.parse(_parse_json(outcome))

    def wait_for(self, call: Call[Result], *, seconds: float) -> Result:
        """Repeat a request until its job is done; CollectionError after `seconds`."""
        waiting = _Waiting(seconds)
        with _translated_errors():
            while (response := self._request(call)).status_code in NOT_READY:
                time.sleep(waiting.next_pause())
            return call.parse(_parse_json(response))

    def upload(self, path: str, lines: Iterator[bytes], *, headers: dict[str, str]) -> dict[str, Any]:
        """Stream lines to the server; this is not repeated."""
        with _translated_errors():
            return _parse_json(self._http.post(self._connection.path + path, content=lines, headers=headers))

    @contextmanager
    def stream(self, path: str, **params: str) -> Iterator[Iterator[bytes]]:
        """Yield the chunks of a response as they arrive."""
        url = self._connection.path + path
        with _translated_errors(), self._http.stream("GET", url, params=params) as response:
            if not response.is_success:
                response.read()
                raise _to_error(response)
            yield response.iter_bytes()

    def _try(self, call: Call[Any]) -> httpx.Response | httpx.TransportError:
        try:
            return self._request(call)
        except httpx.TransportError as error:
            return error

    def _request(self, call: Call[Any]) -> httpx.Response:
        url = self._connection.path + call.path
        return self._http.request(call.method, url, params=call.params, json=call.json)


class AsyncSession:
    """The same with coroutines."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        with _checked_url(connection.server):
            self._http = httpx.AsyncClient(**connection.options)

    async def close(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def send(self, call: Call[Result]) -> Result:
        """Send a request, repeatedly if it fails, and return its parsed response."""
        with _translated_errors():
            for attempt in range(self._connection.retries + 1):
                outcome = await self._try(call)
                delay = self._connection.delay(attempt, call, outcome)
                if delay is None:
                    break
                await asyncio.sleep(delay)
            return call.parse(_parse_json(outcome))

    async def wait_for(self, call: Call[Result], *, seconds: float) -> Result:
        """Repeat a request until its job is done; CollectionError after `seconds`."""
        waiting = _Waiting(seconds)
        with _translated_errors():
            while (response := await self._request(call)).status_code in NOT_READY:
                await asyncio.sleep(waiting.next_pause())
            return call.parse(_parse_json(response))

    async def upload(
        self, path: str, lines: AsyncIterator[bytes], *, headers: dict[str, str]
    ) -> dict[str, Any]:
        """Stream lines to the server; this is not repeated."""
        with _translated_errors():
            url = self._connection.path + path
            return _parse_json(await self._http.post(url, content=lines, headers=headers))

    @asynccontextmanager
    async def stream(self, path: str, **params: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the chunks of a response as they arrive."""
        url = self._connection.path + path
        with _translated_errors():
            async with self._http.stream("GET", url, params=params) as response:
                if not response.is_success:
                    await response.aread()
                    raise _to_error(response)
                yield response.aiter_bytes()

    async def _try(self, call: Call[Any]) -> httpx.Response | httpx.TransportError:
        try:
            return await self._request(call)
        except httpx.TransportError as error:
            return error

    async def _request(self, call: Call[Any]) -> httpx.Response:
        url = self._connection.path + call.path
        return await self._http.request(call.method, url, params=call.params, json=call.json)


class _Waiting:
    """The pauses between requests for the result of a job."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._deadline, self._pause = seconds, time.monotonic() + seconds, FIRST_PAUSE

    def next_pause(self) -> float:
        """Return the seconds to wait; CollectionError after the deadline."""
        if time.monotonic() >= self._deadline:
            raise CollectionError(
                f"the job is still running after {self._seconds:g} seconds: try again later"
            )
        pause, self._pause = self._pause, min(1.5 * self._pause, MAX_PAUSE)
        return pause


@contextmanager
def _checked_url(server: str) -> Iterator[None]:
    try:
        yield
    except (httpx.InvalidURL, UnicodeError) as error:
        raise InputError(f"{server!r} is not a valid URL of a server: {error}") from error


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Raise errors of the transport as errors of the library."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise InputError("the text contains an unpaired surrogate: send complete characters") from error
    except httpx.TimeoutException as error:
        raise CollectionError("the server did not respond in time: try again later") from error
    except httpx.TransportError as error:
        raise CollectionError(f'cannot reach the server: start it with "snuh serve" ({error})') from error


def _parse_json(outcome: httpx.Response | httpx.TransportError) -> dict[str, Any]:
    if isinstance(outcome, httpx.TransportError):
        raise outcome
    if not outcome.is_success:
        raise _to_error(outcome)
    content: dict[str, Any] = outcome.json()
    return content


def _to_error(response: httpx.Response) -> Exception:
    """Return the error that a local collection would have raised."""
    try:
        content = response.json()
        message = str(content["error"])
    except (ValueError, KeyError, TypeError):
        return CollectionError(f"the server responded with status {response.status_code} and no reason")
    if content.get("resource") == "document":
        return UnknownDocumentError(message)
    is_client_error = response.status_code < 500 and response.status_code not in (408, 429)
    return InputError(message) if is_client_error else CollectionError(message)
