"""Login links, sessions and API keys.

The secrets are created here from 256 random bits, shown once, and stored only as SHA-256. A fast hash is
sufficient for secrets of full entropy.
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

from offing.core.errors import Conflict, InvalidInput, Unauthorized
from offing.storage import access
from offing.storage.access import ApiKeyRow
from offing.storage.pool import Database

LOGIN_LINK_TTL = timedelta(minutes=15)

SESSION_TTL = timedelta(days=30)

OPERATOR_TTL = timedelta(hours=12)
"""Time after the login for which a session from an operator's link may change the installation."""

KEY_PREFIX = "ofg_"
"""How every API key begins."""

MAX_VALID_KEYS = 200
"""Maximum number of valid API keys of a tenant."""

CACHE_SECONDS = 5.0
"""Seconds for which a valid key or session is cached. A revocation takes effect within this time."""

MAX_CACHED_CREDENTIALS = 4096

CachedValue = TypeVar("CachedValue")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new API key. Its secret is available only here."""

    id: str
    key: str
    """`ofg_<id>_<secret>`, as sent in the Authorization header."""


@dataclass(frozen=True, slots=True)
class Session:
    tenant_id: UUID
    csrf_token: str
    is_operator: bool
    """Whether it may change the installation."""


@dataclass(frozen=True, slots=True)
class NewSession:
    tenant_id: UUID
    token: str
    """The value of the cookie."""
    csrf_token: str
    ttl: timedelta


def hash_secret(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


async def create_login_link(
    database: Database, tenant_id: UUID, base_url: str, *, ttl: timedelta = LOGIN_LINK_TTL, is_operator: bool = False
) -> str:
    """Return a URL that logs a browser in once, until `ttl` has passed.

    `base_url` is that of the web UI, such as http://localhost:8400. The session of an operator's link may change the
    installation for `OPERATOR_TTL`. Only a command on the machine creates one.
    """
    token = secrets.token_urlsafe(32)
    async with database.transaction(tenant_id) as connection:
        await access.insert_login_link(connection, tenant_id, hash_secret(token), ttl, is_operator=is_operator)
    return f"{base_url.rstrip('/')}/login?{urlencode({'token': token})}"


async def redeem_login_link(database: Database, token: str) -> NewSession:
    """Create a session for the token of a login link, which can be used only once. Raises Unauthorized."""
    tenant = await access.redeem_login_link(database, hash_secret(token))
    if tenant is None:
        raise Unauthorized("The login link is invalid, has expired or has already been used.")
    session = NewSession(tenant, secrets.token_urlsafe(32), secrets.token_urlsafe(32), SESSION_TTL)
    async with database.transaction(tenant) as connection:
        await access.insert_session(
            connection,
            tenant,
            hash_secret(session.token),
            session.csrf_token,
            session.ttl,
            link_sha256=hash_secret(token),
            operator_lifetime=OPERATOR_TTL,
        )
    return session


async def create_key(database: Database, tenant_id: UUID, name: str, *, ttl: timedelta | None = None) -> NewKey:
    """Create an API key. If `ttl` is `None`, it is valid until it is revoked. Raises InvalidInput and Conflict."""
    if not name.strip() or len(name) > 100 or not name.isprintable():
        raise InvalidInput(
            "name",
            "the name of an API key must have 1 to 100 printable characters",
            "Enter a name that says where the key is used.",
        )
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    async with database.transaction(tenant_id) as connection:
        if await access.count_valid_keys(connection) >= MAX_VALID_KEYS:
            raise Conflict(f"There are {MAX_VALID_KEYS} valid API keys.", "Revoke a key that is not used.")
        await access.insert_key(connection, tenant_id, key_id, name.strip(), hash_secret(secret), ttl)
    return NewKey(key_id, f"{KEY_PREFIX}{key_id}_{secret}")


async def list_keys(database: Database, tenant_id: UUID) -> list[ApiKeyRow]:
    """List at most 1,000 keys of the tenant, including revoked ones, oldest first."""
    async with database.transaction(tenant_id) as connection:
        return await access.list_keys(connection)


async def revoke_key(database: Database, tenant_id: UUID, key_id: str) -> None:
    """Revoke a key permanently. Revoking it again changes nothing. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await access.revoke_key(connection, key_id)


class ExpiringCache(Generic[CachedValue]):
    """A cache whose entries expire. Failed lookups are not cached."""

    def __init__(self, ttl_seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = ttl_seconds, clock
        self._entries: dict[bytes, tuple[float, CachedValue]] = {}

    async def get(self, key: bytes, load: Callable[[], Awaitable[CachedValue | None]]) -> CachedValue | None:
        now = self._clock()
        entry = self._entries.get(key)
        if entry is not None and now < entry[0]:
            return entry[1]
        value = await load()
        self.remove(key)
        if value is not None:
            if len(self._entries) >= MAX_CACHED_CREDENTIALS:
                self._entries.clear()
            self._entries[key] = (now + self._seconds, value)
        return value

    def remove(self, key: bytes) -> None:
        self._entries.pop(key, None)


class CachedAuthenticator:
    """Resolves API keys and sessions. It asks Postgres for each at most once per `CACHE_SECONDS`."""

    def __init__(
        self, database: Database, *, ttl_seconds: float = CACHE_SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._keys: ExpiringCache[UUID] = ExpiringCache(ttl_seconds, clock)
        self._sessions: ExpiringCache[Session] = ExpiringCache(ttl_seconds, clock)

    async def authenticate_key(self, presented: str) -> tuple[UUID, str]:
        """Return the tenant and the id of a key. Raises Unauthorized."""
        prefix, _, rest = presented.partition("_")
        key_id, _, secret = rest.partition("_")
        tenant = None
        if prefix == "ofg" and secret and key_id.isalnum() and presented.isascii():
            digest = hash_secret(secret)
            tenant = await self._keys.get(
                key_id.encode() + digest, lambda: access.find_tenant_of_key(self._database, key_id, digest)
            )
        if tenant is None:
            raise Unauthorized("This API key is unknown, revoked or expired.")
        return tenant, key_id

    async def authenticate_session(self, token: str) -> Session:
        """Return the session of a token. Raises Unauthorized if it has ended or expired."""
        digest = hash_secret(token)

        async def ask() -> Session | None:
            session = await access.find_session(self._database, digest)
            return Session(*session) if session else None

        session = await self._sessions.get(digest, ask)
        if session is None:
            raise Unauthorized("This session has ended or expired.")
        return session

    async def end_session(self, tenant_id: UUID, token: str) -> None:
        """End the session of a token."""
        digest = hash_secret(token)
        self._sessions.remove(digest)
        async with self._database.transaction(tenant_id) as connection:
            await access.delete_session(connection, digest)
