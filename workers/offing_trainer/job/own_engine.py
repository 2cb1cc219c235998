"""An engine told of weights: a version is loaded, and known for what it is, before anybody is sent to it.

The only home of that order. A version has a name of its own, so that nothing an engine keeps of another one can answer
for it; what is not needed any more is unloaded last.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import orjson

from offing.core.errors import Unavailable
from offing.models.credentials import Destination
from offing.models.policy_http import post
from offing.models.role_call import Refusal
from offing.storage.policy_versions import VersionRow

SECONDS = 120.0
"""For large weights from a slow disk."""

KEPT = 2
"""Versions of a job that stay loaded: the present one, and the one that the last rollouts may still use."""


@dataclass(slots=True)
class OurEngine:
    """One `offing engine serve`, and the versions that this process had it load."""

    to: Destination
    _loaded: deque[str] = field(default_factory=deque[str])

    async def __call__(self, version: VersionRow) -> None:
        """Returns when the version answers. Raises Unavailable when it cannot be made to."""
        name = f"{version.name}@{version.version}"
        if name in self._loaded:
            return
        card = orjson.loads(await self._said("/v1/load_policy", {"name": name, "path": version.uri}))
        if card.get("weights_sha256") != version.sha256:
            raise Unavailable(f"The policy engine serves other weights as {name}. Unload them first.")
        self._loaded.append(name)
        while len(self._loaded) > KEPT:
            await self._said("/v1/unload_policy", {"name": self._loaded.popleft()})

    async def _said(self, path: str, body: dict[str, Any]) -> bytes:
        found = await post(self.to, path, body, SECONDS)
        if isinstance(found, Refusal):
            raise Unavailable(f"The policy engine refused {path}: {found.message}")
        return found
