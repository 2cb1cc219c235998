"""Providers that a tenant has stored, and the endpoint of a call through one of them.

What precedes the slash in the name of a model is first looked up among the tenant's stored providers. A stored key is
sent only to the address that was stored with it. Without such an address, it goes to the provider's own. Every other
address must be one that the operator has configured or accepted, because a tenant could otherwise reach any port of
this machine and its network (`offing.models.credentials`).
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import orjson

from offing.core.errors import InvalidInput, OffingError
from offing.core.model import EngineConfig, EngineFailure, FailureKind
from offing.models.api_base import parse_api_base
from offing.models.call_limits import CallLimit
from offing.models.credentials import (
    INVALID_BASE_MESSAGE,
    KEY_VARIABLES,
    LOCAL_API_BASES,
    PLACEHOLDER_KEY,
    EngineEndpoint,
    find_base_variable,
    is_named_by_operator,
    render_accept_remedy,
    resolve_endpoint,
)

SERVER_PROVIDERS = frozenset({"ollama", "ollama_chat", "hosted_vllm", "lm_studio", "llamafile", "lemonade"})
"""Providers that are a server of one's own, whose key is optional."""
STORABLE_PROVIDERS = frozenset(KEY_VARIABLES) | SERVER_PROVIDERS | {"litellm_proxy"}
"""Providers of litellm whose only credential is one key. Others need more than a key: they stay in the environment."""
PROVIDERS_WITHOUT_ADDRESS = frozenset({"litellm_proxy"})
"""Providers that have no address of their own."""

MIN_KEY_CHARS, MAX_KEY_CHARS = 8, 2_000
"""Limits of a key. Redaction would hide ordinary words if it looked for a shorter one."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


@dataclass(frozen=True, slots=True)
class StoredProvider:
    """A stored provider with its decrypted key."""

    name: str
    """What precedes the slash in the name of a model."""
    litellm_provider: str
    api_base: str = ""
    """Empty means the provider's own address."""
    api_key: str = field(default="", repr=False)
    """Empty means that no key is set."""
    call_limit: CallLimit | None = None
    """Limit of concurrent calls through this provider of its tenant. `None` means that there is none."""


FindProvider = Callable[[str], Awaitable[StoredProvider | EngineFailure | None]]
"""Finds the tenant's stored provider of a name. `None` means that there is none. The failure means that its key cannot
be decrypted.
"""


async def find_no_provider(_name: str) -> None:
    """Find no stored provider: the environment alone decides."""


def check_provider(name: str, litellm_provider: str, api_base: str, env: Mapping[str, str]) -> None:
    """Check the fields of a provider before it is stored. Raises InvalidInput that names the field."""
    if not _NAME.fullmatch(name):
        remedy = "Use 1 to 64 lower-case letters, digits, periods, hyphens and underscores, such as openai."
        raise InvalidInput("name", f"{name[:80]!r} cannot be the name of a provider", remedy)
    if litellm_provider not in STORABLE_PROVIDERS:
        remedy = f"Use one of: {', '.join(sorted(STORABLE_PROVIDERS))}. Others are configured in the environment."
        raise InvalidInput("provider", f"{litellm_provider[:80]!r} cannot be stored", remedy)
    if name != litellm_provider and name in STORABLE_PROVIDERS:
        remedy = f"Use another name, or the provider {name}."
        raise InvalidInput("name", f"{name!r} is the name of another provider than {litellm_provider}", remedy)
    problem = find_address_problem(StoredProvider(name, litellm_provider, api_base), env)
    if problem is not None:
        raise InvalidInput("api_base", *problem)


def check_key(api_key: str) -> None:
    """Check a key. Raises InvalidInput, whose message does not contain the key."""
    if not MIN_KEY_CHARS <= len(api_key) <= MAX_KEY_CHARS or not re.fullmatch(r"[\x21-\x7e]+", api_key):
        problem = f"does not have {MIN_KEY_CHARS} to {MAX_KEY_CHARS} printable ASCII characters without spaces"
        raise InvalidInput("key", problem, "Copy the key again from the provider's page.")


def bind_context(tenant_id: UUID, provider: StoredProvider) -> bytes:
    """Return what the encryption of a provider's key is bound to: its tenant, name, kind and address."""
    return orjson.dumps([1, str(tenant_id), provider.name, provider.litellm_provider, provider.api_base])


def find_address_problem(provider: StoredProvider, env: Mapping[str, str]) -> tuple[str, str] | None:
    """Return why a provider's address may not be called, and the remedy. `None` means that it may be called."""
    kind, address = provider.litellm_provider, _get_address(provider)
    if not address:
        if kind in PROVIDERS_WITHOUT_ADDRESS:
            return f"{kind} has no address of its own", "Set the address of your server."
        if variable := find_base_variable(kind, env):
            problem = f"{variable} gives {kind} another address, and a stored key is sent only where its owner said"
            return problem, "Set api_base to that address, or remove the variable."
        return None
    base = parse_api_base(address)
    if base is None:
        return f"{address[:200]!r} {INVALID_BASE_MESSAGE}", "Use an address such as https://models.example/v1."
    try:
        allowed = is_named_by_operator(base, kind, env)
    except OffingError as error:
        return str(error).rstrip("."), "Ask the operator of this installation."
    if allowed:
        return None
    return f"{address!r} is not a server that the operator has accepted", render_accept_remedy(address)


def use_litellm_name(engine_config: EngineConfig, stored: Mapping[str, StoredProvider]) -> EngineConfig:
    """Return the engine config with litellm's name of its provider, by which the model table lists the model."""
    name, _, model = engine_config.model.partition("/")
    if engine_config.engine != "litellm" or name not in stored:
        return engine_config
    return engine_config.model_copy(update={"model": f"{stored[name].litellm_provider}/{model}"})


def resolve_stored_endpoint(
    engine_config: EngineConfig, provider: StoredProvider, env: Mapping[str, str]
) -> tuple[EngineConfig, EngineEndpoint | EngineFailure]:
    """Return the engine config with litellm's name of the provider, and the endpoint of its call.

    An engine config that names another server than the stored one is resolved from the environment, without the stored
    key. The failure is BAD_REQUEST if the address may not be called.
    """
    renamed = use_litellm_name(engine_config, {provider.name: provider})
    address = _get_address(provider)
    if engine_config.api_base and not _is_below(engine_config.api_base, address):
        return renamed, resolve_endpoint(renamed, env)
    if problem := find_address_problem(provider, env):
        message = f"model: the provider {provider.name!r} cannot be called: {problem[0]}. {problem[1]}"
        return renamed, EngineFailure(FailureKind.BAD_REQUEST, message)
    if not address and not provider.api_key:
        remedy = f"Set it with `offing provider add {provider.name}`."
        message = f"model: the provider {provider.name!r} has no key. {remedy}"
        return renamed, EngineFailure(FailureKind.AUTHENTICATION_FAILED, message)
    endpoint = EngineEndpoint(
        engine_config.api_base or address,
        provider.api_key or PLACEHOLDER_KEY,
        keyless=not provider.api_key,
        stored_name=provider.name,
        stored_limit=provider.call_limit,
    )
    return renamed, endpoint


def _get_address(provider: StoredProvider) -> str:
    return provider.api_base or LOCAL_API_BASES.get(provider.litellm_provider, "")


def _is_below(address: str, stored_address: str) -> bool:
    base, stored = parse_api_base(address), parse_api_base(stored_address)
    return base is not None and stored is not None and stored.covers(base)
