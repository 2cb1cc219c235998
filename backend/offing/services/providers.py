"""The model providers of a tenant: store them, find them at call time, and rotate the key that encrypts their keys.

A key is write-only. It is decrypted where a call needs it and kept there for seconds. It is not part of any run,
message or response.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from offing import environment
from offing.core.errors import InvalidInput, OffingError
from offing.core.model import EngineConfig, EngineFailure, FailureKind, list_chain
from offing.models import key_file
from offing.models.call_limits import CallLimit, check_call_limit
from offing.models.key_file import EncryptedKey
from offing.models.stored_provider import (
    SERVER_PROVIDERS,
    StoredProvider,
    bind_context,
    check_key,
    check_provider,
)
from offing.services.webhook_secrets import bind_secret
from offing.storage import providers
from offing.storage.pool import Connection, Database
from offing.storage.providers import KeyRotation, ProviderRow
from offing.telemetry.redaction import remember_secret

CACHE_SECONDS = 10.0
"""Maximum time for which a decrypted key is kept. A changed or removed provider takes effect after it."""


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """A provider to store."""

    name: str
    litellm_provider: str = ""
    """Empty means that the name is litellm's name of the provider."""
    api_base: str = ""
    """Empty means the provider's own address."""
    api_key: str | None = field(default=None, repr=False)
    """`None` keeps the stored key, and an empty text removes it."""
    max_concurrent_calls: int | None = None
    """Maximum number of calls at the same time. `None` means no limit."""


async def put_provider(
    database: Database,
    tenant_id: UUID,
    request: ProviderRequest,
    env: Mapping[str, str] = environment.VARIABLES,
) -> ProviderRow:
    """Create or replace a provider.

    Raises InvalidInput for an invalid field, for an address that is not allowed, and if the address changes without the
    key: the key belongs to the address that its owner named. Raises Conflict if the key file cannot be used.
    """
    address = request.api_base.strip().rstrip("/")
    new = StoredProvider(request.name, request.litellm_provider or request.name, address, request.api_key or "")
    check_provider(new.name, new.litellm_provider, new.api_base, env)
    check_call_limit("max_concurrent_calls", request.max_concurrent_calls)
    if new.api_key:
        check_key(new.api_key)
    async with database.transaction(tenant_id) as connection:
        await providers.lock_keys_shared(connection)
        earlier = await providers.find_provider(connection, new.name)
        key = _encrypt(tenant_id, new, env) if new.api_key else _keep_key(request, new, earlier)
        if key is None and not address and new.litellm_provider not in SERVER_PROVIDERS:
            raise InvalidInput("key", f"{new.litellm_provider} needs a key", "Send the key.")
        await providers.upsert_provider(
            connection,
            tenant_id,
            new.name,
            new.litellm_provider,
            new.api_base,
            request.max_concurrent_calls,
            key and (key.key_id, key.ciphertext),
        )
        return await providers.get_provider(connection, new.name)


async def list_providers(database: Database, tenant_id: UUID) -> Sequence[ProviderRow]:
    """Return the tenant's providers by name."""
    async with database.transaction(tenant_id) as connection:
        return await providers.list_providers(connection)


async def get_provider(database: Database, tenant_id: UUID, name: str) -> ProviderRow:
    """Return a provider. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        return await providers.get_provider(connection, name)


async def set_call_limit(database: Database, tenant_id: UUID, name: str, max_calls: int | None) -> None:
    """Set how many calls of the tenant may use a provider at the same time. `None` means no limit. Raises NotFound."""
    check_call_limit("max_concurrent_calls", max_calls)
    async with database.transaction(tenant_id) as connection:
        await providers.set_call_limit(connection, name, max_calls)


async def delete_provider(database: Database, tenant_id: UUID, name: str) -> None:
    """Delete a provider with its key. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        await providers.delete_provider(connection, name)


async def list_stored(connection: Connection) -> Mapping[str, StoredProvider]:
    """Return the tenant's providers by name, without their keys, to check engine configs."""
    rows = await providers.list_providers(connection)
    marked = {row.name: "" if row.key_id is None else "not decrypted" for row in rows}
    return {row.name: StoredProvider(row.name, row.litellm_provider, row.api_base, marked[row.name]) for row in rows}


async def list_needed(connection: Connection, engines: Iterable[EngineConfig]) -> Mapping[str, StoredProvider]:
    """Return the same for checking these engines. It reads nothing if none of them can name a stored provider."""
    chain = (one for engine_config in engines for one in list_chain(engine_config))
    return await list_stored(connection) if any(one.engine == "litellm" for one in chain) else {}


