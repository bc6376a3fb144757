"""What a server is told when it starts, in a form that its worker processes can be given."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from snuh.addresses import is_remote, shown
from snuh.collection import short_name
from snuh.errors import InputError
from snuh.server.tokens import Tokens


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
                f"{shown(folder)} and {shown(named[name])} would both be called {name!r}: rename one of them"
            )
        named[name] = folder if is_remote(folder) else str(Path(folder).resolve())
    return named
