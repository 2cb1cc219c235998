"""Which engines are usable here, and which one a role gets when a run names none.

Looks at names in an environment, at the price list on disk, and, only when asked, at servers on this machine. Never at
a key's value. Imports no litellm.
"""

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from offing.core.errors import InvalidInput, Unavailable
from offing.core.model import EngineChoice, EngineFailure, parse_engine
from offing.models.accepted import SERVERS
from offing.models.credentials import (
    ADDRESSES,
    ENGINE_KEY,
    ENGINE_URL,
    KEYS,
    LOCAL,
    Destination,
    accept_remedy,
    destination,
    named_bases,
)
from offing.models.engine import ENGINES

DEFAULT = "OFFING_ENGINE"
"""Environment: the engine of roles that have no variable of their own, in the form of `parse_engine`."""

LISTS = {"ollama_chat": "/api/tags", "hosted_vllm": "/v1/models"}
"""Servers that often run beside us, and where they list their models."""
_POLICIES = "/v1/models"
_NO_ROLES = frozenset({ADDRESSES, ENGINE_URL, ENGINE_KEY, SERVERS})


@dataclass(frozen=True, slots=True)
class EngineFound:
    """An engine as far as can be known without asking it anything."""

    name: str
    """`extractive`, `policy`, or `litellm` with the provider: `litellm:openai`."""
    available: bool
    models: tuple[str, ...] = ()
    """As `EngineChoice.model` has them. Empty: it takes none, or nobody knows."""
    note: str = ""
    offered_at: str = ""
    """Where a server answers that the operator has not accepted yet. Empty: none does."""


async def engines(env: Mapping[str, str] = os.environ) -> tuple[EngineFound, ...]:
    """All that can be used here, the policy engine and model servers on this machine included, and what only lacks a
    key or an address."""
    listed, policy, servers = await asyncio.gather(
        asyncio.to_thread(engines_here, env), policy_here(env), servers_here(env)
    )
    return (*listed, policy, *servers)


def engines_here(env: Mapping[str, str]) -> tuple[EngineFound, ...]:
    """The extractive engine, and each provider with or without its key. Asks nobody."""
    extractive = EngineFound(
        "extractive", True, note="Quotes and cites your documents. No language model, no key, no cost."
    )
    return (extractive, *(_provider(name, key, env) for name, key in KEYS.items()))


async def policy_here(env: Mapping[str, str], seconds: float = 0.5) -> EngineFound:
    """The policy engine that the environment names: whether it answers within `seconds`, and the versions it has."""
    from offing.models.policy_http import get
    from offing.models.role_call import Refusal

    where = env.get(ENGINE_URL, "").strip()
    if not where:
        return EngineFound("policy", False, note=f"Start `offing engine serve`, and set {ENGINE_URL} to use it.")
    raw = await get(Destination(where, env.get(ENGINE_KEY, "")), _POLICIES, seconds)
    if isinstance(raw, Refusal):
        why = "It runs while there are policies to serve." if where.startswith("unix:") else f"{ENGINE_URL} is set."
        return EngineFound("policy", False, note=f"{why} {raw.message}")
    listed = _listed(raw)
    if listed is None:
        return EngineFound("policy", False, note=f"{ENGINE_URL} is set, and what answers there is no policy engine.")
    return EngineFound("policy", True, tuple(_model_names(listed)), f"Answers at {where}.")


def policy_answers(url: str, key: str) -> str:
    """The versions that the policy engine at an address has, for people. Raises Unavailable with why it has none."""
    found = asyncio.run(policy_here({ENGINE_URL: url, ENGINE_KEY: key}, 3.0))
    if not found.available:
        raise Unavailable(found.note)
    return ", ".join(found.models) or "answers, and has no version"


async def servers_here(env: Mapping[str, str], seconds: float = 0.5) -> tuple[EngineFound, ...]:
    """Model servers that answer on this machine, or where the environment says, within `seconds`.

    One that the operator has not accepted is offered, and nothing of what it says is passed on.
    """
    found = await asyncio.gather(*(_server(name, env, seconds) for name in LISTS))
    return tuple(one for one in found if one is not None)


