"""Any provider, through litellm: ask, retry what can be retried, check the form, ask again a bounded number of times.

The only place that retries, so that a budget sees every attempt. Knows no provider and imports no litellm. An error is
a value from the moment it happens and never reaches the parser.
"""

import asyncio
import json
import math
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from offing.core.model import Answer, Attempt, EngineFailure, FailureKind, Message, Unusable, Usage
from offing.core.run import StopReason
from offing.core.step import shortened
from offing.models.credentials import destination, key_variable
from offing.models.engine import RoleRequest
from offing.models.litellm_client import Refusal, Reply, complete, estimated_usage, form_for, loaded, price
from offing.models.litellm_request import (
    Ask,
    Form,
    options_of,
    prompt_tokens_of,
    sampling_of,
    with_schema,
)
from offing.models.metering import Booking, reserved
from offing.models.retry import RetryPolicy
from offing.models.structured import parse_output
from offing.telemetry import attributes as names
from offing.telemetry.tracing import mark_failed, span

REASKS = 2
"""How often a model is shown what was wrong with its answer."""
KEPT_TEXT = 8_000
"""Code points of an unusable answer that are kept and shown back."""


@dataclass(frozen=True, slots=True)
class LitellmEngine:
    """Stateless between calls; clock, sleep and randomness come in."""

    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic

    async def answer(self, request: RoleRequest) -> Answer | EngineFailure:
        """See `Engine`. OUT_OF_BUDGET carries the limit; a failure carries every attempt and what they cost."""
        options = options_of(request.choice)
        to = destination(request.choice, self.env)
        if isinstance(options, EngineFailure):
            return options
        if isinstance(to, EngineFailure):
            return to
        form: Form = options.form if options.form != "auto" else await form_for(request.choice.model)
        schema = request.role.output.model_json_schema()
        prompt = with_schema(request.role.render(request.given), form, json.dumps(schema, ensure_ascii=False))
        ask = Ask(request.choice, options, to, form, schema, prompt, request.seed, request.choice.timeout_seconds)
        call = _Call(self, request, self._end(request))
        return await call.run(ask)

    def _end(self, request: RoleRequest) -> float:
        return math.inf if request.deadline_seconds is None else self.clock() + request.deadline_seconds


