"""Requests to a server; whatever goes wrong is raised as a collection in a folder would."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx

from snuh.errors import CollectionError, InputError, UnknownDocumentError
from snuh.search import UnknownWordsError

FIRST_WAIT, LONGEST_WAIT = 0.05, 1.0  # seconds, between two looks at what is being made
NOT_YET = (httpx.codes.ACCEPTED, httpx.codes.TOO_MANY_REQUESTS)  # the latter also while other things are made


class Connection:
    """Asks for one collection of a server."""

    def __init__(self, name: str, *, server: str, token: str | None, timeout: float) -> None:
        self._path = f"/v1/collections/{quote(name, safe='')}"
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        try:
            self._http = httpx.Client(base_url=server, headers=headers, timeout=timeout)
        except (httpx.InvalidURL, UnicodeError) as error:
            raise InputError(f"{server!r} is no address of a server: {error}") from error

    def close(self) -> None:
        """End the connection."""
        self._http.close()

    def ask(self, method: str, path: str, **how: Any) -> dict[str, Any]:  # Any: what httpx takes
        """Return the answer to a request."""
        return _answer(self._request(method, path, **how))

    def ask_until_made(self, method: str, path: str, *, patience: float, **how: Any) -> dict[str, Any]:
        """Ask until what the server makes is ready; CollectionError where that takes more than `patience`."""
        end, wait = time.monotonic() + patience, FIRST_WAIT
        while (response := self._request(method, path, **how)).status_code in NOT_YET:
            if time.monotonic() >= end:
                raise CollectionError(
                    f"it is still being made after {patience:g} seconds: wait longer, or ask again later"
                )
            time.sleep(wait)
            wait = min(1.5 * wait, LONGEST_WAIT)
        return _answer(response)

    @contextmanager
    def stream(self, path: str, **how: Any) -> Iterator[Iterator[bytes]]:
        """Give an answer as it comes."""
        with _reported(), self._http.stream("GET", self._path + path, **how) as response:
            if not response.is_success:
                response.read()
                raise _error(response)
            yield response.iter_bytes()

    def _request(self, method: str, path: str, **how: Any) -> httpx.Response:
        with _reported():
            return self._http.request(method, self._path + path, **how)


class _reported:
    """Says in one line what went wrong on the way."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UnicodeEncodeError):
            raise InputError("half of a surrogate pair is no text: send whole characters") from error
        if isinstance(error, httpx.TimeoutException):
            raise CollectionError("the server did not answer in time: try again later") from error
        if isinstance(error, httpx.TransportError):
            raise CollectionError(
                f'the server cannot be reached: start it with "snuh serve" ({error})'
            ) from error


def _answer(response: httpx.Response) -> dict[str, Any]:
    if not response.is_success:
        raise _error(response)
    answer: dict[str, Any] = response.json()
    return answer


def _error(response: httpx.Response) -> Exception:
    """Return the error that a collection in a folder would have raised."""
    try:
        told = response.json()
        sentence, kind = str(told["error"]), str(told["kind"])
    except (ValueError, KeyError, TypeError):
        return CollectionError(f"the server answered with the status {response.status_code} and no reason")
    if kind == "unknown-words":
        return UnknownWordsError(sentence)
    if told.get("what") == "document":
        return UnknownDocumentError(sentence)
    is_mine = response.status_code < 500 and response.status_code not in (408, 429)
    return InputError(sentence) if is_mine else CollectionError(sentence)