def default_choice(env: Mapping[str, str] = os.environ) -> EngineChoice:
    """OFFING_ENGINE, else extractive. Raises `InvalidInput` for an unusable value."""
    text = env.get(DEFAULT, "").strip()
    return engine_named(text, DEFAULT) if text else EngineChoice()


def role_choices(env: Mapping[str, str] = os.environ) -> dict[str, EngineChoice]:
    """OFFING_ENGINE_<ROLE> by role name in lower case. Raises `InvalidInput` that names an unusable variable."""
    prefix = f"{DEFAULT}_"
    named = {name: text.strip() for name, text in env.items() if name.startswith(prefix) and name not in _NO_ROLES}
    return {name.removeprefix(prefix).lower(): engine_named(text, name) for name, text in named.items() if text}


def engine_named(text: str, field: str) -> EngineChoice:
    """`text` as a choice. Raises `InvalidInput` that names `field`, for a flag or a variable alike."""
    remedy = "Write extractive, litellm:provider/model, litellm:provider/model@temperature or policy:NAME@VERSION."
    choice = parse_engine(text)
    if choice.engine not in ENGINES:
        raise InvalidInput(field, f"there is no engine {choice.engine!r}", remedy)
    if choice.engine == "litellm" and not choice.model:
        raise InvalidInput(field, "the litellm engine needs a model", remedy)
    if choice.engine == "policy" and not re.fullmatch(r".+@.+", choice.model):
        raise InvalidInput(field, "a policy is named with its version", remedy)
    return choice


def _provider(name: str, key: str, env: Mapping[str, str]) -> EngineFound:
    if not env.get(key):
        return EngineFound(f"litellm:{name}", False, note=f"Set {key} to use it.")
    return EngineFound(f"litellm:{name}", True, listed_models().get(name, ()), f"{key} is set.")


@cache
def listed_models() -> Mapping[str, tuple[str, ...]]:
    """Chat models by provider, from the price list that comes with litellm. Empty when it cannot be found."""
    spec = find_spec("litellm")
    folders = spec.submodule_search_locations if spec else None
    path = Path(folders[0], "model_prices_and_context_window_backup.json") if folders else None
    if path is None or not path.is_file():
        return {}
    rows: dict[str, dict[str, Any]] = json.loads(path.read_bytes())
    found: dict[str, list[str]] = {}
    for model, row in rows.items():
        provider = str(row.get("litellm_provider", ""))
        if row.get("mode") == "chat" and provider in KEYS and not model.startswith("ft:"):
            found.setdefault(provider, []).append(model if model.startswith(f"{provider}/") else f"{provider}/{model}")
    return {provider: tuple(sorted(set(models))) for provider, models in found.items()}


async def _server(name: str, env: Mapping[str, str], seconds: float) -> EngineFound | None:
    import httpx

    base = [*named_bases(name, env), LOCAL[name]][0].removesuffix("/").removesuffix("/v1")
    try:
        async with httpx.AsyncClient(timeout=seconds, trust_env=False, follow_redirects=False) as client:
            body: Any = (await client.get(base + LISTS[name])).raise_for_status().json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return None
    models = _model_names(body)
    if isinstance(destination(EngineChoice(engine="litellm", model=f"{name}/any"), env), EngineFailure):
        note = f"A server answers at {base}, and runs may not ask it yet. {accept_remedy(base)}"
        return EngineFound(f"litellm:{name}", False, note=note, offered_at=base) if models else None
    return EngineFound(f"litellm:{name}", True, tuple(f"{name}/{model}" for model in models), f"Answers at {base}.")


def _listed(raw: bytes) -> Any | None:
    """A list of models in OpenAI's style. None: something else."""
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
    """Names in Ollama's list or in an OpenAI-style one. Empty: neither."""
    match body:
        case {"models": [*rows]} | {"data": [*rows]}:
            names: list[Any] = [row.get("name") or row.get("id") for row in rows if isinstance(row, dict)]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            return [name for name in names if isinstance(name, str)]
        case _:
            return ()
