"""Interface between a role call and the engine that answers it.

An engine is imported when it is first created.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from pydantic import BaseModel

from offing import environment
from offing.core.errors import InvalidInput
from offing.core.model import EngineConfig, EngineFailure, EngineResponse, FailureKind, Message, Usage
from offing.core.run import StopReason
from offing.models.stored_provider import FindProvider, find_no_provider
from offing.registry import Group, Registry
from offing.sdk.role import Role

PrefixLookup = Callable[[Sequence[Message]], Awaitable[tuple[int, ...] | None]]
"""Finds the token ids of an earlier role call of the run, as the prefix of a new prompt: its prompt,
then its completion with its turn ending. Returns `None` if they are unknown or the earlier prompt
was different, for example because memory was edited.
"""


class UsageMeter(Protocol):
    """Budget of one run for one role call. Reservations of one call never overlap."""

    async def reserve(self, max_tokens: int, max_cost_usd: Decimal) -> StopReason | None:
        """Reserve the maximum usage of an attempt.

        Return `None` if it was reserved, or the limit that prevents it. If this call is cancelled, nothing
        is reserved.
        """
        ...

    async def settle(self, usage: Usage) -> None:
        """Release the reservation and charge the usage of the attempt.

        The usage is zero if the provider did not bill the attempt.
        """
        ...


class TextListener(Protocol):
    """Receives the text of a role call while it is written. Its methods return immediately and never raise."""

    async def begin_attempt(self, number: int) -> None:
        """Start an attempt, from 1. Text of an earlier attempt is lost."""
        ...

    async def add_text(self, text: str) -> None:
        """Add text in the order in which the model writes it."""
        ...

    async def end(self) -> None:
        """End the attempt: it was lost, or its answer was recorded."""
        ...


async def _no_prefix(_: Sequence[Message]) -> tuple[int, ...] | None:
    return None


@dataclass(frozen=True, slots=True)
class RoleRequest:
    """Role call. Engines do not change it."""

    role: Role[Any, Any]
    inputs: BaseModel
    """Value of the role's input type."""
    engine_config: EngineConfig
    turn: int
    """Turn of the graph's loop, from 1. `0` means outside the loop."""
    seed: int
    """Seed of the run."""
    meter: UsageMeter
    deadline_seconds: float | None = None
    """Working time that the run has left, including all attempts and waits. `None` means no limit."""
    find_prefix: PrefixLookup = _no_prefix
    """Finds the tokens of an earlier role call, so that a token-level engine can continue from them."""
    call_path: str = ""
    """Call path in the run. It is the same on replay, and different for two calls in one turn."""
    find_provider: FindProvider = find_no_provider
    """Finds the stored providers of the tenant, whose keys take precedence over those of the environment."""
    text_listener: TextListener | None = None
    """Receives the text while it is written. `None` means that nobody watches."""
    earlier_attempts: int = 0
    """Number of attempts of this call at the engines before this fallback."""
    has_fallback: bool = False
    """Whether another engine is tried if this one fails, so that long waits are not worthwhile."""


class Engine(Protocol):
    """Engine that answers roles. It keeps no state of a call, so that runs cannot affect each other."""

    async def answer(self, request: RoleRequest) -> EngineResponse | EngineFailure:
        """Return the validated response or a failure. Raises only what a role's own code raises."""
        ...


EngineFactory = Callable[[Mapping[str, str]], Engine]
"""Creates an engine from the environment variables of the process. An engine reads no other variables."""

ENGINES: Registry[EngineFactory] = Registry(
    Group.ENGINES, "an engine", accepts=callable, remedy="Register a function that takes the environment variables."
)
"""Factories of engines by the name that `EngineConfig.engine` holds."""


MODEL_FREE_ENGINES = frozenset({"extractive", "rules"})
REVISION_FORMATS = frozenset({"", "text"})
"""Prompt formats in which a model can be asked to correct a draft. Empty is JSON."""


def can_revise(engine_config: EngineConfig) -> bool:
    """Return whether an engine can be asked to correct a draft.

    A script can only if its option `revises` is true.
    """
    if engine_config.engine == "scripted":
        return bool(engine_config.options.get("revises"))
    return engine_config.engine not in MODEL_FREE_ENGINES and engine_config.prompt_format in REVISION_FORMATS


def create_engine(
    engine_config: EngineConfig, env: Mapping[str, str] = environment.VARIABLES
) -> Engine | EngineFailure:
    """Create the engine that an engine config names.

    The failure is UNKNOWN_ENGINE if there is none, or if it cannot be imported.
    """
    if engine_config.engine not in ENGINES:
        message = f"There is no engine {engine_config.engine!r}. Use one of: {', '.join(ENGINES)}."
        return EngineFailure(FailureKind.UNKNOWN_ENGINE, message)
    try:
        return ENGINES[engine_config.engine](env)
    except InvalidInput as error:
        return EngineFailure(FailureKind.UNKNOWN_ENGINE, str(error))
