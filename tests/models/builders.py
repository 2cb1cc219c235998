"""Builders for role calls: a verifier's role, a budget that keeps its books, and an engine whose waits take no time."""

import os
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pydantic import BaseModel

from offing.core.model import EngineConfig, EngineFailure, EngineResponse, Message, Usage
from offing.core.run import StopReason
from offing.core.step import StepKind
from offing.models.accepted_servers import ACCEPTED_SERVERS_VARIABLE
from offing.models.engine import Engine, RoleRequest
from offing.models.litellm_engine import LitellmEngine
from offing.models.retry import RetryPolicy
from offing.sdk.role import Headline, Role


class Question(BaseModel):
    text: str = "Is the evidence enough?"


class Verdict(BaseModel):
    """A verifier's answer."""

    analysis: str
    stop: bool


def render(inputs: Question) -> tuple[Message, ...]:
    return (Message("system", ("You verify.", "Be strict.")), Message("user", (inputs.text,)))


VERIFIER: Role[Question, Verdict] = Role(
    name="verifier",
    input=Question,
    output=Verdict,
    render=render,
    headline=lambda verdict: Headline(verdict.analysis),
    step_kind=StepKind.VERIFICATION,
    extractive=lambda inputs: Verdict(analysis=inputs.text, stop=True),
)

GOOD = '{"analysis": "enough", "stop": true}'


@dataclass(slots=True)
class Ledger:
    """A meter with limits, which fails the test when a reservation is left open or settled twice."""

    tokens: int | None = None
    """None: no limit."""
    usd: Decimal | None = None
    reservations: list[tuple[int, Decimal]] = field(default_factory=list[tuple[int, Decimal]])
    booked: list[Usage] = field(default_factory=list[Usage])
    open: bool = False

    async def reserve(self, max_tokens: int, max_cost_usd: Decimal) -> StopReason | None:
        assert not self.open, "an attempt began before the one before it was settled"
        used = sum((u.tokens for u in self.booked), 0)
        if self.tokens is not None and used + max_tokens > self.tokens:
            return StopReason.TOKEN_LIMIT
        if self.usd is not None and sum((u.cost_usd for u in self.booked), Decimal()) + max_cost_usd > self.usd:
            return StopReason.SPEND_LIMIT
        self.reservations.append((max_tokens, max_cost_usd))
        self.open = True
        return None

    async def settle(self, usage: Usage) -> None:
        assert self.open, "nothing is reserved"
        self.open = False
        self.booked.append(usage)

    @property
    def total(self) -> Usage:
        return sum(self.booked, Usage())


@dataclass(slots=True)
class Time:
    """A clock that only moves when somebody sleeps, and the sleeps there were."""

    now: float = 0.0
    waits: list[float] = field(default_factory=list[float])

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


def accepting() -> dict[str, str]:
    """The environment that names the file of accepted servers, and nothing else."""
    return {ACCEPTED_SERVERS_VARIABLE: os.environ[ACCEPTED_SERVERS_VARIABLE]}


def litellm_engine(
    time: Time | None = None, *, draw: float = 0.5, env: dict[str, str] | None = None, policy: RetryPolicy | None = None
) -> LitellmEngine:
    time = time or Time()
    return LitellmEngine(
        env=accepting() | (env or {}),
        retry_policy=policy or RetryPolicy(),
        sleep=time.sleep,
        random_float=lambda: draw,
        clock=time.clock,
    )


def choice(url: str, **more: Any) -> EngineConfig:
    return EngineConfig.model_validate(
        {"engine": "litellm", "model": "openai/gpt-4o-mini", "api_base": url, "timeout_seconds": 5} | more
    )


def request(
    chosen: EngineConfig,
    *,
    role: Role[Any, Any] = VERIFIER,
    meter: Ledger | None = None,
    turn: int = 1,
    seed: int = 7,
    deadline: float | None = None,
    inputs: BaseModel | None = None,
) -> RoleRequest:
    return RoleRequest(role, inputs or Question(), chosen, turn, seed, meter or Ledger(), deadline)


async def answered(engine: Engine, role_request: RoleRequest) -> EngineResponse:
    outcome = await engine.answer(role_request)
    assert isinstance(outcome, EngineResponse), outcome
    return outcome


async def failed(engine: Engine, role_request: RoleRequest) -> EngineFailure:
    outcome = await engine.answer(role_request)
    assert isinstance(outcome, EngineFailure), outcome
    return outcome
