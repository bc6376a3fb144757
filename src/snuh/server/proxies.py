"""Servers in front of this one, whose word on where a request comes from is believed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from snuh.errors import InputError


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
