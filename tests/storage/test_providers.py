"""Stored providers: what is kept of a key, what it is bound to, and who may send it where."""

import asyncio
import subprocess
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from offing.cli.backup import SESSION_TABLES
from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.model import EngineFailure, FailureKind
from offing.local.postgres_tools import choose_tools, dump_schema
from offing.models import key_file
from offing.models.accepted_servers import accept_server
from offing.models.call_limits import CallLimit
from offing.models.key_file import KEY_FILE_VARIABLE, find_key_file, read_key_ring
from offing.models.stored_provider import StoredProvider
from offing.services import providers
from offing.services.providers import ProviderRequest, TenantProviders
from offing.storage.backup import describe_database, open_snapshot, split_password
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.telemetry.redaction import bind_secrets, redact

KEY = "c4n4ry-of-a-provider-0123456789"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"OFFING_HOME": str(tmp_path / "home")}


async def store(pool: Database, env: dict[str, str], name: str = "openai", **more: str | None) -> None:
    values: dict[str, str | None] = {"api_key": KEY, **more}
    await providers.put_provider(pool, LOCAL_TENANT, ProviderRequest(name, **values), env)  # pyright: ignore[reportArgumentType]


async def find(pool: Database, env: dict[str, str], name: str = "openai", tenant: UUID = LOCAL_TENANT) -> object:
    with bind_secrets():
        return await TenantProviders(pool, tenant, env).find(name)


async def found_key(pool: Database, env: dict[str, str], name: str = "openai") -> str:
    provider = await find(pool, env, name)
    assert isinstance(provider, StoredProvider), provider
    return provider.api_key


def dump_as_text(owner_url: str, file: Path) -> bytes:
    """What `offing backup` dumps, as SQL."""
    described, (address, password) = describe_database(owner_url), split_password(owner_url)
    tools = choose_tools(described.postgres_version)
    with open_snapshot(owner_url) as stored:
        name = stored.snapshot_name
        dump_schema(tools, address, password, "app", file, snapshot=name, excluded_tables=SESSION_TABLES)
    return subprocess.run([tools.folder / "pg_restore", "-f", "-", file], capture_output=True, check=True).stdout


async def test_a_stored_key_is_found_by_its_tenant_and_by_no_other(
    pool: Database, env: dict[str, str], other_tenant: UUID
) -> None:
    await store(pool, env)
    assert await found_key(pool, env) == KEY
    assert await find(pool, env, tenant=other_tenant) is None
    assert await find(pool, env, "anthropic") is None


async def test_the_key_file_is_created_for_its_owner_alone(pool: Database, env: dict[str, str]) -> None:
    await store(pool, env)
    file = find_key_file(env)
    assert file == Path(env["OFFING_HOME"]) / "provider.key"
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o644)
    failure = await find(pool, env)
    assert isinstance(failure, EngineFailure)
    assert "chmod 600" in failure.message


async def test_a_dump_and_what_a_row_shows_have_no_key(
    pool: Database, env: dict[str, str], owner_url: str, tmp_path: Path
) -> None:
    await store(pool, env)
    row = await providers.get_provider(pool, LOCAL_TENANT, "openai")
    assert KEY not in repr(row) + repr(await find(pool, env))
    text = await asyncio.to_thread(dump_as_text, owner_url, tmp_path / "dump")
    assert b"app.provider" in text
    assert row.key_id is not None
    assert row.key_id.encode() in text
    assert KEY.encode() not in text
    assert KEY.encode().hex().encode() not in text
    assert read_key_ring(env).keys[row.key_id].hex().encode() not in text


