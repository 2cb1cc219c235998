"""The seam between a role call and whatever answers it.

The only home of what an engine is given. Knows every engine by name and imports none before it is asked for; opens no
connection.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from pydantic import BaseModel

from offing.core.model import Answer, EngineChoice, EngineFailure, FailureKind, Usage
from offing.core.run import StopReason
from offing.sdk.role import Role

ENGINES = ("extractive", "litellm", "scripted")


class Meter(Protocol):
    """The budget of one run, as one role call sees it. Reservations of one call never overlap."""

    async def reserve(self, tokens: int, usd: Decimal) -> StopReason | None:
        """Set aside an attempt's worst case. None: set aside; else the limit in whose way it is, and nothing is."""
        ...

    async def settle(self, usage: Usage) -> None:
        """Release what is set aside and book what the attempt used; zero for one that the provider did not bill."""
        ...


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
        case "litellm":
            from offing.models.litellm_engine import LitellmEngine

            return LitellmEngine(env=env)
        case other:
            known = ", ".join(ENGINES)
            return EngineFailure(FailureKind.UNKNOWN_ENGINE, f"There is no engine {other!r}. Use one of: {known}.")
