"""One role call at an engine that asks a model: attempts, waits between them, re-asks, the deadline, what is booked.

The only home of retrying, so that a budget sees every attempt. Knows no provider and no wire: an engine's side of a
call is a `Wire`. An error is a value from the moment it happens and never reaches a parser.
"""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Generic, Protocol, TypeVar

from offing.core.model import Answer, Attempt, EngineFailure, FailureKind, Message, Sampled, Unusable, Usage
from offing.core.run import StopReason
from offing.core.step import shortened
from offing.models.engine import RoleRequest
from offing.models.metering import Booking, reserved
from offing.models.retry import RetryPolicy
from offing.telemetry import attributes as names
from offing.telemetry.tracing import mark_failed, span

REASKS = 2
"""How often a model is shown what was wrong with its answer."""
KEPT_TEXT = 8_000
"""Code points of an unusable answer that are kept and shown back."""

AskT = TypeVar("AskT")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an attempt gave nothing."""

    kind: FailureKind
    message: str
    retry_after: float | None = None
    usage: Usage = field(default_factory=Usage)
    text: str = ""
    """What had arrived of an answer that broke off."""


class Written(Protocol):
    """What a model wrote, not yet looked at."""

    @property
    def text(self) -> str: ...
    @property
    def usage(self) -> Usage: ...


ReplyT = TypeVar("ReplyT", bound=Written)


class Wire(Protocol[AskT, ReplyT]):
    """An engine's side of one role call. `AskT` is all that one attempt sends."""

    @property
    def provider(self) -> str: ...

    async def worst(self, ask: AskT) -> tuple[int, Decimal]:
        """Tokens and money that an attempt may use at most."""
        ...

    async def send(self, ask: AskT, seconds: float, booking: Booking) -> ReplyT | Refusal:
        """One request within `seconds`; never retried. Sets what it used in `booking`, also when it is cancelled."""
        ...

    def read(self, ask: AskT, reply: ReplyT) -> Any | Unusable:
        """The role's output."""
        ...

    def again(self, ask: AskT, text: str, problem: Unusable) -> AskT:
        """What to send after an answer that cannot be used."""
        ...

    def sampled(self, ask: AskT, reply: ReplyT) -> Sampled | None:
        """A reply that cannot be used, token by token. None: its tokens are not known."""
        ...

    def accepted(self, ask: AskT, reply: ReplyT, output: Any) -> Answer:
        """The answer, but for usage and failed attempts of the whole call."""
        ...

    def remedy(self, kind: FailureKind) -> str:
        """What an operator can do about a failure, to be appended to its message. Empty: nothing is known."""
        ...


@dataclass(frozen=True, slots=True)
class Manners:
    """How a call behaves towards its provider; clock, sleep and randomness come in."""

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic


