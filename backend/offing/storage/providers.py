"""Providers of a tenant with their encrypted keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from offing.core.errors import NotFound
from offing.storage.pool import Connection

_COLUMNS = """name, litellm_provider, api_base, max_concurrent_calls, key_id, key_ciphertext, key_set_at, last_test,
              created_at, updated_at"""

LIST_PROVIDERS = f"select {_COLUMNS} from provider order by name"

FIND_PROVIDER = f"select {_COLUMNS} from provider where name = %s"

UPSERT_PROVIDER = """
    insert into provider as p (tenant_id, name, litellm_provider, api_base, max_concurrent_calls, key_id,
                               key_ciphertext, key_set_at)
    values (%(tenant)s, %(name)s, %(litellm_provider)s, %(api_base)s, %(max_calls)s, %(key_id)s, %(ciphertext)s,
            case when %(key_id)s::text is not null then clock_timestamp() end)
    on conflict (tenant_id, name) do update
      set litellm_provider = excluded.litellm_provider, api_base = excluded.api_base,
          max_concurrent_calls = excluded.max_concurrent_calls, key_id = excluded.key_id,
          key_ciphertext = excluded.key_ciphertext, key_set_at = excluded.key_set_at, last_test = null,
          updated_at = clock_timestamp()
"""

DELETE_PROVIDER = "delete from provider where name = %s"

SET_CALL_LIMIT = "update provider set max_concurrent_calls = %s where name = %s"

SET_LAST_TEST = "update provider set last_test = %s where name = %s and updated_at = %s"
"""A test that ran while the provider was changed is not stored."""

LOCK_KEYS_SHARED = "select pg_advisory_xact_lock_shared(7305822604179351)"
"""Held by a transaction that stores a key, from before it reads the key file."""

LOCK_KEYS = "select pg_advisory_xact_lock(7305822604179351)"
"""Held by a rotation, so that no other transaction stores a key that is encrypted with the key to be removed."""

LIST_ENCRYPTED = """
    select tenant_id, name, litellm_provider, api_base, key_id, key_ciphertext
      from app.provider where key_id is not null order by tenant_id, name for update
"""

UPDATE_CIPHERTEXT = "update app.provider set key_id = %s, key_ciphertext = %s where tenant_id = %s and name = %s"

LIST_ENCRYPTED_WEBHOOKS = """
    select tenant_id, id, key_id, secret_ciphertext from app.webhook order by tenant_id, id for update
"""

UPDATE_WEBHOOK_SECRET = "update app.webhook set key_id = %s, secret_ciphertext = %s where tenant_id = %s and id = %s"

LIST_KEY_IDS = "select key_id from app.provider where key_id is not null union select key_id from app.webhook"


@dataclass(frozen=True, slots=True)
class ProviderRow:
    """A stored provider."""

    name: str
    litellm_provider: str
    api_base: str
    """Empty means the provider's own address."""
    max_concurrent_calls: int | None
    """`None` means no limit."""
    key_id: str | None
    """The line of the key file that encrypts the key. `None` means that no key is set."""
    key_ciphertext: bytes | None = field(repr=False)
    key_set_at: datetime | None
    last_test: Mapping[str, Any] | None
    """`None` means that it was not tested since its last change."""
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class EncryptedRow:
    """The encrypted key of any tenant, for a rotation."""

    tenant_id: UUID
    name: str
    litellm_provider: str
    api_base: str
    key_id: str
    key_ciphertext: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class EncryptedWebhookRow:
    """The encrypted secret of a webhook of any tenant, for a rotation."""

    tenant_id: UUID
    id: UUID
    key_id: str
    secret_ciphertext: bytes = field(repr=False)


async def list_providers(connection: Connection) -> Sequence[ProviderRow]:
    """Return the tenant's providers by name."""
    async with connection.cursor(row_factory=class_row(ProviderRow)) as cursor:
        return await (await cursor.execute(LIST_PROVIDERS)).fetchall()


