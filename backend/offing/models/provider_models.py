"""The models of a provider: those that its server lists, otherwise those of the model table, with what is known."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import httpx

from offing.certificates import load_ssl_context
from offing.core.model import EngineConfig, EngineFailure
from offing.models.credentials import PLACEHOLDER_KEY, EngineEndpoint
from offing.models.engine_discovery import MODEL_LIST_PATHS
from offing.models.model_table import CHAT_MODES, SELF_HOSTED_PROVIDERS, provider_of_row, read_model_rows, read_price
from offing.models.stored_provider import StoredProvider, resolve_stored_endpoint

MAX_LISTED_MODELS = 500
"""Maximum number of models that are returned. A search finds the others."""
MAX_LIST_BYTES = 4_000_000
"""Maximum size of a server's list. The longest known one has about 1 MB."""
LIST_SECONDS = 8.0

_LIST_ADDRESSES: Mapping[str, str] = {"openrouter": "https://openrouter.ai/api/v1"}
"""Own addresses of providers whose models the model table does not have."""


@dataclass(frozen=True, slots=True)
class ProviderModel:
    """A model with what is known about it. `None` means unknown."""

    name: str
    """Its name at the provider."""
    context_tokens: int | None = None
    """Maximum tokens of a prompt."""
    input_usd_per_million: float | None = None
    """Price of one million prompt tokens in USD."""
    output_usd_per_million: float | None = None
    """Price of one million completion tokens in USD."""
    calls_tools: bool | None = None
    follows_schema: bool | None = None
    """It answers with JSON of a given schema."""
    reads_images: bool | None = None
    reasons: bool | None = None


@dataclass(frozen=True, slots=True)
class ModelList:
    """The models of a provider."""

    models: Sequence[ProviderModel]
    source: str
    """`server`: its own list. `table`: litellm's list of models, which may have others than the account can use."""
    problem: str = ""
    """Why its server did not list its models. Empty means that it did, or was not asked."""


async def list_models(provider: StoredProvider, env: Mapping[str, str]) -> ModelList:
    """Return the models of a stored provider by name.

    A server is asked for them, with the provider's key. Of a provider with an address of its own, the model table has
    the models. Embedding models and others that cannot answer a role are left out where that is known.
    """
    table = await asyncio.to_thread(list_table_models, provider.litellm_provider)
    is_own = not provider.api_base and provider.litellm_provider not in SELF_HOSTED_PROVIDERS
    if is_own and table and provider.litellm_provider not in _LIST_ADDRESSES:
        return ModelList(table, "table")
    listed = await _ask_server(provider, env)
    if isinstance(listed, str):
        return ModelList((), "server", listed)
    known = {model.name: model for model in table}
    if provider.litellm_provider in SELF_HOSTED_PROVIDERS:
        known = {}  # a table cannot know with which limits one's own server was started
    joined = [_join(model, known.get(model.name)) for model in listed]
    return ModelList(sorted(joined, key=lambda model: model.name), "server")


def list_table_models(litellm_provider: str) -> Sequence[ProviderModel]:
    """Return the models of a provider in the model table by name, without fine-tuned variants and price classes."""
    models = {
        model.name: model
        for name, row in read_model_rows()
        if provider_of_row(row) == litellm_provider and not name.startswith(("ft:", "together-ai-"))
        for model in [_read_row(name.removeprefix(f"{litellm_provider}/"), row)]
    }
    return [models[name] for name in sorted(models)]


def search_models(models: Sequence[ProviderModel], search: str) -> Sequence[ProviderModel]:
    """Return the models whose names contain each word of a search text."""
    words = search.lower().split()
    return [model for model in models if all(word in model.name.lower() for word in words)]


def _join(listed: ProviderModel, known: ProviderModel | None) -> ProviderModel:
    if known is None:
        return listed
    return replace(known, context_tokens=listed.context_tokens or known.context_tokens)


def _read_row(name: str, row: Mapping[str, Any]) -> ProviderModel:
    price = read_price(row)
    return ProviderModel(
        name,
        _count(row.get("max_input_tokens")),
        price.input_usd,
        price.output_usd,
        _flag(row.get("supports_function_calling")),
        _flag(row.get("supports_response_schema")),
        _flag(row.get("supports_vision")),
        _flag(row.get("supports_reasoning")),
    )


async def _ask_server(provider: StoredProvider, env: Mapping[str, str]) -> Sequence[ProviderModel] | str:
    """Return the models that a server lists, or what went wrong."""
    _, endpoint = resolve_stored_endpoint(EngineConfig(engine="litellm", model=f"{provider.name}/any"), provider, env)
    if isinstance(endpoint, EngineFailure):
        return endpoint.message.removeprefix("model: ")
    base = endpoint.api_base or _LIST_ADDRESSES.get(provider.litellm_provider, "")
    if not base:
        return f"Offing does not know where {provider.litellm_provider} lists its models."
    url = _list_url(base, provider.litellm_provider)
    body = await _fetch_json(url, endpoint)
    if isinstance(body, str):
        return f"{url} {body}"
    models = _parse_models(body)
    return f"{url} did not answer with a list of models." if models is None else models


def _list_url(base: str, litellm_provider: str) -> str:
    address = base.rstrip("/")
    if litellm_provider in ("ollama", "ollama_chat"):
        return address.removesuffix("/v1") + MODEL_LIST_PATHS["ollama_chat"]
    return f"{address}/models"


async def _fetch_json(url: str, endpoint: EngineEndpoint) -> Any | str:
    """Return the JSON at an address, or what went wrong. A redirect is not followed, because it would get the key."""
    has_key = endpoint.api_key not in ("", PLACEHOLDER_KEY)
    headers = {"authorization": f"Bearer {endpoint.api_key}"} if has_key else {}
    try:
        async with (
            asyncio.timeout(LIST_SECONDS),
            httpx.AsyncClient(
                timeout=LIST_SECONDS, trust_env=False, follow_redirects=False, verify=load_ssl_context()
            ) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            if response.status_code in (401, 403):
                return "rejected the key."
            if response.status_code != 200:
                return f"answered with HTTP status {response.status_code}."
            content = bytearray()
            async for part in response.aiter_bytes():
                content += part
                if len(content) > MAX_LIST_BYTES:
                    return f"answered with more than {MAX_LIST_BYTES // 1_000_000} MB."
    except TimeoutError:
        return f"did not answer within {LIST_SECONDS:g} seconds."
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"cannot be reached: {type(error).__name__}."
    try:
        return json.loads(content)
    except ValueError:
        return "did not answer with JSON."


def _parse_models(body: Any) -> Sequence[ProviderModel] | None:
    """Return the models of a list as OpenAI's API or Ollama has it. `None` means another format."""
    match body:
        case {"data": [*rows]} | {"models": [*rows]}:
            pass
        case _:
            return None
    models: dict[str, ProviderModel] = {}
    for row in rows:
        match row:
            case {"id": str(name)} | {"name": str(name)} if 0 < len(name) <= 300 and _can_chat(row):
                context = _count(row.get("max_model_len")) or _count(row.get("context_length"))
                models[name] = ProviderModel(name, context)
            case _:
                pass
    return list(models.values())


def _can_chat(row: Mapping[str, Any]) -> bool:
    """Return whether a model may answer a role. Some servers name the kind of each model."""
    kind = row.get("type") or row.get("mode")
    return not isinstance(kind, str) or kind in CHAT_MODES | {"language", "llm", "vlm", "model", "text"}


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
