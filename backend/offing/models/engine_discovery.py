"""Discovery of engines: which are available, and which one a role uses by default.

It reads the names of environment variables, the price list on disk, and, on request, servers on
this machine. It never reads the value of a key and does not import litellm.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from offing import environment
from offing.core.errors import InvalidInput, Unavailable
from offing.core.model import EngineConfig, EngineFailure, parse_engine
from offing.models.credentials import (
    ENGINE_KEY_VARIABLE,
    ENGINE_URL_VARIABLE,
    KEY_VARIABLES,
    LOCAL_API_BASES,
    EngineEndpoint,
    list_provider_bases,
    render_accept_remedy,
    resolve_endpoint,
)
from offing.models.engine import ENGINES
from offing.models.model_limits import find_limit_problem
from offing.models.model_table import read_model_rows

DEFAULT_ENGINE_VARIABLE = "OFFING_DEFAULT_ENGINE"
"""Environment variable with the engine of roles without their own variable, in the syntax of
`parse_engine`.
"""

MODEL_LIST_PATHS = {
    "ollama_chat": "/api/tags",
    "hosted_vllm": "/v1/models",
    "llamafile": "/v1/models",
    "lm_studio": "/v1/models",
}
"""Local model servers, with the paths that list their models. llama.cpp's server is found as `llamafile`."""
SERVER_PROGRAMS = {
    "ollama_chat": "Ollama",
    "hosted_vllm": "vLLM",
    "llamafile": "llama.cpp or llamafile",
    "lm_studio": "LM Studio",
}
"""The programs that usually answer at the default addresses of local model servers."""
_POLICY_LIST_PATH = "/v1/models"


OWN_ENGINES = frozenset({"extractive", "litellm", "own", "policy", "rules", "scripted"})
"""Engines of Offing. `own` answers for graphs that bring a model along. The last two are for synthetic worlds and
tests. These three are not listed.
"""


@dataclass(frozen=True, slots=True)
class DiscoveredEngine:
    """Engine that may be available."""

    name: str
    """`extractive`, `policy`, or `litellm:PROVIDER`, such as `litellm:openai`."""
    available: bool
    models: tuple[str, ...] = ()
    """Values for `EngineConfig.model`. Empty if the engine has no models or they are unknown."""
    note: str = ""
    offered_at: str = ""
    """URL of a running server that the operator has not accepted. Empty if there is none."""


async def discover_engines(env: Mapping[str, str] = environment.VARIABLES) -> tuple[DiscoveredEngine, ...]:
    """Return all engines, including those that only lack a key or a URL.

    The policy engine and local model servers are probed.
    """
    listed, policy, servers = await asyncio.gather(
        asyncio.to_thread(list_configured_engines, env), probe_policy_engine(env), probe_model_servers(env)
    )
    return (*listed, policy, *servers, *list_third_party_engines())


def list_configured_engines(env: Mapping[str, str]) -> tuple[DiscoveredEngine, ...]:
    """Return the extractive engine and each provider with or without its key. No server is contacted."""
    extractive = DiscoveredEngine(
        "extractive", True, note="Quotes and cites your documents. No language model, no key, no cost."
    )
    return (extractive, *(_describe_provider(name, key, env) for name, key in KEY_VARIABLES.items()))


def list_third_party_engines() -> tuple[DiscoveredEngine, ...]:
    """Return the engines that other packages and folders register, without importing them."""
    named = (name for name in ENGINES if name not in OWN_ENGINES)
    return tuple(DiscoveredEngine(name, True, note=f"Registered by {ENGINES.get_owner(name)}.") for name in named)


async def probe_policy_engine(env: Mapping[str, str], timeout_seconds: float = 0.5) -> DiscoveredEngine:
    """Probe the configured policy engine for at most `timeout_seconds` and return it with its versions."""
    from offing.models.policy_http import get_json
    from offing.models.role_call import AttemptFailure

    url = env.get(ENGINE_URL_VARIABLE, "").strip()
    if not url:
        return DiscoveredEngine(
            "policy", False, note=f"To use it, start `offing engine serve` and set {ENGINE_URL_VARIABLE}."
        )
    raw = await get_json(EngineEndpoint(url, env.get(ENGINE_KEY_VARIABLE, "")), _POLICY_LIST_PATH, timeout_seconds)
    if isinstance(raw, AttemptFailure):
        reason = (
            "It runs while there are policies to serve."
            if url.startswith("unix:")
            else f"{ENGINE_URL_VARIABLE} is set."
        )
        return DiscoveredEngine("policy", False, note=f"{reason} {raw.message}")
    model_list = _parse_model_list(raw)
    if model_list is None:
        return DiscoveredEngine(
            "policy", False, note=f"{ENGINE_URL_VARIABLE} is set, but the server at this URL is not a policy engine."
        )
    return DiscoveredEngine("policy", True, tuple(_model_names(model_list)), f"Responds at {url}.")


def describe_policy_engine(url: str, key: str) -> str:
    """Describe the versions of the policy engine at a URL.

    Raises Unavailable with the reason if there are none.
    """
    engine = asyncio.run(probe_policy_engine({ENGINE_URL_VARIABLE: url, ENGINE_KEY_VARIABLE: key}, 3.0))
    if not engine.available:
        raise Unavailable(engine.note)
    return ", ".join(engine.models) or "responds, but has no versions"