@dataclass(slots=True)
class _Call:
    """One role call under way: its failed attempts and what it has used."""

    engine: LitellmEngine
    request: RoleRequest
    end: float
    """On the engine's clock; infinite without a deadline."""
    attempts: list[Attempt] = field(default_factory=list[Attempt])
    usage: Usage = field(default_factory=Usage)

    async def run(self, ask: Ask) -> Answer | EngineFailure:
        for _ in range(1 + REASKS):
            reply, ms = await self._reply(ask)
            if isinstance(reply, EngineFailure):
                return reply
            output = self._checked(reply)
            if not isinstance(output, Unusable):
                return self._accepted(ask, reply, output)
            text = reply.text[:KEPT_TEXT]
            self.attempts.append(Attempt(FailureKind.INVALID_OUTPUT, output.problem, text, ms, reply.usage))
            ask = replace(ask, messages=ask.messages + _correction(text, output), pieces=[])
        role = self.request.role.name
        return self._failed(FailureKind.INVALID_OUTPUT, f"{role}: {self.attempts[-1].message}")

    async def _reply(self, ask: Ask) -> tuple[Reply | EngineFailure, int]:
        """A reply, after as many retries as the policy allows, and its milliseconds."""
        failed = 0
        while True:
            started = self.engine.clock()
            outcome = await self._attempt(ask)
            ms = round((self.engine.clock() - started) * 1000)
            if not isinstance(outcome, Refusal):
                return outcome, ms
            failed += 1
            written = "".join(ask.pieces)[:KEPT_TEXT]
            self.attempts.append(Attempt(outcome.kind, outcome.message, written, ms, outcome.usage))
            if self._left() == 0:
                return self._out_of(StopReason.TIME_LIMIT), ms
            wait = self.engine.policy.wait(outcome.kind, failed, outcome.retry_after, self.engine.draw())
            if wait is None or wait >= self._left():
                return self._failed(outcome.kind, outcome.message, outcome.retry_after), ms
            await self.engine.sleep(wait)
            ask = replace(ask, pieces=[])

    async def _attempt(self, ask: Ask) -> Reply | Refusal | EngineFailure:
        """One metered request, in a span of its own."""
        left = self._left()
        if left == 0:
            return self._out_of(StopReason.TIME_LIMIT)
        prompt = prompt_tokens_of(ask)
        worst = await price(ask.choice.model, prompt, ask.choice.max_tokens)
        async with reserved(self.request.meter, prompt + ask.choice.max_tokens, worst or Usage().usd) as booking:
            if booking.refused is not None:
                return self._out_of(booking.refused)
            with span(f"{names.CHAT} {ask.choice.model}", _request_attributes(ask, len(self.attempts) + 1)) as current:
                outcome = await self._timed(replace(ask, seconds=min(ask.seconds, left)), booking)
                current.set_attributes(names.usage_attributes(booking.used))
                if isinstance(outcome, Refusal):
                    mark_failed(current, outcome.kind, outcome.message)
        self.usage += booking.used
        return outcome

    async def _timed(self, ask: Ask, booking: Booking) -> Reply | Refusal:
        """The request under its time limit. What had been streamed when it broke off is booked by our own count."""
        whole = False
        try:
            async with asyncio.timeout(ask.seconds):
                outcome = await complete(ask)
            whole = isinstance(outcome, Reply)
        except TimeoutError:
            outcome = Refusal(FailureKind.TIMEOUT, f"No whole answer within {ask.seconds:g} s.")
        finally:
            if not whole and ask.pieces:
                booking.used = estimated_usage(await loaded(), ask, "".join(ask.pieces))
        if isinstance(outcome, Reply):
            booking.used = outcome.usage
            return outcome
        return replace(outcome, usage=booking.used)

    def _left(self) -> float:
        """Seconds until the deadline; 0 when it has passed."""
        return max(0.0, self.end - self.engine.clock())

    def _checked(self, reply: Reply) -> Any | Unusable:
        if reply.finish == "length":
            limit = self.request.choice.max_tokens
            return Unusable(f"The answer was cut off at max_tokens ({limit}). Answer more briefly, or allow more.")
        if reply.calls > 1:
            return Unusable(f"There are {reply.calls} tool calls. Make exactly one.")
        return parse_output(reply.text, self.request.role.output)

    def _accepted(self, ask: Ask, reply: Reply, output: Any) -> Answer:
        sampling = sampling_of(ask) | {"form": ask.form}
        if ask.options.stream:
            sampling["stream"] = True
        if reply.estimated:
            sampling["usage_estimated"] = True
        return Answer(output, reply.text, ask.choice.model, ask.messages, sampling, self.usage, tuple(self.attempts))

    def _failed(self, kind: FailureKind, message: str, retry_after: float | None = None) -> EngineFailure:
        told = message + (_key_remedy(self.request.choice.model) if kind is FailureKind.REFUSED_KEY else "")
        return EngineFailure(kind, told, self.usage, tuple(self.attempts), retry_after)

    def _out_of(self, reason: StopReason) -> EngineFailure:
        message = f"No room for another attempt: {reason.replace('_', ' ')}."
        return replace(self._failed(FailureKind.OUT_OF_BUDGET, message), stop=reason.value)


def _correction(text: str, problem: Unusable) -> tuple[Message, ...]:
    """What a model is told about an unusable answer, after that answer."""
    words = f"That answer cannot be used. {shortened(problem.problem, 1200)} Give the whole corrected answer."
    said = (Message("assistant", (text,)),) if text.strip() else ()
    return (*said, Message("user", (words,)))


def _key_remedy(model: str) -> str:
    variable = key_variable(model.partition("/")[0])
    return f" Set a valid {variable} where the workers run, or choose another engine."


def _request_attributes(ask: Ask, attempt: int) -> dict[str, names.Attribute]:
    return {
        names.OPERATION: names.CHAT,
        names.PROVIDER: ask.choice.model.partition("/")[0],
        names.REQUEST_MODEL: ask.choice.model,
        names.REQUEST_MAX_TOKENS: ask.choice.max_tokens,
        names.ATTEMPT: attempt,
    }
