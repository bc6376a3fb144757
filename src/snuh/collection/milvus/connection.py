"""A connection to Milvus, which waits no longer than told, tries again what can be, and says what went wrong.

The connections of one process to one server are shared by pymilvus, and so are those of many threads.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc  # type: ignore[import-untyped]
from pymilvus import DataType, MilvusClient, MilvusException  # type: ignore[import-untyped]

from snuh.collection.backend import LostConnectionError
from snuh.collection.milvus.site import Site
from snuh.errors import CollectionError

# It logs every error with its traceback, and to a handler of its own; all of them are raised as well.
logging.getLogger("pymilvus").setLevel(logging.CRITICAL)

CONNECT_SECONDS, REQUEST_SECONDS = 10.0, 30.0
PATIENCE_SECONDS = 90.0  # Milvus takes more than 30 to find itself again after it was killed
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.02, 0.3
OLDEST_VERSION = (2, 3)
MAX_CAUSES, MAX_SAID = 4, 300

NOT_FOUND = 100  # Milvus's number for a collection that is not there
NOT_READY = re.compile(  # what a server says that has just started, or moves data between its nodes
    r"not loaded|not fully loaded|not ready|not available|not healthy|not serving|unavailable|no available|"
    r"node offline|node not found|channel not found|segment lacks|not in.*target|standby|"
    r"node.{0,20}not match|loaded into memory|connection (refused|reset)|initializing|abnormal|"
    r"distribution is not|find leader|leader.* not",
    re.IGNORECASE,
)
REFUSED = re.compile(r"auth check fail|unauthenticated|invalid (token|password)|api ?key", re.IGNORECASE)
FORBIDDEN = re.compile(r"permission deny|permissiondenied|permission_denied|privilege", re.IGNORECASE)

Result = TypeVar("Result")


class GoneError(LostConnectionError):
    """A part of the collection that is no longer there under its name, because of a rehash perhaps."""


class Connection:
    """Asks a server about one collection; every error is a CollectionError that starts with its name."""

    def __init__(self, site: Site) -> None:
        self.site, self._is_closed = site, False
        with self.reported():
            self._client = MilvusClient(
                uri=site.uri, token=site.token, db_name=site.database, timeout=CONNECT_SECONDS
            )
            version = self._client.get_server_version(timeout=CONNECT_SECONDS)
        check_version(version, name=site.shown)

    def close(self) -> None:
        """End the connection."""
        self._is_closed = True
        self._client.close()

    # Errors

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Say what went wrong in one line."""
        if self._is_closed:
            raise CollectionError(f"{self.site.shown}: it was closed here: open it again")
        try:
            yield
        except (MilvusException, grpc.RpcError, grpc.FutureTimeoutError) as error:
            raise self._said(error) from error
        except ValueError as error:  # of gRPC, for a channel that was closed
            if "closed" not in str(error):
                raise
            raise CollectionError(f"{self.site.shown}: it was closed here: open it again") from error

    def _said(self, error: Exception) -> CollectionError:
        name, text = self.site.shown, _text(error)
        if getattr(error, "code", None) == NOT_FOUND or "can't find collection" in text:
            return GoneError(f"{name}: a part of it is not there any more ({text})")
        if REFUSED.search(text):
            return CollectionError(f"{name}: the user or the password is wrong")
        if FORBIDDEN.search(text):
            return CollectionError(
                f"{name}: permission denied: ask for the rights named in docs/milvus.md ({text})"
            )
        if "database not found" in text:
            return CollectionError(f"{name}: there is no database {self.site.database!r}")
        if "RPC timed out" in text or "DEADLINE_EXCEEDED" in text:
            return CollectionError(f"{name}: Milvus did not answer in time: try again")
        if "UNAVAILABLE" in text or "Fail connecting" in text or isinstance(error, grpc.FutureTimeoutError):
            return CollectionError(
                f"{name}: no Milvus can be reached there: check the address, and that it runs"
            )
        return CollectionError(f"{name}: Milvus could not do it: {text}")

    def patiently(self, ask: Callable[[], Result]) -> Result:
        """Ask again for as long as the server is getting ready; whatever is asked may happen twice."""
        end, pause = time.monotonic() + PATIENCE_SECONDS, FIRST_PAUSE_SECONDS
        while True:
            with self.reported():
                try:
                    return ask()
                except (MilvusException, grpc.RpcError) as error:
                    if time.monotonic() + pause > end or not _is_passing(error):
                        raise
            time.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)

    # Collections

    def describe(self, name: str) -> dict[str, Any]:
        """Describe a collection of Milvus by its name or alias; GoneError where there is none."""
        described: dict[str, Any] = self.patiently(
            lambda: self._client.describe_collection(name, timeout=REQUEST_SECONDS)
        )
        return described

    def names(self) -> list[str]:
        """Return the names of all collections of the database."""
        return list(self.patiently(lambda: self._client.list_collections(timeout=REQUEST_SECONDS)))

    def create(self, name: str, fields: Sequence[Mapping[str, Any]], *, description: str) -> None:
        """Make a collection of one shard; fields as `add_field` takes them."""
        schema = self._client.create_schema(
            auto_id=False, enable_dynamic_field=False, description=description
        )
        for field in fields:
            schema.add_field(**{**field, "datatype": DataType[field["datatype"]]})
        self.patiently(
            lambda: self._client.create_collection(
                name, schema=schema, num_shards=1, consistency_level="Strong", timeout=REQUEST_SECONDS
            )
        )

    def index(self, name: str, field: str, params: Mapping[str, Any]) -> None:
        """Let Milvus index a field; it does so on its own, when and where there is enough to index."""
        connection = self._client._get_connection()  # the client's own way waits for a second
        self.patiently(
            lambda: connection.create_index(
                name, field, dict(params), index_name=field, timeout=REQUEST_SECONDS, sync=False
            )
        )

    def load(self, name: str) -> None:
        """Let a collection answer; the first questions wait until it does."""
        self.patiently(lambda: self._client.load_collection(name, timeout=REQUEST_SECONDS, _async=True))

    def drop(self, name: str) -> None:
        """Remove a collection; nothing where there is none."""
        self.patiently(lambda: self._client.drop_collection(name, timeout=REQUEST_SECONDS))

    def rename(self, old: str, new: str, *, seconds: float = REQUEST_SECONDS) -> None:
        """Rename a collection; GoneError where none has the old name. Of two that try, one does."""
        with self.reported():
            self._client.rename_collection(old, new, timeout=seconds)

    def create_alias(self, name: str, alias: str) -> None:
        """Give a collection another name; an error where that name is taken."""
        with self.reported():
            self._client.create_alias(name, alias, timeout=REQUEST_SECONDS)

    def alter_alias(self, name: str, alias: str) -> None:
        """Let an alias stand for another collection."""
        self.patiently(lambda: self._client.alter_alias(name, alias, timeout=REQUEST_SECONDS))

    def drop_alias(self, alias: str) -> None:
        """Remove an alias."""
        self.patiently(lambda: self._client.drop_alias(alias, timeout=REQUEST_SECONDS))

    def flush(self, name: str) -> None:
        """Let Milvus close the parts that are still growing, so that they are indexed."""
        self.patiently(lambda: self._client.flush(name, timeout=REQUEST_SECONDS))

    def is_indexed(self, name: str, field: str) -> bool:
        """Tell whether all flushed rows of a field are indexed, and searches use that index."""
        told = self.patiently(lambda: self._client.describe_index(name, field, timeout=REQUEST_SECONDS))
        if told["pending_index_rows"]:
            return False
        connection = self._client._get_connection()  # the client leaves out what it does not know
        loaded = self.patiently(lambda: connection.get_query_segment_info(name, timeout=REQUEST_SECONDS))
        return sum(int(segment.num_rows) for segment in loaded) >= int(told["total_rows"])

    # Rows

    def now(self) -> int:
        """Return the server's time: who reads as of it sees whatever was written before."""
        connection = self._client._get_connection()  # the client has no name for it
        return int(self.patiently(lambda: connection.alloc_timestamp(timeout=REQUEST_SECONDS)))

    def upsert(self, name: str, columns: Mapping[str, Sequence[Any]], types: Mapping[str, str]) -> None:
        """Write rows, each in the place of one of the same key; columns are packed sooner than rows."""
        entities = [
            {"name": key, "type": DataType[types[key]], "values": values} for key, values in columns.items()
        ]
        connection = self._client._get_connection()
        self.patiently(lambda: connection.upsert(name, entities, timeout=REQUEST_SECONDS))

    def delete(self, name: str, keys: Sequence[str]) -> None:
        """Delete rows by their keys."""
        self.patiently(lambda: self._client.delete(name, ids=list(keys), timeout=REQUEST_SECONDS))

    def query(
        self, name: str, condition: str, fields: Sequence[str], *, as_of: int, limit: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the rows that meet a condition, in no order."""
        found = self.patiently(
            lambda: self._client.query(
                name,
                filter=condition,
                output_fields=list(fields),
                limit=limit,
                timeout=REQUEST_SECONDS,
                consistency_level="Customized",
                guarantee_timestamp=as_of,
            )
        )
        return list(found)

    def search(
        self,
        name: str,
        queries: Sequence[bytes],
        *,
        field: str,
        condition: str,
        fields: Sequence[str],
        limit: int,
        probes: int,
        as_of: int,
    ) -> list[list[dict[str, Any]]]:
        """Return for each query the rows with the nearest codes."""
        found = self.patiently(
            lambda: self._client.search(
                name,
                data=list(queries),
                anns_field=field,
                filter=condition,
                output_fields=list(fields),
                limit=limit,
                search_params={"metric_type": "HAMMING", "params": {"nprobe": probes}},
                timeout=REQUEST_SECONDS,
                consistency_level="Customized",
                guarantee_timestamp=as_of,
            )
        )
        return [list(hits) for hits in found]


def check_version(version: str, *, name: str) -> None:
    """Raise CollectionError for a server that is too old."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST_VERSION:
        wanted = ".".join(map(str, OLDEST_VERSION))
        raise CollectionError(f"{name}: expected Milvus {wanted} or newer, got {version}: update the server")


def _text(error: Exception) -> str:
    """Return what the server said, in one line of a bounded length."""
    parts: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(parts) < MAX_CAUSES:  # a failed connection has its reason in its cause
        if isinstance(cause, grpc.RpcError):
            parts.append(f"{cause.code()} {cause.details()}")
        else:
            parts.append(str(getattr(cause, "message", cause)))
        cause = cause.__cause__
    line = " ".join(" ".join(dict.fromkeys(parts)).split())
    return line if len(line) <= MAX_SAID else f"{line[:MAX_SAID]}..."


def _is_passing(error: Exception) -> bool:
    if isinstance(error, MilvusException) and error.code == NOT_FOUND:
        return False
    text = _text(error)
    return NOT_READY.search(text) is not None and "Retry timeout" not in text
