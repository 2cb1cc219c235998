"""Deployment of a version to vLLM servers: load on all, check on all, activate, unload the old one.

Names are NAME@VERSION and never reused, so no server can answer with other weights under a name
that a run is pinned to. If a server cannot load the version, the active version stays.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

import orjson

from offing.core.errors import Conflict, Unavailable
from offing.models.credentials import EngineEndpoint
from offing.models.policy_http import get_json, post_json
from offing.models.role_call import AttemptFailure

TIMEOUT_SECONDS = 120.0
"""How long a server may take to load an adapter."""

MAX_POLLS = 20

POLL_SECONDS = 0.25
"""Delay between checks of a server's models."""


async def deploy_adapter(
    replicas: Sequence[EngineEndpoint],
    policy: str,
    folder: Path,
    on_deployed: Callable[[], Awaitable[None]],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Load an adapter on every replica, and call `on_deployed` when all of them list it.

    Raises Conflict or Unavailable before that call. An adapter that was loaded stays loaded but unused.
    """
    await asyncio.gather(*(_load(replica, policy, folder) for replica in replicas))
    await asyncio.gather(*(_wait_until_listed(replica, policy, sleep) for replica in replicas))
    await on_deployed()


async def undeploy(replicas: Sequence[EngineEndpoint], policies: Collection[str]) -> None:
    """Unload versions that no run needs, on all replicas. Raises Unavailable."""
    for replica in replicas:
        for policy in [name for name in await list_models(replica) if name in policies]:
            answer = await post_json(replica, "/v1/unload_lora_adapter", {"lora_name": policy}, TIMEOUT_SECONDS)
            if isinstance(answer, AttemptFailure) and policy in await list_models(replica):
                raise Unavailable(f"{replica.api_base} did not unload {policy}: {answer.message}")


async def list_models(replica: EngineEndpoint) -> tuple[str, ...]:
    """Return the models that a replica serves. Raises Unavailable."""
    answer = await get_json(replica, "/v1/models", TIMEOUT_SECONDS)
    if isinstance(answer, AttemptFailure):
        raise Unavailable(f"{replica.api_base} did not list its models: {answer.message}")
    return tuple(str(model["id"]) for model in orjson.loads(answer)["data"])


async def _load(replica: EngineEndpoint, policy: str, folder: Path) -> None:
    if policy in await list_models(replica):
        return
    body = {"lora_name": policy, "lora_path": str(folder)}
    answer = await post_json(replica, "/v1/load_lora_adapter", body, TIMEOUT_SECONDS)
    if isinstance(answer, AttemptFailure) and policy not in await list_models(replica):
        remedy = "Start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 and --enable-lora, and give it access to the folder."
        raise Conflict(f"{replica.api_base} did not load {policy}: {answer.message}.", remedy)


async def _wait_until_listed(replica: EngineEndpoint, policy: str, sleep: Callable[[float], Awaitable[None]]) -> None:
    for _ in range(MAX_POLLS):
        if policy in await list_models(replica):
            return
        await sleep(POLL_SECONDS)
    raise Unavailable(f"{replica.api_base} loaded {policy} but does not list it.")
