"""Decide whether a host may be connected to and at which addresses, to keep fetching off private networks.

A name is looked up once. Every address in the answer must be public, and the connection goes to one of
these addresses, so a name whose addresses change in between (DNS rebinding) has no effect. Hosts that the
operator allows by name are exempt.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address

from offing.web.address import Address, is_public
from offing.web.url import DEFAULT_PORTS, InvalidUrl

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a name for a port. Empty if there are none. Raises OSError if the lookup fails."""


@dataclass(frozen=True, slots=True)
class AddressGuard:
    """The addresses that may be reached from this process."""

    resolve: Resolver
    allowed_hosts: frozenset[str] = frozenset()
    """`host:port` entries that the operator allows although they are not public or on other ports."""
    allowed_ports: frozenset[int] = frozenset(DEFAULT_PORTS.values())
    """Allowed ports of public hosts."""

    async def resolve_allowed(self, host: str, port: int) -> Sequence[str] | InvalidUrl:
        """Return the addresses to connect to in the order to try. `host` is a name or an address without brackets."""
        exempt = f"{host}:{port}" in self.allowed_hosts
        if not exempt and port not in self.allowed_ports:
            return InvalidUrl(f"Port {port} may not be asked; {_join_ports(self.allowed_ports)} may.")
        hosts = [host] if _parse_address(host) is not None else await self._look_up(host, port)
        if isinstance(hosts, InvalidUrl):
            return hosts
        addresses = [_parse_address(text) for text in hosts]
        if not addresses or None in addresses:
            return InvalidUrl(f"The name {host} has no address.")
        if not exempt and not all(address is not None and is_public(address) for address in addresses):
            return InvalidUrl(f"{host} is not on the public internet, and only public pages may be fetched.")
        return hosts

    async def _look_up(self, host: str, port: int) -> list[str] | InvalidUrl:
        try:
            return list(await self.resolve(host, port))
        except OSError:
            return InvalidUrl(f"The name {host} cannot be looked up.")


def add_ports(guard: AddressGuard, ports: Sequence[int]) -> AddressGuard:
    """Return a guard that also allows these ports of public hosts."""
    return replace(guard, allowed_ports=guard.allowed_ports | set(ports)) if ports else guard


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Look up a host with the system's resolver."""
    records = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in records))


def _parse_address(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _join_ports(ports: frozenset[int]) -> str:
    return " and ".join(str(port) for port in sorted(ports))