async def find_provider(connection: Connection, name: str) -> ProviderRow | None:
    """Return the tenant's provider of this name."""
    async with connection.cursor(row_factory=class_row(ProviderRow)) as cursor:
        return await (await cursor.execute(FIND_PROVIDER, (name,))).fetchone()


async def get_provider(connection: Connection, name: str) -> ProviderRow:
    """Return the tenant's provider of this name. Raises NotFound."""
    row = await find_provider(connection, name)
    if row is None:
        raise NotFound("provider", name)
    return row


async def lock_keys_shared(connection: Connection) -> None:
    """Wait for a rotation, and keep the next one waiting until the transaction ends."""
    await connection.execute(LOCK_KEYS_SHARED)


async def upsert_provider(
    connection: Connection,
    tenant_id: UUID,
    name: str,
    litellm_provider: str,
    api_base: str,
    max_concurrent_calls: int | None,
    key: tuple[str, bytes] | None,
) -> None:
    """Create or replace a provider.

    `max_concurrent_calls` of `None` means no limit. `key` is the id and the ciphertext of its key; `None` means that it
    has none.
    """
    parameters = {"tenant": tenant_id, "name": name, "litellm_provider": litellm_provider, "api_base": api_base}
    key_id, ciphertext = key or (None, None)
    more = {"max_calls": max_concurrent_calls, "key_id": key_id, "ciphertext": ciphertext}
    await connection.execute(UPSERT_PROVIDER, parameters | more)


async def set_call_limit(connection: Connection, name: str, max_concurrent_calls: int | None) -> None:
    """Set the limit of concurrent calls of a provider. `None` removes it. Raises NotFound."""
    if (await connection.execute(SET_CALL_LIMIT, (max_concurrent_calls, name))).rowcount == 0:
        raise NotFound("provider", name)


async def delete_provider(connection: Connection, name: str) -> None:
    """Delete a provider with its key. Raises NotFound."""
    if (await connection.execute(DELETE_PROVIDER, (name,))).rowcount == 0:
        raise NotFound("provider", name)


async def set_last_test(connection: Connection, row: ProviderRow, result: Mapping[str, Any]) -> None:
    """Store the result of a test, unless the provider was changed since `row` was read."""
    await connection.execute(SET_LAST_TEST, (Jsonb(dict(result)), row.name, row.updated_at))


class KeyRotation:
    """The encrypted keys of all tenants, for the owner of the tables.

    Use it as a context manager, which commits a transaction in which no other process stores a key.
    """

    def __init__(self, owner_url: str) -> None:
        self._owner_url = owner_url

    def __enter__(self) -> "KeyRotation":
        self._connection = psycopg.connect(self._owner_url)
        self._connection.execute(LOCK_KEYS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        try:
            self._connection.rollback() if kind else self._connection.commit()
        finally:
            self._connection.close()

    def list_encrypted(self) -> Sequence[EncryptedRow]:
        with self._connection.cursor(row_factory=class_row(EncryptedRow)) as cursor:
            return cursor.execute(LIST_ENCRYPTED).fetchall()

    def update_ciphertext(self, row: EncryptedRow, key_id: str, ciphertext: bytes) -> None:
        self._connection.execute(UPDATE_CIPHERTEXT, (key_id, ciphertext, row.tenant_id, row.name))

    def list_encrypted_webhooks(self) -> Sequence[EncryptedWebhookRow]:
        with self._connection.cursor(row_factory=class_row(EncryptedWebhookRow)) as cursor:
            return cursor.execute(LIST_ENCRYPTED_WEBHOOKS).fetchall()

    def update_webhook_secret(self, row: EncryptedWebhookRow, key_id: str, ciphertext: bytes) -> None:
        self._connection.execute(UPDATE_WEBHOOK_SECRET, (key_id, ciphertext, row.tenant_id, row.id))

    def list_key_ids(self) -> set[str]:
        """Return the ids of the keys that encrypt any row."""
        return {id for (id,) in self._connection.execute(LIST_KEY_IDS)}