@pytest.mark.parametrize(
    "change",
    [
        "api_base = 'http://127.0.0.1:9/v1'",
        "litellm_provider = 'groq'",
        "name = 'groq', litellm_provider = 'groq'",
        "key_ciphertext = overlay(key_ciphertext placing '\\x00' from 20)",
    ],
)
async def test_a_ciphertext_that_was_moved_or_changed_yields_no_key(
    pool: Database, env: dict[str, str], owner_url: str, change: str
) -> None:
    await store(pool, env)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute(f"update app.provider set {change}".encode())
        name = owner.execute("select name from app.provider").fetchall()[0][0]
    failure = await find(pool, env, name)
    assert isinstance(failure, EngineFailure)
    assert failure.kind is FailureKind.AUTHENTICATION_FAILED
    assert "does not belong" in failure.message


async def test_a_ciphertext_of_another_tenant_yields_no_key(
    pool: Database, env: dict[str, str], owner_url: str, other_tenant: UUID
) -> None:
    await store(pool, env)
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.provider set tenant_id = %s", (other_tenant,))
    assert isinstance(await find(pool, env, tenant=other_tenant), EngineFailure)


async def test_without_its_key_file_a_stored_key_is_lost_and_the_failure_says_so(
    pool: Database, env: dict[str, str]
) -> None:
    await store(pool, env)
    find_key_file(env).unlink()
    failure = await find(pool, env)
    assert isinstance(failure, EngineFailure)
    assert "set the provider's key again" in failure.message
    await store(pool, env)
    assert await found_key(pool, env) == KEY


async def test_a_key_stays_with_the_address_that_it_was_stored_for(pool: Database, env: dict[str, str]) -> None:
    accept_server(env, "http://127.0.0.1:9099/v1")
    await store(pool, env)
    with pytest.raises(InvalidInput, match="key: the stored key belongs to openai"):
        await store(pool, env, api_base="http://127.0.0.1:9099/v1", api_key=None)
    await store(pool, env, api_key=None)
    assert await found_key(pool, env) == KEY
    await store(pool, env, api_base="http://127.0.0.1:9099/v1", api_key="another-key")
    assert await found_key(pool, env) == "another-key"
    await store(pool, env, api_base="http://127.0.0.1:9099/v1", api_key="")
    assert await found_key(pool, env) == ""


@pytest.mark.parametrize(
    ("field", "name", "more"),
    [
        ("name", "No Spaces", {}),
        ("name", "groq", {"litellm_provider": "openai"}),
        ("provider", "azure", {}),
        ("provider", "work", {"litellm_provider": "bedrock"}),
        ("api_base", "openai", {"api_base": "http://10.0.0.5:8000/v1"}),
        ("api_base", "openai", {"api_base": "http://169.254.169.254/latest"}),
        ("api_base", "openai", {"api_base": "file:///etc/passwd"}),
        ("api_base", "ollama_chat", {}),
        ("api_base", "litellm_proxy", {}),
        ("key", "openai", {"api_key": "short"}),
        ("key", "openai", {"api_key": "a key with spaces"}),
        ("key", "openai", {"api_key": ""}),
    ],
)
async def test_a_provider_that_cannot_be_used_is_rejected_with_the_field(
    pool: Database, env: dict[str, str], field: str, name: str, more: dict[str, str]
) -> None:
    with pytest.raises(InvalidInput) as rejection:
        await store(pool, env, name, **more)
    assert rejection.value.field == field
    assert "a key with" not in str(rejection.value)
    assert await providers.list_providers(pool, LOCAL_TENANT) == []


async def test_a_rotation_encrypts_every_tenant_s_keys_again_and_drops_the_old_key(
    pool: Database, env: dict[str, str], owner_url: str, other_tenant: UUID
) -> None:
    await store(pool, env)
    await providers.put_provider(pool, other_tenant, ProviderRequest("groq", api_key="key-of-another"), env)
    [old] = read_key_ring(env).keys
    assert providers.rotate_key(owner_url, env) == 2
    [new] = read_key_ring(env).keys
    assert new != old
    assert await found_key(pool, env) == KEY
    other = await find(pool, env, "groq", other_tenant)
    assert isinstance(other, StoredProvider)
    assert other.api_key == "key-of-another"
    assert find_key_file(env).stat().st_mode & 0o777 == 0o600


