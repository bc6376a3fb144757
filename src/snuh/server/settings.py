"""Settings of a server, serializable so that they can be passed to worker processes."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from snuh.collection import short_name
from snuh.errors import InputError
from snuh.io import is_remote, redact

Right = Literal["read", "write"]
MIN_TOKEN_CHARACTERS = 16
VARIABLES: dict[Right, str] = {"read": "SNUH_READ_TOKEN", "write": "SNUH_WRITE_TOKEN"}


@dataclass(frozen=True, slots=True)
class Tokens:
    """Access tokens, stored as SHA-256 digests only."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.read or self.write)

    @classmethod
    def of(cls, *, read: list[str], write: list[str]) -> Self:
        """Check tokens and store their digests."""
        for token in (*read, *write):
            is_short = len(token) < MIN_TOKEN_CHARACTERS
            if is_short or not token.isascii() or not token.isprintable() or " " in token:
                raise InputError(
                    f"a token must have at least {MIN_TOKEN_CHARACTERS} ASCII characters and no spaces: "
                    'create one with "openssl rand -hex 16"'
                )
        return cls(tuple(map(_digest, read)), tuple(map(_digest, write)))

    def right_of(self, token: str) -> Right | None:
        """Return the right that a token grants; all digests are compared, each in constant time."""
        digest = _digest(token)
        may_write = [hmac.compare_digest(digest, known) for known in self.write]
        may_read = [hmac.compare_digest(digest, known) for known in self.read]
        return "write" if any(may_write) else "read" if any(may_read) else None


def find_tokens(file: Path | None, environment: Mapping[str, str]) -> Tokens:
    """Read tokens from the environment and from a file with lines "read TOKEN" and "write TOKEN"."""
    tokens: dict[Right, list[str]] = {"read": [], "write": []}
    for right, variable in VARIABLES.items():
        if environment.get(variable):
            tokens[right].append(environment[variable])
    for number, line in enumerate(_read_lines(file), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or words[0] not in ("read", "write"):
            raise InputError(f'{file} line {number}: expected "read TOKEN" or "write TOKEN"')
        tokens["write" if words[0] == "write" else "read"].append(words[1])
    return Tokens.of(read=tokens["read"], write=tokens["write"])


def _read_lines(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"cannot read the tokens in {file}: {reason}") from error


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the size, rate and duration of requests and responses."""

    body_bytes: int = 8 << 20  # of a JSON body, and of a line of an upload
    rate: float = 0.0  # requests per second and client address; 0: unlimited
    timeout_seconds: float = 30.0  # to receive the head or the body of a request, and to send a response
    connections: int = 1_000
    queue_size: int = 1_000  # requests that wait for one collection
    response_bytes: int = 32 << 20  # of a response, except downloads
    job_seconds: int = 3_600  # to compute a map or duplicates, or to build an index


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of a server."""

    folders: dict[str, str] = field(repr=False)  # or URLs, which may contain passwords; by collection name
    scratch: str  # folder for temporary files
    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 1
    is_read_only: bool = False
    log_level: str = "warning"
    has_access_log: bool = False
    origins: tuple[str, ...] = ()  # other sites whose pages may use the API
    proxies: tuple[str, ...] = ()  # addresses or networks of trusted reverse proxies
    embedding: str | None = None  # folder of an embedding model, for collections whose model reads vectors
    tokens: Tokens = field(default_factory=Tokens)
    limits: Limits = field(default_factory=Limits)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    def to_text(self) -> str:
        """Serialize the settings for a worker process; tokens are included as digests only."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the settings that `to_text` serialized."""
        values: dict[str, Any] = json.loads(text)
        values |= {name: tuple(values[name]) for name in ("origins", "proxies")}
        tokens = {kind: tuple(digests) for kind, digests in values["tokens"].items()}
        return cls(**values | {"tokens": Tokens(**tokens), "limits": Limits(**values["limits"])})


def is_loopback(host: str) -> bool:
    """Return whether a listening address is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def named_folders(folders: list[str]) -> dict[str, str]:
    """Map the name of each collection to its folder or URL; InputError if two have the same name."""
    by_name: dict[str, str] = {}
    for folder in folders:
        name = short_name(folder)
        if name in by_name:
            raise InputError(
                f"{redact(folder)} and {redact(by_name[name])} are both named {name!r}: rename one of them"
            )
        by_name[name] = folder if is_remote(folder) else os.path.abspath(folder)
    return by_name