class TenantProviders:
    """The providers of a tenant with their decrypted keys, for the engine calls of one task."""

    def __init__(
        self,
        database: Database,
        tenant_id: UUID,
        env: Mapping[str, str] = environment.VARIABLES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database, self._tenant, self._env, self._clock = database, tenant_id, env, clock
        self._cached: dict[str, tuple[float, StoredProvider | EngineFailure | None]] = {}

    async def find(self, name: str) -> StoredProvider | EngineFailure | None:
        """See `offing.models.stored_provider.FindProvider`. The key is redacted in the current `bind_secrets`."""
        read_at, provider = self._cached.get(name, (0.0, None))
        if name not in self._cached or self._clock() - read_at > CACHE_SECONDS:
            async with self._database.transaction(self._tenant) as connection:
                row = await providers.find_provider(connection, name)
            provider = decrypt_provider(self._tenant, row, self._env) if row else None
            self._cached[name] = (self._clock(), provider)
        if isinstance(provider, StoredProvider) and provider.api_key:
            remember_secret(provider.api_key)
        return provider


def decrypt_provider(tenant_id: UUID, row: ProviderRow, env: Mapping[str, str]) -> StoredProvider | EngineFailure:
    """Return a provider with its key. The failure says why the key cannot be decrypted."""
    limit = row.max_concurrent_calls
    call_limit = None if limit is None else CallLimit(f"stored:{tenant_id}:{row.name}", limit)
    provider = StoredProvider(row.name, row.litellm_provider, row.api_base, call_limit=call_limit)
    if row.key_id is None or row.key_ciphertext is None:
        return provider
    try:
        ring = key_file.read_key_ring(env)
        api_key = ring.decrypt(EncryptedKey(row.key_id, row.key_ciphertext), bind_context(tenant_id, provider))
    except OffingError as error:
        message = f"The key of the provider {row.name!r} cannot be used. {error}"
        return EngineFailure(FailureKind.AUTHENTICATION_FAILED, message)
    return replace(provider, api_key=api_key)


def rotate_key(owner_url: str, env: Mapping[str, str] = environment.VARIABLES, *, keep_file: bool = False) -> int:
    """Encrypt the secrets of all tenants with a new key, remove the old one from its file, and return their number.

    With `keep_file` the file is not changed, and its last key is used. Raises Conflict if a key cannot be decrypted, or
    if the file cannot be written; the keys can then still be decrypted.
    """
    with KeyRotation(owner_url) as rotation:
        ring = key_file.open_key_ring(env)
        ring = ring if keep_file else key_file.add_key(ring)
        rows = rotation.list_encrypted()
        for row in rows:
            context = bind_context(row.tenant_id, StoredProvider(row.name, row.litellm_provider, row.api_base))
            secret = ring.decrypt(EncryptedKey(row.key_id, row.key_ciphertext), context)
            encrypted = ring.encrypt(secret, context)
            rotation.update_ciphertext(row, encrypted.key_id, encrypted.ciphertext)
        secrets = rotation.list_encrypted_webhooks()
        for one in secrets:
            context = bind_secret(one.tenant_id, one.id)
            encrypted = ring.encrypt(ring.decrypt(EncryptedKey(one.key_id, one.secret_ciphertext), context), context)
            rotation.update_webhook_secret(one, encrypted.key_id, encrypted.ciphertext)
    if not keep_file:
        with KeyRotation(owner_url) as rotation:  # after the commit, so that no row needs a removed key
            key_file.keep_keys(key_file.read_key_ring(env), rotation.list_key_ids())
    return len(rows) + len(secrets)


def _encrypt(tenant_id: UUID, provider: StoredProvider, env: Mapping[str, str]) -> EncryptedKey:
    return key_file.open_key_ring(env).encrypt(provider.api_key, bind_context(tenant_id, provider))


def _keep_key(request: ProviderRequest, new: StoredProvider, earlier: ProviderRow | None) -> EncryptedKey | None:
    """Return the stored key of a provider whose request has none."""
    if request.api_key is not None or earlier is None or earlier.key_id is None or earlier.key_ciphertext is None:
        return None
    if (earlier.litellm_provider, earlier.api_base) != (new.litellm_provider, new.api_base):
        problem = f"the stored key belongs to {earlier.api_base or earlier.litellm_provider}, not to the new address"
        raise InvalidInput("key", problem, "Send the key for the new address, or an empty one to remove it.")
    return EncryptedKey(earlier.key_id, earlier.key_ciphertext)
