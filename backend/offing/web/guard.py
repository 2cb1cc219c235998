"""Whether a host may be connected to, and at which addresses: the decision that keeps fetching off private networks.

The only home of it. A name is looked up once, by us; every answer must be public, and a connection goes to one of the
addresses that were judged, so a name that changes its mind in between gains nothing. What the operator allows by name
is exempt. Knows no HTTP.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from offing.web.address import Address, is_public
from offing.web.url import PORTS, Refused

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Addresses of a name, for a port. Empty: there are none. Raises OSError where the look-up itself fails."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What may be reached from here."""

    resolve: Resolve
    hosts: frozenset[str] = frozenset()
    """`host:port` of places that the operator allows although they are not public, or on other ports."""
    ports: frozenset[int] = frozenset(PORTS.values())
    """Of public hosts."""

    async def addresses(self, host: str, port: int) -> Sequence[str] | Refused:
        """Where to connect, in the order in which to try. `host`: a name, or an address without brackets."""
        exempt = f"{host}:{port}" in self.hosts
        if not exempt and port not in self.ports:
            return Refused(f"Port {port} may not be asked; {_listed(self.ports)} may.")
        found = [host] if _read(host) is not None else await self._looked_up(host, port)
        if isinstance(found, Refused):
            return found
        judged = [_read(text) for text in found]
        if not judged or None in judged:
            return Refused(f"The name {host} has no address.")
        if not exempt and not all(address is not None and is_public(address) for address in judged):
            return Refused(f"{host} is not on the public internet, and only public pages may be fetched.")
        return found

    async def _looked_up(self, host: str, port: int) -> list[str] | Refused:
        try:
            return list(await self.resolve(host, port))
        except OSError:
            return Refused(f"The name {host} cannot be looked up.")


async def resolve(host: str, port: int) -> Sequence[str]:
    """By the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


def _read(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _listed(ports: frozenset[int]) -> str:
    return " and ".join(str(port) for port in sorted(ports))
