"""The network backend that connects only to addresses that a guard allows.

It is installed in the connection pool, so no path through a client bypasses the guard.
"""

from collections.abc import Iterable
from typing import Any, cast

import httpcore

from offing.web.guard import AddressGuard
from offing.web.url import InvalidUrl


class AddressBlockedError(Exception):
    """A rejection of the guard, passed through the connection pool."""

    def __init__(self, invalid_url: InvalidUrl) -> None:
        super().__init__(invalid_url.problem)
        self.invalid_url = invalid_url


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to addresses that the guard has checked. Raises `AddressBlockedError` if the guard rejects one."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._network = cast(httpcore.AsyncNetworkBackend, httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the interface's own
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self._guard.resolve_allowed(host, port)
        if isinstance(addresses, InvalidUrl):
            raise AddressBlockedError(addresses)
        for address in addresses[:-1]:
            try:
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._network.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)
