"""The connection to a Milvus server: the url of a collection, retries, and one-line errors."""

from __future__ import annotations

import logging
import os
import re
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import grpc  # type: ignore[import-untyped]
from pymilvus import MilvusClient, MilvusException

from snuh.collection.backend import LostConnectionError
from snuh.errors import CollectionError, InputError
from snuh.io import check_credentials, redact

logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs the traceback of errors that it raises

DEFAULT_PORT, TOKEN_VARIABLE = 19_530, "MILVUS_TOKEN"  # "user:password", or the API key of a hosted Milvus
COLLECTION_NAME = re.compile(r"(?!.*(__|_$))[A-Za-z]\w{0,99}", re.ASCII)
MIN_VERSION = (2, 3)
CONNECT_SECONDS, REQUEST_SECONDS = 10.0, 30.0
RETRY_SECONDS = 90.0  # a killed Milvus takes more than 30 to recover
MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.02, 0.3
MAX_CAUSES, MAX_ERROR_CHARACTERS = 4, 300
ERRORS = (MilvusException, grpc.RpcError, grpc.FutureTimeoutError)
NOT_FOUND = 100  # error code for an unknown collection
NOT_READY = re.compile(  # messages of a server that is starting, or moving data between its nodes
    r"(?!.*Retry timeout).*(not (fully )?loaded|not (ready|available|healthy|serving)|unavailable|"
    r"no available|node offline|node not found|channel not found|segment lacks|not in.*target|standby|"
    r"node.{0,20}not match|loaded into memory|connection (refused|reset)|initializing|abnormal|"
    r"distribution is not|find leader|leader.* not)",
    re.IGNORECASE,
)
MESSAGES = {  # by a pattern of the error; the first that matches
    r"auth check fail|unauthenticated|invalid (token|password)|api ?key": "wrong user or password",
    r"permission deny|permission_?denied|privilege": "permission denied: see docs/milvus.md#rights ({error})",
    r"database not found": "there is no such database on the server",
    r"RPC timed out|DEADLINE_EXCEEDED": "Milvus did not respond in time: try again",
    r"UNAVAILABLE|Fail connecting|FutureTimeout": "cannot connect: is Milvus running, and is the url right?",
    r"": "Milvus reports an error: {error}",
}


@dataclass(frozen=True, slots=True)
class MilvusUrl:
    """The parsed url of a collection."""

    shown: str  # without the password
    uri: str
    token: str = field(repr=False)  # empty where the server has no authentication
    database: str
    name: str


def parse_url(address: str) -> MilvusUrl:
    """Parse `milvus://user:password@host:19530/database/name?tls=true`; InputError where it is malformed."""
    check_credentials(address)
    expected = InputError(
        "expected milvus://USER:PASSWORD@HOST:PORT/DATABASE/NAME, of which HOST and NAME are required, "
        f"optionally with ?tls=true, got {redact(address)}"
    )
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or DEFAULT_PORT
        options = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:  # its message may contain a part of the password
        raise expected from None
    *database, name = parts.path.strip("/").split("/")
    tls = options.pop("tls", ["false"])[-1]
    if not host or len(database) > 1 or parts.fragment or options or tls not in ("true", "false"):
        raise expected
    if not COLLECTION_NAME.fullmatch(name):
        raise InputError(
            "a collection in Milvus has a name of up to 100 letters, digits and single underscores, "
            f"got {name!r}"
        )
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return MilvusUrl(
        shown=redact(address),
        uri=f"{'https' if tls == 'true' else 'http'}://{f'[{host}]' if ':' in host else host}:{port}",
        token=f"{user}:{password}" if user else password or os.environ.get(TOKEN_VARIABLE, ""),
        database="".join(database),
        name=name,
    )


class NotFoundError(LostConnectionError):
    """A Milvus collection that does not exist, or no longer: a rehash may have replaced it."""


class Connection:
    """A client for the server of one collection; threads may share it."""

    def __init__(self, url: MilvusUrl) -> None:
        self.url = url
        self._client: Any = None  # pymilvus has no types
        try:
            self._client = MilvusClient(
                uri=url.uri, token=url.token, db_name=url.database, timeout=CONNECT_SECONDS
            )
        except ERRORS as error:
            raise self._explained(error) from error
        check_version(self.call("get_server_version"), name=url.shown)

    def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def call(self, method: str, *arguments: Any, retry: bool = True, **options: Any) -> Any:
        """Call a method of MilvusClient, or of the gRPC handler below it, again while the server starts.

        With `retry=False` it is sent only once.
        """
        deadline, pause = time.monotonic() + RETRY_SECONDS, MIN_PAUSE_SECONDS
        while (client := self._client) is not None:
            try:
                owner = client if hasattr(client, method) else client._get_connection()
                return getattr(owner, method)(*arguments, timeout=REQUEST_SECONDS, **options)
            except ERRORS as error:
                if not retry or time.monotonic() > deadline or not NOT_READY.match(_one_line(error)):
                    raise self._explained(error) from error
            except ValueError:  # of gRPC, where another thread has closed the connection
                if self._client is not None:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)
        raise CollectionError(f"{self.url.shown}: it was closed here: open it again")

    def timestamp(self) -> int:
        """Return a new timestamp of the server, greater than all before."""
        return int(self.call("alloc_timestamp"))

    def _explained(self, error: Exception) -> CollectionError:
        text = _one_line(error)
        if getattr(error, "code", None) == NOT_FOUND or "can't find collection" in text:
            return NotFoundError(f"{self.url.shown}: a part of it no longer exists")
        message = next(one for pattern, one in MESSAGES.items() if re.search(pattern, text, re.IGNORECASE))
        return CollectionError(f"{self.url.shown}: {message.format(error=text[:MAX_ERROR_CHARACTERS])}")


def check_version(version: str, *, name: str) -> None:
    """Raise CollectionError for a server that is too old."""
    if tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < MIN_VERSION:
        raise CollectionError(f"{name}: expected Milvus 2.3 or newer, got {version}: update the server")


def _one_line(error: BaseException | None) -> str:
    """Return the messages of an error and of its causes, which have the reason of a failed connection."""
    messages: list[str] = []
    for _ in range(MAX_CAUSES):  # pymilvus makes errors that cause each other
        if error is not None:
            messages.append(getattr(error, "message", "") or str(error) or type(error).__name__)
            error = error.__cause__
    return " ".join(" ".join(dict.fromkeys(messages)).split())
