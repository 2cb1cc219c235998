"""The network backend that connects where a guard says, and nowhere else.

The only home of how a guard is put into a connection pool: no path through a client goes around it. Knows no HTTP.
"""

from collections.abc import Iterable
from typing import Any, cast

import httpcore

from offing.web.guard import Guard
from offing.web.url import Refused


class Barred(Exception):
    """The guard's refusal, carried through the connection pool."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.problem)
        self.refused = refused


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to an address that the guard has judged. Raises `Barred` where it refuses."""

    def __init__(self, guard: Guard) -> None:
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
        found = await self._guard.addresses(host, port)
        if isinstance(found, Refused):
            raise Barred(found)
        for place in found[:-1]:
            try:
                return await self._network.connect_tcp(place, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._network.connect_tcp(found[-1], port, timeout, local_address, socket_options)
