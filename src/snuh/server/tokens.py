"""Who may read and who may write: tokens that a request brings along."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from snuh.errors import InputError

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