@dataclass(slots=True)
class RoleCall(Generic[AskT, ReplyT]):
    """One role call under way: its failed attempts and what it has used."""

    wire: Wire[AskT, ReplyT]
    request: RoleRequest
    manners: Manners
    reasks: int = REASKS
    end: float = math.inf
    """On the clock of `manners`; infinite without a deadline."""
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        if self.request.deadline_seconds is not None:
            self.end = self.manners.clock() + self.request.deadline_seconds

    async def run(self, ask: AskT) -> Answer | EngineFailure:
        """Ask until there is an answer. OUT_OF_BUDGET carries the limit; a failure carries every attempt."""
        for _ in range(1 + self.reasks):
            reply, ms = await self._reply(ask)
            if isinstance(reply, EngineFailure):
                return reply
            output = self.wire.read(ask, reply)
            if not isinstance(output, Unusable):
                answer = self.wire.accepted(ask, reply, output)
                return replace(answer, usage=self.usage, attempts=tuple(self.attempts))
            text, sampled = _storable(reply.text), self.wire.sampled(ask, reply)
            self.attempts.append(Attempt(FailureKind.INVALID_OUTPUT, output.problem, text, ms, reply.usage, sampled))
            ask = self.wire.again(ask, text, output)
        role = self.request.role.name
        return self._failed(FailureKind.INVALID_OUTPUT, f"{role}: {self.attempts[-1].message}")

    async def _reply(self, ask: AskT) -> tuple[ReplyT | EngineFailure, int]:
        """A reply, after as many retries as the policy allows, and its milliseconds."""
        failed, manners = 0, self.manners
        while True:
            started = manners.clock()
            outcome = await self._attempt(ask)
            ms = round((manners.clock() - started) * 1000)
            if not isinstance(outcome, Refusal):
                return outcome, ms
            failed += 1
            written = _storable(outcome.text)
            self.attempts.append(Attempt(outcome.kind, outcome.message, written, ms, outcome.usage))
            if self._left() == 0:
                return self._out_of(StopReason.TIME_LIMIT), ms
            wait = manners.policy.wait(outcome.kind, failed, outcome.retry_after, manners.draw())
            if wait is None or wait >= self._left():
                return self._failed(outcome.kind, outcome.message, outcome.retry_after), ms
            await manners.sleep(wait)

    async def _attempt(self, ask: AskT) -> ReplyT | Refusal | EngineFailure:
        """One metered request, in a span of its own."""
        if self._left() == 0:
            return self._out_of(StopReason.TIME_LIMIT)
        async with reserved(self.request.meter, *await self.wire.worst(ask)) as booking:
            if booking.refused is not None:
                return self._out_of(booking.refused)
            if self._left() == 0:  # it waited for other calls of the run
                return self._out_of(StopReason.TIME_LIMIT)
            with span(f"{names.CHAT} {self.request.choice.model}", self._attributes()) as current:
                seconds = min(self.request.choice.timeout_seconds, self._left())
                outcome = await self.wire.send(ask, seconds, booking)
                current.set_attributes(names.usage_attributes(booking.used))
                if isinstance(outcome, Refusal):
                    mark_failed(current, outcome.kind, outcome.message)
        self.usage += booking.used
        return outcome

    def _left(self) -> float:
        """Seconds until the deadline; 0 when it has passed."""
        return max(0.0, self.end - self.manners.clock())

    def _failed(self, kind: FailureKind, message: str, retry_after: float | None = None) -> EngineFailure:
        told = message + self.wire.remedy(kind)
        return EngineFailure(kind, told, self.usage, tuple(self.attempts), retry_after)

    def _out_of(self, reason: StopReason) -> EngineFailure:
        message = f"No room for another attempt: {reason.replace('_', ' ')}."
        return replace(self._failed(FailureKind.OUT_OF_BUDGET, message), stop=reason.value)

    def _attributes(self) -> dict[str, names.Attribute]:
        return {
            names.OPERATION: names.CHAT,
            names.PROVIDER: self.wire.provider,
            names.REQUEST_MODEL: self.request.choice.model,
            names.REQUEST_MAX_TOKENS: self.request.choice.max_tokens,
            names.ATTEMPT: len(self.attempts) + 1,
        }


def cut_off(limit: int) -> Unusable:
    """What is wrong with an answer that reached `limit` tokens."""
    return Unusable(f"The answer was cut off at max_tokens ({limit}). Answer more briefly, or allow more.")


def correction(text: str, problem: Unusable) -> tuple[Message, ...]:
    """What a model is told about an unusable answer, after that answer."""
    words = f"That answer cannot be used. {shortened(problem.problem, 1200)} Give the whole corrected answer."
    said = (Message("assistant", (text,)),) if text.strip() else ()
    return (*said, Message("user", (words,)))


def _storable(text: str) -> str:
    """As much of what was written as a failed attempt keeps; the database holds no NUL."""
    return text[:KEPT_TEXT].replace("\0", "\N{REPLACEMENT CHARACTER}")
