"""Who may come in: login links, sessions and API keys.

The only home of their secrets: made here from 256 random bits, shown once, and kept only as SHA-256 (fast is right for
secrets of full entropy).
"""

import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from offing.core.errors import InvalidInput, Unauthorised
from offing.storage import access
from offing.storage.access import KeyRow
from offing.storage.pool import Database

LINK_VALID = timedelta(minutes=15)

SESSION_VALID = timedelta(days=30)

REMEMBERED_SECONDS = 5.0
"""How long a key or session is believed without asking again: a revocation takes effect within this time."""

MOST_REMEMBERED = 4096

Held = TypeVar("Held")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key at the only moment at which its secret can be seen."""

    id: str
    key: str
    """`ofg_<id>_<secret>`, as it is sent in the Authorization header."""


@dataclass(frozen=True, slots=True)
class Session:
    tenant: UUID
    csrf_token: str


@dataclass(frozen=True, slots=True)
class NewSession:
    tenant: UUID
    token: str
    """The cookie's value."""
    csrf_token: str
    valid: timedelta


def sha256(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


async def create_login_link(database: Database, tenant: UUID, base_url: str, *, valid: timedelta = LINK_VALID) -> str:
    """An address that logs a browser in, once, while `valid` lasts. `base_url` is the page's, such as http://localhost:8400."""
    token = secrets.token_urlsafe(32)
    async with database.transaction(tenant) as connection:
        await access.add_login(connection, tenant, sha256(token), valid)
    return f"{base_url.rstrip('/')}/login?{urlencode({'token': token})}"


async def redeem(database: Database, token: str) -> NewSession:
    """A session for a login link's token, which is used up by this. Raises Unauthorised."""
    tenant = await access.redeem_login(database, sha256(token))
    if tenant is None:
        raise Unauthorised("This login link was used before, has expired, or never was one.")
    session = NewSession(tenant, secrets.token_urlsafe(32), secrets.token_urlsafe(32), SESSION_VALID)
    async with database.transaction(tenant) as connection:
        await access.add_session(connection, tenant, sha256(session.token), session.csrf_token, session.valid)
    return session


async def create_key(database: Database, tenant: UUID, name: str, *, valid: timedelta | None = None) -> NewKey:
    """A new API key. `valid` None: until it is revoked."""
    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise InvalidInput("name", "a key needs a name of 1 to 100 printable characters", "Name what will use it.")
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    async with database.transaction(tenant) as connection:
        await access.add_key(connection, tenant, key_id, name.strip(), sha256(secret), valid)
    return NewKey(key_id, f"ofg_{key_id}_{secret}")


async def list_keys(database: Database, tenant: UUID) -> list[KeyRow]:
    """The tenant's keys, revoked ones included, oldest first."""
    async with database.transaction(tenant) as connection:
        return await access.keys(connection)


async def revoke_key(database: Database, tenant: UUID, key_id: str) -> None:
    """End a key for good; revoking it again changes nothing. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        await access.revoke_key(connection, key_id)


class Recent(Generic[Held]):
    """What was true a moment ago. Refusals are not remembered."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._known: dict[bytes, tuple[float, Held]] = {}

    async def get(self, key: bytes, ask: Callable[[], Awaitable[Held | None]]) -> Held | None:
        now = self._clock()
        known = self._known.get(key)
        if known is not None and now < known[0]:
            return known[1]
        value = await ask()
        self.forget(key)
        if value is not None:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[key] = (now + self._seconds, value)
        return value

    def forget(self, key: bytes) -> None:
        self._known.pop(key, None)


class Doorkeeper:
    """Tells whose key or session a request carries, asking Postgres at most each `REMEMBERED_SECONDS` for each."""

    def __init__(
        self, database: Database, *, seconds: float = REMEMBERED_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._keys: Recent[UUID] = Recent(seconds, clock)
        self._sessions: Recent[Session] = Recent(seconds, clock)

    async def holder_of_key(self, presented: str) -> tuple[UUID, str]:
        """Tenant and key id. Raises Unauthorised."""
        prefix, _, rest = presented.partition("_")
        key_id, _, secret = rest.partition("_")
        tenant = None
        if prefix == "ofg" and secret and key_id.isalnum() and presented.isascii():
            digest = sha256(secret)
            tenant = await self._keys.get(
                key_id.encode() + digest, lambda: access.tenant_of_key(self._database, key_id, digest)
            )
        if tenant is None:
            raise Unauthorised("This API key is unknown, revoked or expired.")
        return tenant, key_id

    async def holder_of_session(self, token: str) -> Session:
        """Raises Unauthorised when it has ended or expired."""
        digest = sha256(token)

        async def ask() -> Session | None:
            found = await access.session_of(self._database, digest)
            return Session(*found) if found else None

        session = await self._sessions.get(digest, ask)
        if session is None:
            raise Unauthorised("This session has ended or expired.")
        return session

    async def end_session(self, tenant: UUID, token: str) -> None:
        """Log out."""
        digest = sha256(token)
        self._sessions.forget(digest)
        async with self._database.transaction(tenant) as connection:
            await access.end_session(connection, digest)