async def test_a_rotation_that_fails_loses_no_key(pool: Database, env: dict[str, str], owner_url: str) -> None:
    await store(pool, env)
    await store(pool, env, "groq")
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("update app.provider set key_ciphertext = '\\x00' where name = 'groq'")
    with pytest.raises(Conflict):
        providers.rotate_key(owner_url, env)
    assert await found_key(pool, env) == KEY


async def test_a_key_file_that_several_machines_share_is_not_created(pool: Database, tmp_path: Path) -> None:
    env = {KEY_FILE_VARIABLE: str(tmp_path / "shared.key")}
    with pytest.raises(Conflict, match="new-key-file"):
        await store(pool, env)
    assert key_file.create_key_file(tmp_path / "shared.key")
    assert not key_file.create_key_file(tmp_path / "shared.key")
    await store(pool, env)
    assert await found_key(pool, env) == KEY


async def test_a_key_is_redacted_in_the_work_that_uses_it_and_nowhere_else(pool: Database, env: dict[str, str]) -> None:
    await store(pool, env, api_key="government")
    with bind_secrets():
        await TenantProviders(pool, LOCAL_TENANT, env).find("openai")
        assert redact("the government said") == "the [redacted] said"
    assert redact("the government said") == "the government said"


async def test_a_change_takes_effect_after_seconds(pool: Database, env: dict[str, str]) -> None:
    now = [100.0]
    cached = TenantProviders(pool, LOCAL_TENANT, env, lambda: now[0])
    with bind_secrets():
        await store(pool, env)
        assert isinstance(await cached.find("openai"), StoredProvider)
        await providers.delete_provider(pool, LOCAL_TENANT, "openai")
        now[0] += providers.CACHE_SECONDS - 1
        assert isinstance(await cached.find("openai"), StoredProvider)
        now[0] += 2
        assert await cached.find("openai") is None
    with pytest.raises(NotFound):
        await providers.delete_provider(pool, LOCAL_TENANT, "openai")


async def find_limit(
    pool: Database, env: dict[str, str], name: str = "openai", tenant: UUID = LOCAL_TENANT
) -> CallLimit | None:
    provider = await find(pool, env, name, tenant)
    assert isinstance(provider, StoredProvider), provider
    return provider.call_limit


async def test_a_limit_of_calls_can_be_set_with_the_provider_and_later_without_its_key(
    pool: Database, env: dict[str, str]
) -> None:
    await providers.put_provider(
        pool, LOCAL_TENANT, ProviderRequest("openai", api_key=KEY, max_concurrent_calls=3), env
    )
    assert await find_limit(pool, env) == CallLimit(f"stored:{LOCAL_TENANT}:openai", 3)
    await providers.set_call_limit(pool, LOCAL_TENANT, "openai", 1)
    limit = await find_limit(pool, env)
    assert limit is not None
    assert (limit.max_calls, await found_key(pool, env)) == (1, KEY)
    await providers.set_call_limit(pool, LOCAL_TENANT, "openai", None)
    assert await find_limit(pool, env) is None
    with pytest.raises(NotFound):
        await providers.set_call_limit(pool, LOCAL_TENANT, "anthropic", 1)
    with pytest.raises(InvalidInput, match="max_concurrent_calls"):
        await providers.set_call_limit(pool, LOCAL_TENANT, "openai", 0)


async def test_calls_of_two_tenants_do_not_count_together(
    pool: Database, env: dict[str, str], other_tenant: UUID
) -> None:
    request = ProviderRequest("openai", api_key=KEY, max_concurrent_calls=1)
    for tenant in (LOCAL_TENANT, other_tenant):
        await providers.put_provider(pool, tenant, request, env)
    mine, others = await find_limit(pool, env), await find_limit(pool, env, tenant=other_tenant)
    assert mine is not None
    assert others is not None
    assert mine.scope != others.scope
