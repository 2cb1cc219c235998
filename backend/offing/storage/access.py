"""API keys, login links and sessions as rows. Secrets are hashed before they get here."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from offing.core.errors import NotFound
from offing.storage.pool import Connection, Database

FIND_TENANT_OF_KEY = "select app.authenticate_api_key(%s, %s)"

REDEEM_LOGIN_LINK = "select app.redeem_login_link(%s)"

FIND_SESSION = "select tenant_id, csrf_token, is_operator from app.find_session(%s)"

INSERT_LOGIN_LINK = """
    insert into login_link (token_sha256, tenant_id, is_operator, expires_at)
    values (%s, %s, %s, clock_timestamp() + %s)
"""

DELETE_EXPIRED_LOGIN_LINKS = "delete from login_link where expires_at < clock_timestamp() or used_at is not null"

INSERT_SESSION = """
    insert into session (token_sha256, tenant_id, csrf_token, expires_at, operator_until)
    values (%s, %s, %s, clock_timestamp() + %s,
            (select clock_timestamp() + %s from login_link where token_sha256 = %s and is_operator))
"""
"""The session has the right of the operator for a time if its link has it."""

DELETE_EXPIRED_SESSIONS = "delete from session where expires_at < clock_timestamp()"

DELETE_SESSION = "delete from session where token_sha256 = %s"

INSERT_KEY = """
    insert into api_key (id, tenant_id, name, secret_sha256, expires_at)
    values (%s, %s, %s, %s, clock_timestamp() + %s)
"""

LIST_KEYS = """
    select id, name, created_at, expires_at, revoked_at, last_used_at from api_key order by created_at, id limit 1000
"""

COUNT_VALID_KEYS = """
    select count(*) from api_key where revoked_at is null and (expires_at is null or expires_at > clock_timestamp())
"""

REVOKE_KEY = "update api_key set revoked_at = coalesce(revoked_at, clock_timestamp()) where id = %s returning id"


@dataclass(frozen=True, slots=True)
class ApiKeyRow:
    """An API key as its owner sees it.

    A time is `None` if the event never happens or has not happened yet.
    """

    id: str
    name: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


async def find_tenant_of_key(database: Database, key_id: str, secret_sha256: bytes) -> UUID | None:
    """Return the tenant of an API key and record its use.

    `None` means that the key is unknown, revoked or expired.
    """
    return (await database.call_function(FIND_TENANT_OF_KEY, (key_id, secret_sha256)))[0][0]


async def redeem_login_link(database: Database, token_sha256: bytes) -> UUID | None:
    """Redeem a login link and return its tenant.

    `None` means that it is unknown, used or expired.
    """
    return (await database.call_function(REDEEM_LOGIN_LINK, (token_sha256,)))[0][0]


async def find_session(database: Database, token_sha256: bytes) -> tuple[UUID, str, bool] | None:
    """Return tenant and CSRF token of a session, and whether it has the right of the operator now.

    `None` means that it is unknown, ended or expired.
    """
    rows = await database.call_function(FIND_SESSION, (token_sha256,))
    return (rows[0][0], rows[0][1], rows[0][2]) if rows else None


async def insert_login_link(
    connection: Connection, tenant_id: UUID, token_sha256: bytes, lifetime: timedelta, *, is_operator: bool = False
) -> None:
    await connection.execute(DELETE_EXPIRED_LOGIN_LINKS)
    await connection.execute(INSERT_LOGIN_LINK, (token_sha256, tenant_id, is_operator, lifetime))


async def insert_session(
    connection: Connection,
    tenant_id: UUID,
    token_sha256: bytes,
    csrf_token: str,
    lifetime: timedelta,
    *,
    link_sha256: bytes,
    operator_lifetime: timedelta,
) -> None:
    """Store the session of a redeemed link. If the link is one of the operator, so is the session for a time."""
    await connection.execute(DELETE_EXPIRED_SESSIONS)
    parameters = (token_sha256, tenant_id, csrf_token, lifetime, operator_lifetime, link_sha256)
    await connection.execute(INSERT_SESSION, parameters)


async def delete_session(connection: Connection, token_sha256: bytes) -> None:
    await connection.execute(DELETE_SESSION, (token_sha256,))


async def insert_key(
    connection: Connection, tenant_id: UUID, key_id: str, name: str, secret_sha256: bytes, lifetime: timedelta | None
) -> None:
    """Store an API key. If `lifetime` is `None`, it is valid until it is revoked."""
    await connection.execute(INSERT_KEY, (key_id, tenant_id, name, secret_sha256, lifetime))


async def count_valid_keys(connection: Connection) -> int:
    """Return the number of keys that are neither revoked nor expired."""
    row = await (await connection.execute(COUNT_VALID_KEYS)).fetchone()
    return int(row[0]) if row else 0


async def list_keys(connection: Connection) -> list[ApiKeyRow]:
    """Return at most 1,000 keys, oldest first."""
    return [ApiKeyRow(*row) for row in await (await connection.execute(LIST_KEYS)).fetchall()]


async def revoke_key(connection: Connection, key_id: str) -> None:
    if await (await connection.execute(REVOKE_KEY, (key_id,))).fetchone() is None:
        raise NotFound("key", key_id)
