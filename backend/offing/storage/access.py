"""Keys, login links and sessions as rows. Secrets come in hashed; nothing here has seen one."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from offing.core.errors import NotFound
from offing.storage.pool import Connection, Database

TENANT_OF_KEY = "select app.tenant_of_key(%s, %s)"

REDEEM = "select app.redeem_login(%s)"

SESSION_OF = "select tenant, csrf_token from app.session_of(%s)"

ADD_LOGIN = """
    insert into login (token_sha256, tenant_id, expires_at) values (%s, %s, clock_timestamp() + %s)
"""

FORGET_LOGINS = "delete from login where expires_at < clock_timestamp() or used_at is not null"

ADD_SESSION = """
    insert into session (token_sha256, tenant_id, csrf_token, expires_at) values (%s, %s, %s, clock_timestamp() + %s)
"""

FORGET_SESSIONS = "delete from session where expires_at < clock_timestamp()"

END_SESSION = "delete from session where token_sha256 = %s"

ADD_KEY = """
    insert into api_key (id, tenant_id, name, secret_sha256, expires_at)
    values (%s, %s, %s, %s, clock_timestamp() + %s)
"""

KEYS = "select id, name, created_at, expires_at, revoked_at, last_used_at from api_key order by created_at, id"

REVOKE = "update api_key set revoked_at = coalesce(revoked_at, clock_timestamp()) where id = %s returning id"


@dataclass(frozen=True, slots=True)
class KeyRow:
    """An API key as its owner sees it. Times are None for: never, not yet."""

    id: str
    name: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


async def tenant_of_key(database: Database, key_id: str, sha256: bytes) -> UUID | None:
    """Whose key this is, and note that it was used. None: unknown, revoked or expired."""
    return (await database.platform(TENANT_OF_KEY, (key_id, sha256)))[0][0]


async def redeem_login(database: Database, sha256: bytes) -> UUID | None:
    """Use up a login link. None: unknown, used or expired."""
    return (await database.platform(REDEEM, (sha256,)))[0][0]


async def session_of(database: Database, sha256: bytes) -> tuple[UUID, str] | None:
    """Tenant and CSRF token of a session. None: unknown, ended or expired."""
    rows = await database.platform(SESSION_OF, (sha256,))
    return (rows[0][0], rows[0][1]) if rows else None


async def add_login(connection: Connection, tenant: UUID, sha256: bytes, valid: timedelta) -> None:
    await connection.execute(FORGET_LOGINS)
    await connection.execute(ADD_LOGIN, (sha256, tenant, valid))


async def add_session(connection: Connection, tenant: UUID, sha256: bytes, csrf_token: str, valid: timedelta) -> None:
    await connection.execute(FORGET_SESSIONS)
    await connection.execute(ADD_SESSION, (sha256, tenant, csrf_token, valid))


async def end_session(connection: Connection, sha256: bytes) -> None:
    await connection.execute(END_SESSION, (sha256,))


async def add_key(
    connection: Connection, tenant: UUID, key_id: str, name: str, sha256: bytes, valid: timedelta | None
) -> None:
    """`valid` None: until it is revoked."""
    await connection.execute(ADD_KEY, (key_id, tenant, name, sha256, valid))


async def keys(connection: Connection) -> list[KeyRow]:
    return [KeyRow(*row) for row in await (await connection.execute(KEYS)).fetchall()]


async def revoke_key(connection: Connection, key_id: str) -> None:
    if await (await connection.execute(REVOKE, (key_id,))).fetchone() is None:
        raise NotFound("key", key_id)
