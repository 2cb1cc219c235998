"""Role call at an engine with a model: attempts, waits, corrections, the deadline and charged usage.

All retries happen here, so that the budget sees every attempt. An engine provides a
`ProviderAdapter`. Errors of a provider are values and never reach a parser.
"""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Generic, Protocol, TypeVar

from offing.core.model import (
    EngineFailure,
    EngineResponse,
    FailedAttempt,
    FailureKind,
    InvalidOutput,
    Message,
    SampledCompletion,
    Usage,
)
from offing.core.run import StopReason
from offing.core.step import shorten_line
from offing.models.call_slots import SlotGate
from offing.models.endpoint_pauses import EndpointGate
from offing.models.engine import RoleRequest
from offing.models.model_limits import get_completion_limit
from offing.models.reservation import Reservation, reserve_usage
from offing.models.retry import RetryPolicy
from offing.models.thinking import ThinkingOverflow
from offing.telemetry import attributes as names
from offing.telemetry.tracing import mark_failed, open_span

MAX_CORRECTIONS = 2
"""Default number of times that a model is told what was wrong with its output."""
MAX_ROOM_RAISES = 3
"""Maximum number of times that a model gets twice the room because its thinking took too much of it."""
THINKING_REMEDY = " Lower reasoning_effort for this role, or choose a model that can write more."
MAX_RETAINED_CHARS = 8_000
"""Maximum number of code points of an invalid output that are stored and shown to the model."""

RequestT = TypeVar("RequestT")


@dataclass(frozen=True, slots=True)
class AttemptFailure:
    """Failure of one attempt."""

    kind: FailureKind
    message: str
    retry_after: float | None = None
    usage: Usage = field(default_factory=Usage)
    text: str = ""
    """Text that had arrived before the stream broke off."""


class ModelText(Protocol):
    """Text of a model before it is parsed."""

    @property
    def text(self) -> str: ...
    @property
    def usage(self) -> Usage: ...


ReplyT = TypeVar("ReplyT", bound=ModelText)


