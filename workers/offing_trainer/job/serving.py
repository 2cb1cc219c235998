"""A version on servers that speak vLLM's wire: loaded everywhere, seen everywhere, then the pointer, then the old one.

The only home of that order. Names are NAME@VERSION and never used again, so that no server can answer with other
weights under a name that a run was promised. A server that cannot load leaves the pointer where it was.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

import orjson

from offing.core.errors import Conflict, Unavailable
from offing.models.credentials import Destination
from offing.models.policy_http import get, post
from offing.models.role_call import Refusal

SECONDS = 120.0
"""For a server to load an adapter."""

LOOKS = 20

LOOK_SECONDS = 0.25
"""Between looks at what a server has."""


async def published(
    replicas: Sequence[Destination],
    policy: str,
    folder: Path,
    flip: Callable[[], Awaitable[None]],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Load an adapter on every replica, and `flip` when each of them lists it.

    Raises Conflict and Unavailable before `flip`; what was loaded by then stays, unused, under a name of its own.
    """
    await asyncio.gather(*(_load(replica, policy, folder) for replica in replicas))
    await asyncio.gather(*(_listed(replica, policy, sleep) for replica in replicas))
    await flip()


async def withdrawn(replicas: Sequence[Destination], policies: Collection[str]) -> None:
    """Unload versions that no run needs any more, where they are loaded. Raises Unavailable."""
    for replica in replicas:
        for policy in [name for name in await models(replica) if name in policies]:
            answer = await post(replica, "/v1/unload_lora_adapter", {"lora_name": policy}, SECONDS)
            if isinstance(answer, Refusal) and policy in await models(replica):
                raise Unavailable(f"{replica.api_base} did not unload {policy}: {answer.message}")


async def models(replica: Destination) -> tuple[str, ...]:
    """What a replica has now. Raises Unavailable."""
    answer = await get(replica, "/v1/models", SECONDS)
    if isinstance(answer, Refusal):
        raise Unavailable(f"{replica.api_base} does not say what it has: {answer.message}")
    return tuple(str(model["id"]) for model in orjson.loads(answer)["data"])


async def _load(replica: Destination, policy: str, folder: Path) -> None:
    if policy in await models(replica):
        return
    body = {"lora_name": policy, "lora_path": str(folder)}
    answer = await post(replica, "/v1/load_lora_adapter", body, SECONDS)
    if isinstance(answer, Refusal) and policy not in await models(replica):
        remedy = "Start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 and --enable-lora, and let it see the folder."
        raise Conflict(f"{replica.api_base} did not load {policy}: {answer.message}.", remedy)


async def _listed(replica: Destination, policy: str, sleep: Callable[[float], Awaitable[None]]) -> None:
    for _ in range(LOOKS):
        if policy in await models(replica):
            return
        await sleep(LOOK_SECONDS)
    raise Unavailable(f"{replica.api_base} took {policy} and does not list it.")
