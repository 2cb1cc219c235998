"""An engine told of weights: a version is loaded, and known for what it is, before anybody is sent to it.

The only home of that order. A version has a name of its own, so that nothing an engine keeps of another one can answer
for it; what is not needed any more is unloaded last.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from offing.core.errors import Unavailable
from offing.core.model import FailureKind
from offing.models.credentials import Destination
from offing.models.policy_http import post
from offing.models.role_call import Refusal
from offing.storage.policy_versions import VersionRow

SECONDS = 120.0
"""For large weights from a slow disk."""

LOAD = "/v1/load_policy"

LOOKS = 120

LOOK_SECONDS = 0.25
"""Between questions to an engine that is busy with a version."""

KEPT = 2
"""Versions of a job that stay loaded: the present one, and the one that the last rollouts may still use."""


@dataclass(slots=True)
class OurEngine:
    """One `offing engine serve`, and the versions that this process had it load."""

    to: Destination
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _loaded: deque[str] = field(default_factory=deque[str])

    async def __call__(self, version: VersionRow) -> None:
        """Returns when the version answers. Raises Unavailable when it cannot be made to."""
        name = f"{version.name}@{version.version}"
        if name in self._loaded:
            return
        card = orjson.loads(await self._load({"name": name, "path": version.uri}))
        if card.get("weights_sha256") != version.sha256:
            raise Unavailable(f"The policy engine serves other weights as {name}. Unload them first.")
        self._loaded.append(name)
        while len(self._loaded) > KEPT:
            await self._said("/v1/unload_policy", {"name": self._loaded.popleft()})

    async def _load(self, body: dict[str, Any]) -> bytes:
        """Asked again while the engine is busy with the name: one that watches its folder loads what appears there."""
        for _ in range(LOOKS):
            found = await post(self.to, LOAD, body, SECONDS)
            if not isinstance(found, Refusal) or found.kind is not FailureKind.OVERLOADED:
                return _answered(LOAD, found)
            await self.sleep(LOOK_SECONDS)
        return await self._said(LOAD, body)

    async def _said(self, path: str, body: dict[str, Any]) -> bytes:
        return _answered(path, await post(self.to, path, body, SECONDS))


def _answered(path: str, found: bytes | Refusal) -> bytes:
    if isinstance(found, Refusal):
        raise Unavailable(f"The policy engine refused {path}: {found.message}")
    return found