class ProviderAdapter(Protocol[RequestT, ReplyT]):
    """Adapter of an engine for one role call. `RequestT` is the request of one attempt."""

    @property
    def provider(self) -> str: ...

    async def estimate_max_usage(self, request: RequestT) -> tuple[int, Decimal]:
        """Return the maximum tokens and cost in US dollars of an attempt."""
        ...

    async def send(
        self, request: RequestT, timeout_seconds: float, reservation: Reservation
    ) -> ReplyT | AttemptFailure:
        """Send one request within `timeout_seconds`, without retries.

        Sets the usage of `reservation`, also when it is cancelled.
        """
        ...

    def read_output(self, request: RequestT, reply: ReplyT) -> Any | InvalidOutput:
        """Parse the role's output."""
        ...

    def build_correction(self, request: RequestT, text: str, problem: InvalidOutput) -> RequestT:
        """Build the request that follows an invalid output."""
        ...

    def timeout_seconds(self, request: RequestT) -> float:
        """Return the maximum seconds of an attempt."""
        ...

    def reduce_completion(self, request: RequestT, reason: StopReason) -> RequestT | None:
        """Build the same request with a smaller maximum, because a limit of the budget does not leave more.

        `None` means that the attempt must fit without a change.
        """
        ...

    def raise_completion(self, request: RequestT) -> RequestT | None:
        """Build the same request with more room for thinking. `None` means that there is no more."""
        ...

    def sampled_completion(self, request: RequestT, reply: ReplyT) -> SampledCompletion | None:
        """Return the tokens of an invalid reply. `None` means that they are unknown."""
        ...

    def build_response(self, request: RequestT, reply: ReplyT, output: Any) -> EngineResponse:
        """Build the response without the usage and failed attempts of the whole call."""
        ...

    def remedy(self, kind: FailureKind) -> str:
        """Return advice for the operator to append to the message of a failure. Empty if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class CallSettings:
    """Settings of a role call: its retry policy, clock, sleep and randomness."""

    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random_float: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic
    gate: EndpointGate | None = None
    """Pauses that other calls of this process share. `None` means that the engine has none."""
    slot_gate: SlotGate | None = None
    """Limits of concurrent calls. `None` means that there are none."""


@dataclass(slots=True)
class RoleCallRunner(Generic[RequestT, ReplyT]):
    """Runner of one role call, with its failed attempts and usage so far."""

    adapter: ProviderAdapter[RequestT, ReplyT]
    request: RoleRequest
    settings: CallSettings
    max_corrections: int = MAX_CORRECTIONS
    deadline: float = math.inf
    """Deadline on the clock of `settings`. Infinite if there is none."""
    attempts: list[FailedAttempt] = field(default_factory=list[FailedAttempt])
    usage: Usage = field(default_factory=Usage)
    slot_wait_seconds: float = 0.0
    """Time waited for call slots."""

    def __post_init__(self) -> None:
        if self.request.deadline_seconds is not None:
            self.deadline = self.settings.clock() + self.request.deadline_seconds

    async def run(self, request_body: RequestT) -> EngineResponse | EngineFailure:
        """Send requests until there is a valid output.

        OUT_OF_BUDGET carries the limit, and every failure carries all attempts.
        """
        following: RequestT | None = request_body
        while following is not None:
            reply, request_body, ms = await self._send_with_retries(following)
            if isinstance(reply, EngineFailure):
                return reply
            output = self.adapter.read_output(request_body, reply)
            if not isinstance(output, InvalidOutput):
                answer = self.adapter.build_response(request_body, reply, output)
                return self._complete(answer)
            await self._end_text()
            text, sampled = _to_storable(reply.text), self.adapter.sampled_completion(request_body, reply)
            kind = _kind_of_problem(output)
            self.attempts.append(FailedAttempt(kind, output.problem, text, ms, reply.usage, sampled))
            if isinstance(output, BudgetCutOff):
                return self._out_of_budget(output.reason, output.problem)
            following = self._build_following(request_body, text, output)
        role, last = self.request.role.name, self.attempts[-1]
        remedy = THINKING_REMEDY if last.failure is FailureKind.THINKING_TOO_LONG else ""
        return self._build_failure(FailureKind.INVALID_OUTPUT, f"{role}: {last.message}{remedy}")

    def _complete(self, answer: EngineResponse) -> EngineResponse:
        """Add what the whole call took to the response."""
        waited_ms = self._slot_wait_ms
        sampling = answer.sampling | ({"slot_wait_ms": waited_ms} if waited_ms else {})
        attempts = tuple(self.attempts)
        return replace(answer, usage=self.usage, attempts=attempts, sampling=sampling, slot_wait_ms=waited_ms)

    @property
    def _slot_wait_ms(self) -> int:
        return round(self.slot_wait_seconds * 1000)

    def _build_following(self, body: RequestT, text: str, output: InvalidOutput) -> RequestT | None:
        """Build the request after an invalid output. `None` means that there were enough attempts."""
        overflows = sum(one.failure is FailureKind.THINKING_TOO_LONG for one in self.attempts)
        if isinstance(output, ThinkingOverflow):
            return self.adapter.raise_completion(body) if overflows <= MAX_ROOM_RAISES else None
        invalid = sum(one.failure is FailureKind.INVALID_OUTPUT for one in self.attempts)
        return self.adapter.build_correction(body, text, output) if invalid <= self.max_corrections else None

    async def _send_with_retries(self, body: RequestT) -> tuple[ReplyT | EngineFailure, RequestT, int]:
        """Send a request with the retries of the policy.

        Return the reply, the request as it was sent, and the duration in milliseconds.
        """
        failed, settings = 0, self.settings
        while True:
            if (held_back := await self._wait_for_endpoint()) is not None:
                return held_back, body, 0
            async with AsyncExitStack() as stack:
                if not await self._enter_slots(stack):
                    return self._out_of_time_for_slot(), body, 0
                if settings.gate is not None and settings.gate.is_paused():
                    continue  # since this call began to wait for its slot
                started = settings.clock()
                outcome, sent = await self._send_once(body)
                ms = round((settings.clock() - started) * 1000)
            if not isinstance(outcome, AttemptFailure):
                return outcome, sent, ms
            failed += 1
            if settings.gate is not None:
                settings.gate.note_failure(outcome.kind, outcome.retry_after)
            await self._end_text()
            stored_text = _to_storable(outcome.text)
            self.attempts.append(FailedAttempt(outcome.kind, outcome.message, stored_text, ms, outcome.usage))
            if self._remaining_seconds() == 0:
                return self._out_of_budget(StopReason.TIME_LIMIT), sent, ms
            wait = settings.retry_policy.next_wait_seconds(
                outcome.kind, failed, outcome.retry_after, settings.random_float()
            )
            if wait is None or wait >= self._remaining_seconds():
                return self._build_failure(outcome.kind, outcome.message, outcome.retry_after), sent, ms
            await settings.sleep(wait)

    async def _wait_for_endpoint(self) -> EngineFailure | None:
        """Wait while the endpoint is paused. Return the failure of a call that cannot wait so long."""
        gate, policy = self.settings.gate, self.settings.retry_policy
        if gate is None:
            return None
        held_back = await gate.wait(policy.max_retry_after_seconds, self._remaining_seconds())
        if held_back is None:
            return None
        message = f"Not sent: {self.adapter.provider} asks to wait {math.ceil(held_back.seconds)} s."
        self.attempts.append(FailedAttempt(held_back.kind, message))
        return self._build_failure(held_back.kind, message, held_back.seconds)

    async def _enter_slots(self, stack: AsyncExitStack) -> bool:
        """Wait for the call slots of the endpoint. Return whether the call has them before its deadline."""
        gate = self.settings.slot_gate
        if gate is None:
            return True
        has_slots, seconds = await gate.enter(stack, self._remaining_seconds())
        self.slot_wait_seconds += seconds
        return has_slots

    def _out_of_time_for_slot(self) -> EngineFailure:
        limits = self.settings.slot_gate.limits if self.settings.slot_gate else ()
        calls = min(limit.max_calls for limit in limits)
        problem = f"The time ended while the call waited for {self.adapter.provider}: at most {calls} at the same time."
        return self._out_of_budget(StopReason.TIME_LIMIT, problem)

    async def _send_once(self, body: RequestT) -> tuple[ReplyT | AttemptFailure | EngineFailure, RequestT]:
        """Send one metered request with the largest completion that the budget allows."""
        while True:
            outcome, denied_by = await self._send_reserved(body)
            smaller = None if denied_by is None else self.adapter.reduce_completion(body, denied_by)
            if smaller is None:
                return outcome, body
            body = smaller

    async def _send_reserved(self, body: RequestT) -> tuple[ReplyT | AttemptFailure | EngineFailure, StopReason | None]:
        """Send one request if its maximum usage can be reserved, in its own trace span.

        Return the outcome, and the limit that denied the reservation.
        """
        if self._remaining_seconds() == 0:
            return self._out_of_budget(StopReason.TIME_LIMIT), None
        async with reserve_usage(self.request.meter, *await self.adapter.estimate_max_usage(body)) as reservation:
            if (denied_by := reservation.denied_by) is not None:
                return self._out_of_budget(denied_by), None if denied_by is StopReason.TIME_LIMIT else denied_by
            if self._remaining_seconds() == 0:  # the reservation waited for other calls of the run
                return self._out_of_budget(StopReason.TIME_LIMIT), None
            with open_span(f"{names.CHAT} {self.request.engine_config.model}", self._trace_attributes()) as current:
                seconds = min(self.adapter.timeout_seconds(body), self._remaining_seconds())
                if self.request.text_listener is not None:
                    await self.request.text_listener.begin_attempt(
                        self.request.earlier_attempts + len(self.attempts) + 1
                    )
                outcome = await self.adapter.send(body, seconds, reservation)
                current.set_attributes(names.build_usage_attributes(reservation.usage))
                if isinstance(outcome, AttemptFailure):
                    mark_failed(current, outcome.kind, outcome.message)
        self.usage += reservation.usage
        return outcome, None

    async def _end_text(self) -> None:
        """Withdraw the text of an attempt that is lost."""
        if self.request.text_listener is not None:
            await self.request.text_listener.end()

    def _remaining_seconds(self) -> float:
        """Return the seconds until the deadline, or 0 if it has passed."""
        return max(0.0, self.deadline - self.settings.clock())

    def _build_failure(self, kind: FailureKind, message: str, retry_after: float | None = None) -> EngineFailure:
        text = message + self.adapter.remedy(kind)
        failure = EngineFailure(kind, text, self.usage, tuple(self.attempts), retry_after)
        return replace(failure, slot_wait_ms=self._slot_wait_ms)

    def _out_of_budget(self, reason: StopReason, problem: str = "") -> EngineFailure:
        message = problem or f"No room for another attempt: {reason.replace('_', ' ')}."
        return replace(self._build_failure(FailureKind.BUDGET_EXHAUSTED, message), stop_reason=reason.value)

    def _trace_attributes(self) -> dict[str, names.Attribute]:
        return {
            names.OPERATION_NAME: names.CHAT,
            names.PROVIDER_NAME: self.adapter.provider,
            names.REQUEST_MODEL: self.request.engine_config.model,
            names.REQUEST_MAX_TOKENS: get_completion_limit(self.request.engine_config),
            names.ATTEMPT: self.request.earlier_attempts + len(self.attempts) + 1,
            **({names.SLOT_WAIT_SECONDS: self.slot_wait_seconds} if self.slot_wait_seconds else {}),
        }


@dataclass(frozen=True, slots=True)
class BudgetCutOff(InvalidOutput):
    """An answer that was cut off because the budget did not leave more completion tokens."""

    reason: StopReason
    """The limit of the budget."""


def _kind_of_problem(output: InvalidOutput) -> FailureKind:
    match output:
        case ThinkingOverflow():
            return FailureKind.THINKING_TOO_LONG
        case BudgetCutOff():
            return FailureKind.BUDGET_EXHAUSTED
        case _:
            return FailureKind.INVALID_OUTPUT


def truncated_output(max_tokens: int) -> InvalidOutput:
    """Describe the problem of a completion that reached `max_tokens`."""
    return InvalidOutput(f"The answer was cut off at max_tokens ({max_tokens}). Answer more briefly, or allow more.")


def correction_messages(text: str, problem: InvalidOutput) -> tuple[Message, ...]:
    """Return the messages that tell a model what was wrong with its output, after that output."""
    words = f"That answer cannot be used. {shorten_line(problem.problem, 1200)} Give the whole corrected answer."
    answer_messages = (Message("assistant", (text,)),) if text.strip() else ()
    return (*answer_messages, Message("user", (words,)))


def _to_storable(text: str) -> str:
    """Return the part of a text that a failed attempt stores. The database cannot store NUL."""
    return text[:MAX_RETAINED_CHARS].replace("\0", "\N{REPLACEMENT CHARACTER}")
