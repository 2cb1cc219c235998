"""Pauses of endpoints: a Retry-After that one call receives holds for all calls of this process.

A rate limit holds for the model that met it, because providers count requests and tokens per model. An overload
holds for all models of the endpoint. Pauses belong to the event loop in which the calls run.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from offing.core.model import FailureKind
from offing.models.credentials import EngineEndpoint

RELEASE_INTERVAL_SECONDS = 0.05
"""Seconds between two calls that continue after a pause. They continue in the order in which they came."""
PAUSING_FAILURES = frozenset({FailureKind.RATE_LIMITED, FailureKind.OVERLOADED})


@dataclass(frozen=True, slots=True)
class EndpointId:
    """Identity of an endpoint within this process: provider, API base and key, without the key itself."""

    provider: str
    api_base: str
    key_sha256: str = field(repr=False)
    """Empty means the key that litellm finds in the environment."""


def identify_endpoint(model: str, endpoint: EngineEndpoint) -> EndpointId:
    """Return the identity of the endpoint at which a model is called, by litellm's name of the model."""
    key = endpoint.api_key
    return EndpointId(
        model.partition("/")[0], endpoint.api_base.rstrip("/"), hashlib.sha256(key.encode()).hexdigest() if key else ""
    )


@dataclass(slots=True)
class Pause:
    """Time until which calls wait."""

    until: float
    kind: FailureKind
    waiting: int = 0
    """Number of calls that have taken a turn after the pause."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A call that is not sent, because the pause of its endpoint is too long for it."""

    kind: FailureKind
    seconds: float
    """Seconds until the pause ends."""


@dataclass(frozen=True, slots=True)
class EndpointPauses:
    """Pauses of the endpoints that an event loop calls."""

    _pauses: dict[tuple[EndpointId, str], Pause] = field(default_factory=dict[tuple[EndpointId, str], Pause])

    def start_pause(self, endpoint: EndpointId, model: str, kind: FailureKind, seconds: float, now: float) -> None:
        """Let calls wait for the seconds of a Retry-After. A pause that ends later is kept."""
        for key in [key for key, pause in self._pauses.items() if pause.until <= now]:
            del self._pauses[key]
        key = (endpoint, model if kind is FailureKind.RATE_LIMITED else "")
        pause = self._pauses.get(key)
        if pause is None or pause.until < now + seconds:
            self._pauses[key] = Pause(now + seconds, kind)

    def find_pause(self, endpoint: EndpointId, model: str, now: float) -> Pause | None:
        """Return the pause of a model or its endpoint that ends last. `None` means that there is none."""
        pauses = [self._pauses[key] for key in ((endpoint, model), (endpoint, "")) if key in self._pauses]
        return max((one for one in pauses if one.until > now), key=lambda one: one.until, default=None)


_BY_LOOP: WeakKeyDictionary[asyncio.AbstractEventLoop, EndpointPauses] = WeakKeyDictionary()


def get_pauses() -> EndpointPauses:
    """Return the pauses of the running event loop."""
    return _BY_LOOP.setdefault(asyncio.get_running_loop(), EndpointPauses())


@dataclass(frozen=True, slots=True)
class EndpointGate:
    """The pauses of one endpoint, as one role call sees them."""

    endpoint: EndpointId
    model: str
    pauses: EndpointPauses
    sleep: Callable[[float], Awaitable[None]]
    clock: Callable[[], float]

    def note_failure(self, kind: FailureKind, retry_after: float | None) -> None:
        """Start a pause if the provider of a failed attempt asked for one."""
        if kind in PAUSING_FAILURES and retry_after:
            self.pauses.start_pause(self.endpoint, self.model, kind, retry_after, self.clock())

    def is_paused(self) -> bool:
        """Return whether calls must wait now."""
        return self.pauses.find_pause(self.endpoint, self.model, self.clock()) is not None

    async def wait(self, max_pause_seconds: float, remaining_seconds: float) -> HeldBack | None:
        """Wait until the endpoint is not paused.

        The call is held back at once if the pause is longer than `max_pause_seconds`, or if the call would not
        continue before its deadline in `remaining_seconds`.
        """
        deadline = self.clock() + remaining_seconds
        while (pause := self.pauses.find_pause(self.endpoint, self.model, now := self.clock())) is not None:
            turn = pause.until + pause.waiting * RELEASE_INTERVAL_SECONDS
            if pause.until - now > max_pause_seconds or turn >= deadline:
                return HeldBack(pause.kind, pause.until - now)
            pause.waiting += 1
            await self.sleep(turn - now)
        return None
