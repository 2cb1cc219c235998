"""The seam between a role call and whatever answers it.

The only home of what an engine is given. Knows every engine by name and imports none before it is asked for; opens no
connection.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from pydantic import BaseModel

from offing.core.model import Answer, EngineChoice, EngineFailure, FailureKind, Message, Usage
from offing.core.run import StopReason
from offing.sdk.role import Role

ENGINES = ("extractive", "litellm", "policy", "rules", "scripted")

Recall = Callable[[Sequence[Message]], Awaitable[tuple[int, ...] | None]]
"""Prompt and completion ids of an earlier turn of the run. It is given as the beginning of a new prompt: that turn's
prompt, then its completion with its `turn`. None: they are not known, or that turn was asked in other words, as when a
memory was edited since."""


class Meter(Protocol):
    """The budget of one run, as one role call sees it. Reservations of one call never overlap."""

    async def reserve(self, tokens: int, usd: Decimal) -> StopReason | None:
        """Set aside an attempt's worst case. None: set aside; else the limit in whose way it is, and nothing is.

        Nothing is either when it is cancelled.
        """
        ...

    async def settle(self, usage: Usage) -> None:
        """Release what is set aside and book what the attempt used; zero for one that the provider did not bill."""
        ...


async def _nothing(_: Sequence[Message]) -> tuple[int, ...] | None:
    return None


@dataclass(frozen=True, slots=True)
class RoleRequest:
    """One role call. Nothing in it is changed by answering."""

    role: Role[Any, Any]
    given: BaseModel
    """A value of the role's input type."""
    choice: EngineChoice
    turn: int
    """Of the graph's loop, from 1. 0: outside the loop."""
    seed: int
    """The run's."""
    meter: Meter
    deadline_seconds: float | None = None
    """Seconds of work that the run has left, all attempts and waits included. None: no limit."""
    recall: Recall = _nothing
    """How a token-level engine goes on from the very tokens of an earlier turn."""
    place: str = ""
    """Where in the run the call is made, the same when the run is repeated: two calls of one turn differ by it."""


class Engine(Protocol):
    """Answers roles. Holds nothing of any call after it, so that runs cannot meet in it."""

    async def answer(self, request: RoleRequest) -> Answer | EngineFailure:
        """The validated answer, or why there is none. Raises only what a role's own code raises."""
        ...


def engine_for(choice: EngineChoice, env: Mapping[str, str] = os.environ) -> Engine | EngineFailure:
    """The engine that `choice` names. UNKNOWN_ENGINE: there is none of that name."""
    match choice.engine:
        case "extractive":
            from offing.models.extractive import ExtractiveEngine

            return ExtractiveEngine()
        case "scripted":
            from offing.models.scripted import ScriptedEngine

            return ScriptedEngine()
        case "rules":
            from offing.models.rules import RulesEngine

            return RulesEngine()
        case "policy":
            from offing.models.policy_engine import PolicyEngine

            return PolicyEngine(env=env)
        case "litellm":
            from offing.models.litellm_engine import LitellmEngine

            return LitellmEngine(env=env)
        case other:
            known = ", ".join(ENGINES)
            return EngineFailure(FailureKind.UNKNOWN_ENGINE, f"There is no engine {other!r}. Use one of: {known}.")
