"""An engine told of weights: a version is loaded, and known for what it is, before anybody is sent to it.

The only home of that order. A version has a name of its own, so that nothing an engine keeps of another one can answer
for it; what is not needed any more is unloaded last.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from offing.core.errors import Conflict, Unavailable
from offing.core.model import FailureKind
from offing.models.credentials import Destination
from offing.models.policy_http import get, post
from offing.models.role_call import Refusal
from offing.storage.policy_versions import VersionRow

SECONDS = 120.0
"""For large weights from a slow disk."""

LOAD = "/v1/load_policy"

MODELS = "/v1/models"

LOOKS = 120

LOOK_SECONDS = 0.25
"""Between questions to an engine that is busy with a version."""

KEPT = 2
"""Versions of a job that stay loaded: the present one, and the one that the last rollouts may still use."""


@dataclass(slots=True)
class OurEngine:
    """One `offing engine serve`, and the versions that this process had it load."""

    to: Destination
    needed: Callable[[str], Awaitable[bool]] | None = None
    """Whether somebody's run was promised a version, NAME@VERSION: another command of the home may use the engine, too.
    None: nobody else does."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _loaded: deque[str] = field(default_factory=deque[str])

    async def __call__(self, version: VersionRow) -> None:
        """Returns when the version answers; asked again, when it still does, or does so again.

        Raises Unavailable for an engine that is away, and Conflict for one that cannot serve these very files.
        """
        name = version.label
        if name in self._loaded and await self._has(version):
            return
        _refuse_other(version, orjson.loads(await self._load({"name": name, "path": version.uri})))
        self._loaded = deque([*(known for known in self._loaded if known != name), name])
        for old in list(self._loaded)[:-KEPT]:
            if self.needed is None or not await self.needed(old):
                await self._said("/v1/unload_policy", {"name": old})
                self._loaded.remove(old)

    async def _has(self, version: VersionRow) -> bool:
        """Whether an engine that had the version has it now. False: it was started anew, or is being started."""
        found = await get(self.to, MODELS, SECONDS)
        listed: list[dict[str, Any]] = [] if isinstance(found, Refusal) else orjson.loads(found)["data"]
        return any(card["id"] == version.label for card in listed)

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


def _refuse_other(version: VersionRow, card: Mapping[str, Any]) -> None:
    """Raises Conflict when the engine serves anything else under the version's name."""
    for what in ("weights", "tokenizer", "template"):
        registered = version.sha256 if what == "weights" else getattr(version, f"{what}_sha256")
        if registered and card.get(f"{what}_sha256") != registered:
            remedy = "Put its files back as they were registered, and start the engine anew."
            raise Conflict(f"The policy engine serves another {what} as {version.label}, from {version.uri}.", remedy)


def _answered(path: str, found: bytes | Refusal) -> bytes:
    if isinstance(found, Refusal):
        told = f"The policy engine refused {path}: {found.message}"
        if found.kind is FailureKind.BAD_REQUEST:
            raise Conflict(told, "Mend that, or use another version.")
        raise Unavailable(told)
    return found
