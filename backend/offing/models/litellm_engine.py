"""Any provider, through litellm: how a role becomes a request, and a reply the role's output.

Knows no provider and imports no litellm. Retries, re-asks and budgets are `role_call`'s.
"""

import asyncio
import json
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from offing.core.model import Answer, EngineFailure, FailureKind, Unusable
from offing.models.credentials import Destination, destination, key_variable
from offing.models.engine import RoleRequest
from offing.models.forms import RoleForm, asked_form, ended_at, read, spans_of
from offing.models.litellm_client import Reply, complete, estimated_usage, form_for, loaded, price
from offing.models.litellm_request import (
    Ask,
    Form,
    LitellmOptions,
    options_of,
    prompt_tokens_of,
    sampling_of,
    with_schema,
)
from offing.models.metering import Booking
from offing.models.retry import RetryPolicy
from offing.models.role_call import Manners, Refusal, RoleCall, correction, cut_off
from offing.models.structured import Schema, parse_output
from offing.sdk.native import Native


@dataclass(frozen=True, slots=True)
class LitellmEngine:
    """Stateless between calls; clock, sleep and randomness come in."""

    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic

    async def answer(self, request: RoleRequest) -> Answer | EngineFailure:
        """See `Engine`. A role's form that the choice names is asked for in words, and nothing is said of a schema."""
        options = options_of(request.choice)
        to = destination(request.choice, self.env)
        own = asked_form(request)
        for problem in (options, to, own):
            if isinstance(problem, EngineFailure):
                return problem
        assert not isinstance(options, EngineFailure)
        assert not isinstance(to, EngineFailure)
        assert not isinstance(own, EngineFailure)
        if own is None and request.role.native is not None:
            return await self._chatted(request, options, to, request.role.native)
        form: Form = "text"
        if own is None:
            form = options.form if options.form != "auto" else await form_for(request.choice.model)
        schema: Schema = {} if own else request.role.output.model_json_schema()
        prompt = own.render(request.given) if own else request.role.render(request.given)
        if own is None:
            prompt = with_schema(prompt, form, json.dumps(schema, ensure_ascii=False))
        seconds = request.choice.timeout_seconds
        ask = Ask(request.choice, options, to, form, schema, prompt, request.seed, seconds)
        return await self._run(request, own, ask)

    async def _chatted(
        self, request: RoleRequest, options: LitellmOptions, to: Destination, native: Native[Any, Any]
    ) -> Answer | EngineFailure:
        """A chat with the role's own tools, by the provider's own means; recorded in words."""
        chat, prompt = native.chat(request.given), request.role.render(request.given)
        seconds = request.choice.timeout_seconds
        ask = Ask(request.choice, options, to, "native", {}, prompt, request.seed, seconds, native=chat)
        return await self._run(request, None, ask)

    async def _run(self, request: RoleRequest, own: RoleForm | None, ask: Ask) -> Answer | EngineFailure:
        manners = Manners(self.policy, self.sleep, self.draw, self.clock)
        return await RoleCall(_LitellmWire(request, own), request, manners).run(ask)


@dataclass(frozen=True, slots=True)
class _LitellmWire:
    """litellm's side of one role call."""

    request: RoleRequest
    form: RoleForm | None

    @property
    def provider(self) -> str:
        return self.request.choice.model.partition("/")[0]

    async def worst(self, ask: Ask) -> tuple[int, Decimal]:
        prompt = prompt_tokens_of(ask)
        usd = await price(ask.choice.model, prompt, ask.choice.max_tokens)
        return prompt + ask.choice.max_tokens, usd or Decimal()

    async def send(self, ask: Ask, seconds: float, booking: Booking) -> Reply | Refusal:
        """What had been streamed when it broke off is booked by our own count."""
        ask, whole = replace(ask, seconds=seconds, pieces=[]), False
        try:
            async with asyncio.timeout(seconds):
                outcome = await complete(ask)
            whole = isinstance(outcome, Reply)
        except TimeoutError:
            outcome = Refusal(FailureKind.TIMEOUT, f"No whole answer within {seconds:g} s.")
        finally:
            if not whole and ask.pieces:
                booking.used = estimated_usage(await loaded(), ask, "".join(ask.pieces))
        if isinstance(outcome, Refusal):
            return replace(outcome, usage=booking.used, text="".join(ask.pieces))
        booking.used = outcome.usage
        return replace(outcome, text=ended_at(self.form, outcome.text))

    def read(self, ask: Ask, reply: Reply) -> Any | Unusable:
        if reply.finish == "length":
            return cut_off(ask.choice.max_tokens)
        if ask.native is not None and self.request.role.native is not None:
            return self.request.role.native.read(reply.text, reply.native, self.request.given)
        if reply.calls > 1:
            return Unusable(f"There are {reply.calls} tool calls. Make exactly one.")
        if self.form is None:
            return parse_output(reply.text, self.request.role.output)
        return read(self.form, reply.text, self.request)

    def again(self, ask: Ask, text: str, problem: Unusable) -> Ask:
        said = correction(text, problem)
        return replace(ask, messages=ask.messages + said, corrections=ask.corrections + said)

    def sampled(self, ask: Ask, reply: Reply) -> None:
        """Providers give no token ids."""

    def accepted(self, ask: Ask, reply: Reply, output: Any) -> Answer:
        sampling = sampling_of(ask) | {"form": self.form.name if self.form else ask.form}
        if ask.options.stream:
            sampling["stream"] = True
        if reply.estimated:
            sampling["usage_estimated"] = True
        if ask.native is not None and self.request.role.native is not None:
            text = self.request.role.native.write(output)
            return Answer(output, text, ask.choice.model, ask.messages, sampling)
        spans = spans_of(self.form, reply.text)
        return Answer(output, reply.text, ask.choice.model, ask.messages, sampling, spans=spans)

    def remedy(self, kind: FailureKind) -> str:
        if kind is not FailureKind.REFUSED_KEY:
            return ""
        variable = key_variable(self.provider)
        return f" Set a valid {variable} where the workers run, or choose another engine."
