"""Send a JSON body to an address that a tenant has chosen: only to allowed addresses, without redirects, within limits.

It sends no cookie, no credential and no referrer, and uses no proxy from the environment. Of the response, only the
status is read.
"""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpcore

from offing.web.guard import AddressGuard
from offing.web.guarded_network import AddressBlockedError, GuardedNetwork
from offing.web.url import InvalidUrl, parse_url

USER_AGENT = "Offing/0.1 (webhook)"
TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class PostResult:
    """How a request ended."""

    status: int | None
    """`None` means that there was no response."""
    problem: str = ""
    """Why the body was not accepted. Empty means that it was."""


@dataclass(slots=True)
class Poster:
    """Sends bodies. Use it as a context manager: `async with Poster(guard) as poster`."""

    guard: AddressGuard
    timeout_seconds: float = TIMEOUT_SECONDS
    ssl_context: ssl.SSLContext | None = None
    """Certificates. `None` means those of the system."""
    _pool: httpcore.AsyncConnectionPool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        network = GuardedNetwork(self.guard)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=self.ssl_context, max_connections=20, keepalive_expiry=0.0, network_backend=network
        )

    async def __aenter__(self) -> "Poster":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.aclose()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        """Send a body, and return whether the server accepted it, which it says with a status from 200 to 299."""
        try:
            async with asyncio.timeout(self.timeout_seconds):
                return await self._post(url, headers, body)
        except TimeoutError:
            return PostResult(None, f"The server did not answer within {self.timeout_seconds:g} seconds.")
        except AddressBlockedError as blocked:
            return PostResult(None, blocked.invalid_url.problem)
        except (httpcore.TimeoutException, httpcore.NetworkError):
            return PostResult(None, "The server cannot be reached.")
        except httpcore.ProtocolError:
            return PostResult(None, "The server does not speak HTTP as it should.")

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        target = parse_url(url)
        if isinstance(target, InvalidUrl):
            return PostResult(None, target.problem)
        address = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        own = {
            "Host": target.authority,
            "User-Agent": USER_AGENT,
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }
        async with self._pool.stream("POST", address, headers=[*{**own, **headers}.items()], content=body) as answer:
            return _describe(answer.status)


def _describe(status: int) -> PostResult:
    if 200 <= status < 300:
        return PostResult(status)
    if 300 <= status < 400:
        return PostResult(status, f"The server redirects with status {status}, which is not followed.")
    return PostResult(status, f"The server answers with status {status}.")
