"""Deployment of versions to Offing's policy engine.

A version is loaded, and its hashes are checked, before requests are sent to it. Each version has
its own name, so an engine's cache of another version cannot answer for it. Versions that are no
longer needed are unloaded last.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from offing.core.errors import Conflict, Unavailable
from offing.core.model import FailureKind
from offing.models.credentials import EngineEndpoint
from offing.models.policy_http import get_json, post_json
from offing.models.role_call import AttemptFailure
from offing.storage.policy_versions import PolicyVersionRow

TIMEOUT_SECONDS = 120.0
"""Long enough for large weights on a slow disk."""

LOAD_PATH = "/v1/load_policy"

MODELS_PATH = "/v1/models"

MAX_POLLS = 120

POLL_SECONDS = 0.25
"""Delay between requests to an engine that is busy with a version."""

MAX_LOADED_VERSIONS = 2
"""Maximum number of a job's versions that stay loaded: the current one and the one before it.
The last rollouts may still use the older one.
"""


@dataclass(slots=True)
class ManagedEngine:
    """An `offing engine serve` process, with the versions that this process made it load."""

    endpoint: EngineEndpoint
    is_needed: Callable[[str], Awaitable[bool]] | None = None
    """Returns whether a run still needs a version, NAME@VERSION.
    Another command with the same data directory may use the engine too. `None` means that no other
    process uses it.
    """
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _loaded: deque[str] = field(default_factory=deque[str])

    async def __call__(self, version: PolicyVersionRow) -> None:
        """Load the version and return when the engine serves it. Repeated calls are safe.

        Raises Unavailable if the engine is unreachable, and Conflict if it cannot serve these files.
        """
        name = version.label
        if name in self._loaded and await self._is_loaded(version):
            return
        _check_served_hashes(version, orjson.loads(await self._load({"name": name, "path": version.uri})))
        self._loaded = deque([*(loaded for loaded in self._loaded if loaded != name), name])
        for old in list(self._loaded)[:-MAX_LOADED_VERSIONS]:
            if self.is_needed is None or not await self.is_needed(old):
                await self._post("/v1/unload_policy", {"name": old})
                self._loaded.remove(old)

    async def _is_loaded(self, version: PolicyVersionRow) -> bool:
        """Return whether the engine still has a version. `False` means that it was restarted."""
        response = await get_json(self.endpoint, MODELS_PATH, TIMEOUT_SECONDS)
        listed: list[dict[str, Any]] = [] if isinstance(response, AttemptFailure) else orjson.loads(response)["data"]
        return any(card["id"] == version.label for card in listed)

    async def _load(self, body: dict[str, Any]) -> bytes:
        """Load a version. Retry while the engine is busy with that name.

        An engine that watches its folder loads new versions on its own.
        """
        for _ in range(MAX_POLLS):
            response = await post_json(self.endpoint, LOAD_PATH, body, TIMEOUT_SECONDS)
            if not isinstance(response, AttemptFailure) or response.kind is not FailureKind.OVERLOADED:
                return _check_response(LOAD_PATH, response)
            await self.sleep(POLL_SECONDS)
        return await self._post(LOAD_PATH, body)

    async def _post(self, path: str, body: dict[str, Any]) -> bytes:
        return _check_response(path, await post_json(self.endpoint, path, body, TIMEOUT_SECONDS))


def _check_served_hashes(version: PolicyVersionRow, card: Mapping[str, Any]) -> None:
    """Raise Conflict if the engine serves other files under the version's name."""
    for what in ("weights", "tokenizer", "template"):
        registered = version.sha256 if what == "weights" else getattr(version, f"{what}_sha256")
        if registered and card.get(f"{what}_sha256") != registered:
            remedy = "Restore its files as they were registered, and restart the engine."
            raise Conflict(
                f"The policy engine serves {version.label} from {version.uri} with a different {what} hash.", remedy
            )


def _check_response(path: str, response: bytes | AttemptFailure) -> bytes:
    if isinstance(response, AttemptFailure):
        message = f"The policy engine rejected {path}: {response.message}"
        if response.kind is FailureKind.BAD_REQUEST:
            raise Conflict(message, "Fix the cause or use another version.")
        raise Unavailable(message)
    return response
