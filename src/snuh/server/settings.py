"""What a server is told when it starts, in a form that its worker processes can be given."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from snuh.collection import short_name
from snuh.errors import InputError
from snuh.urls import is_remote, redact

# Who may read and who may write: tokens that a request brings along.

Right = Literal["read", "write"]
SHORTEST = 16
VARIABLES: dict[Right, str] = {"read": "SNUH_READ_TOKEN", "write": "SNUH_WRITE_TOKEN"}


@dataclass(frozen=True, slots=True)
class Tokens:
    """The SHA-256 of each token; the tokens themselves are forgotten."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.read or self.write)

    @classmethod
    def of(cls, *, read: list[str], write: list[str]) -> Self:
        """Check and take tokens."""
        for token in (*read, *write):
            if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
                raise InputError(
                    f"a token must have at least {SHORTEST} letters, digits or signs, and no spaces: "
                    'make one with "openssl rand -hex 16"'
                )
        return cls(tuple(map(_digest, read)), tuple(map(_digest, write)))

    def right_of(self, token: str) -> Right | None:
        """Return what a token allows; every known token is compared, each in the same time."""
        given = _digest(token)
        may_write = [hmac.compare_digest(given, known) for known in self.write]
        may_read = [hmac.compare_digest(given, known) for known in self.read]
        return "write" if any(may_write) else "read" if any(may_read) else None


def find_tokens(file: Path | None, environment: Mapping[str, str]) -> Tokens:
    """Read the tokens of a file, lines such as "read TOKEN" and "write TOKEN", and of the environment."""
    found: dict[Right, list[str]] = {"read": [], "write": []}
    for right, variable in VARIABLES.items():
        if environment.get(variable):
            found[right].append(environment[variable])
    for number, line in enumerate(_lines(file), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or words[0] not in ("read", "write"):
            raise InputError(f'{file} line {number}: expected "read TOKEN" or "write TOKEN"')
        found["write" if words[0] == "write" else "read"].append(words[1])
    return Tokens.of(read=found["read"], write=found["write"])


def _lines(file: Path | None) -> list[str]:
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
    """What one request may ask for, and how long it may take to do so."""

    body_bytes: int = 8 << 20  # of a JSON body, and of a line of an upload
    rate: float = 0.0  # requests a second from one address; 0: any number
    seconds: float = 30.0  # for the head or the body of a request to come, and for an answer to be taken
    connections: int = 1_000
    waiting: int = 1_000  # requests that wait for one collection
    answer_bytes: int = 64 << 20  # of an answer, downloads aside
    job_seconds: int = 3_600  # to make a map, duplicates or lists


@dataclass(frozen=True, slots=True)
class Settings:
    """A whole server."""

    folders: dict[str, str] = field(repr=False)  # or addresses, with passwords, of the collections, by name
    scratch: str  # a folder for what only this run of the server needs
    host: str = "127.0.0.1"
    port: int = 8765
    workers: int = 1
    is_read_only: bool = False
    origins: tuple[str, ...] = ()  # of pages of other sites that may use the API
    proxies: tuple[str, ...] = ()  # addresses of servers in front
    tokens: Tokens = field(default_factory=Tokens)
    limits: Limits = field(default_factory=Limits)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    def to_text(self) -> str:
        """Return the settings as text, for a process of its own; it holds no token, only their digests."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the settings that `to_text` wrote."""
        values: dict[str, Any] = json.loads(text)
        values |= {name: tuple(values[name]) for name in ("origins", "proxies")}
        tokens = {kind: tuple(digests) for kind, digests in values["tokens"].items()}
        return cls(**values | {"tokens": Tokens(**tokens), "limits": Limits(**values["limits"])})


def is_loopback(host: str) -> bool:
    """Tell whether an address to listen at can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def named_folders(folders: list[str]) -> dict[str, str]:
    """Name collections by their folders or addresses; InputError where two would have one name."""
    named: dict[str, str] = {}
    for folder in folders:
        name = short_name(folder)
        if name in named:
            raise InputError(
                f"{redact(folder)} and {redact(named[name])} are both named {name!r}: rename one of them"
            )
        named[name] = folder if is_remote(folder) else str(Path(folder).resolve())
    return named