async def probe_model_servers(env: Mapping[str, str], timeout_seconds: float = 0.5) -> tuple[DiscoveredEngine, ...]:
    """Probe model servers on this machine and at configured URLs for at most `timeout_seconds`.

    A server that is not accepted is reported without its models.
    """
    probed = await asyncio.gather(*(_probe_server(name, env, timeout_seconds) for name in MODEL_LIST_PATHS))
    return tuple(server for server in probed if server is not None)


def default_engine_config(env: Mapping[str, str] = environment.VARIABLES) -> EngineConfig:
    """Return the engine config of OFFING_DEFAULT_ENGINE, by default extractive. Raises InvalidInput."""
    text = env.get(DEFAULT_ENGINE_VARIABLE, "").strip()
    return parse_engine_config(text, DEFAULT_ENGINE_VARIABLE) if text else EngineConfig()


def role_engine_configs(env: Mapping[str, str] = environment.VARIABLES) -> dict[str, EngineConfig]:
    """Return the engine configs of OFFING_ENGINE_FOR_<ROLE> by role name in lower case.

    Raises InvalidInput that names the invalid variable.
    """
    prefix = "OFFING_ENGINE_FOR_"
    named = {name: text.strip() for name, text in env.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix).lower(): parse_engine_config(text, name) for name, text in named.items() if text}


def parse_engine_config(text: str, field: str) -> EngineConfig:
    """Parse `text` as an engine config. Raises InvalidInput that names `field`, an option or a variable."""
    remedy = "Use extractive, litellm:provider/model, litellm:provider/model@temperature or policy:NAME@VERSION."
    try:
        engine_config = parse_engine(text)
    except InvalidInput as error:
        raise InvalidInput(field, f"{error.field}: {error.problem}", error.remedy) from error
    if engine_config.engine not in ENGINES:
        raise InvalidInput(field, f"there is no engine {engine_config.engine!r}", remedy)
    if engine_config.engine == "litellm" and not engine_config.model:
        raise InvalidInput(field, "the litellm engine needs a model", remedy)
    if engine_config.engine == "policy" and not re.fullmatch(r".+@.+", engine_config.model):
        raise InvalidInput(field, "a policy needs a version", remedy)
    if (contradiction := find_limit_problem(engine_config)) is not None:
        raise InvalidInput(field, f"{contradiction.field}: {contradiction.problem}", contradiction.remedy)
    return engine_config


def _describe_provider(name: str, key: str, env: Mapping[str, str]) -> DiscoveredEngine:
    if not env.get(key):
        return DiscoveredEngine(f"litellm:{name}", False, note=f"To use it, set {key}.")
    return DiscoveredEngine(f"litellm:{name}", True, list_priced_models().get(name, ()), f"{key} is set.")


@cache
def list_priced_models() -> Mapping[str, tuple[str, ...]]:
    """Return chat models by provider from litellm's price list. Empty if the list is not found."""
    models_by_provider: dict[str, list[str]] = {}
    for model, row in read_model_rows():
        provider = str(row.get("litellm_provider", ""))
        if row.get("mode") == "chat" and provider in KEY_VARIABLES and not model.startswith("ft:"):
            models_by_provider.setdefault(provider, []).append(
                model if model.startswith(f"{provider}/") else f"{provider}/{model}"
            )
    return {provider: tuple(sorted(set(models))) for provider, models in models_by_provider.items()}


async def _probe_server(name: str, env: Mapping[str, str], timeout_seconds: float) -> DiscoveredEngine | None:
    import httpx

    from offing.certificates import load_ssl_context

    base = [*list_provider_bases(name, env), LOCAL_API_BASES[name]][0].removesuffix("/").removesuffix("/v1")
    try:
        async with httpx.AsyncClient(
            timeout=timeout_seconds, trust_env=False, follow_redirects=False, verify=load_ssl_context()
        ) as client:
            body: Any = (await client.get(base + MODEL_LIST_PATHS[name])).raise_for_status().json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return None
    models = _model_names(body)
    if isinstance(resolve_endpoint(EngineConfig(engine="litellm", model=f"{name}/any"), env), EngineFailure):
        description = f"A server responds at {base}, but runs may not use it yet. {render_accept_remedy(base)}"
        return DiscoveredEngine(f"litellm:{name}", False, note=description, offered_at=base) if models else None
    return DiscoveredEngine(
        f"litellm:{name}", True, tuple(f"{name}/{model}" for model in models), f"Responds at {base}."
    )


def _parse_model_list(raw: bytes) -> Any | None:
    """Parse a list of models in OpenAI's format. `None` means another format."""
    try:
        body: Any = json.loads(raw)
    except ValueError:
        return None
    match body:
        case {"data": [*_]}:
            return body
        case _:
            return None


def _model_names(body: Any) -> Sequence[str]:
    """Return the names in Ollama's or OpenAI's list of models. Empty for another format."""
    match body:
        case {"models": [*rows]} | {"data": [*rows]}:
            names: list[Any] = [row.get("name") or row.get("id") for row in rows if isinstance(row, dict)]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            return [name for name in names if isinstance(name, str)]
        case _:
            return ()
