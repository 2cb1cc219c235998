"""Policies by name and version, asked token by token: how a role becomes a request, and a reply an answer with a trace.

Knows no server but through `policy_wire`. Retries, re-asks and budgets are `role_call`'s. Never asks another version
than the one chosen.
"""

import asyncio
import json
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from offing.core.model import Answer, EngineChoice, EngineFailure, FailureKind, Message, Sampled, Unusable
from offing.models.credentials import ENGINE_KEY, Destination, policy_destination
from offing.models.engine import RoleRequest
from offing.models.forms import COMPACT, PLAIN, RoleForm, asked_form, read, spans_of
from offing.models.litellm_request import tokens_of, with_schema
from offing.models.metering import Booking
from offing.models.policy_http import post
from offing.models.policy_wire import (
    CHAT,
    COMPLETIONS,
    OtherModel,
    PolicyAsk,
    PolicyReply,
    Prefix,
    Scores,
    body_of,
    reply_of,
    sampling_of,
    scores_of,
    scoring_body,
)
from offing.models.retry import RetryPolicy
from offing.models.role_call import REASKS, Manners, Refusal, RoleCall, correction, cut_off

PATIENT = RetryPolicy(attempts=6, base=2.0, cap=10.0)
"""Seconds: 17 in all on average, 34 at most. An engine that is started again has to load its weights first."""


class PolicyOptions(BaseModel):
    """`choice.options` of the policy engine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=0)
    """0: all tokens."""
    stop: tuple[str, ...] = ()
    """Beside those of the role's form."""
    reasks: int = Field(default=REASKS, ge=0, le=5)
    """How often an answer that cannot be used is asked for again. 0: it ends the call, as training may want."""
    logprobs_mode: Literal["", "processed_logprobs"] = ""
    """How the server was started, where it does not say so itself."""


@dataclass(frozen=True, slots=True)
class PolicyEngine:
    """Stateless between calls; clock, sleep and randomness come in."""

    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    policy: RetryPolicy = PATIENT
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic

    async def answer(self, request: RoleRequest) -> Answer | EngineFailure:
        """See `Engine`. UNKNOWN_VERSION: the server does not have that version."""
        options = options_of(request.choice)
        to = policy_destination(request.choice, self.env)
        form = asked_form(request, otherwise=PLAIN)
        if isinstance(options, EngineFailure):
            return options
        if isinstance(to, EngineFailure):
            return to
        if isinstance(form, EngineFailure):
            return form
        ask = await _first(request, options, form)
        manners = Manners(self.policy, self.sleep, self.draw, self.clock)
        return await RoleCall(_PolicyWire(request, to, form), request, manners, options.reasks).run(ask)


@dataclass(slots=True)
class _PolicyWire:
    """The policy server's side of one role call."""

    request: RoleRequest
    to: Destination
    form: RoleForm | None
    asked: int = 1
    """Prompts sent so far, retries not counted."""
    provider: str = "offing"

    async def worst(self, ask: PolicyAsk) -> tuple[int, Decimal]:
        known = len(ask.prefix.token_ids) if ask.prefix else 0
        new = ask.messages[ask.prefix.messages :] if ask.prefix else ask.messages
        prompt = known + tokens_of(*(m.text for m in new)) + 4 * len(new) + 8
        return prompt + ask.max_tokens, Decimal()

    async def send(self, ask: PolicyAsk, seconds: float, booking: Booking) -> PolicyReply | Refusal:
        raw = await post(self.to, CHAT, body_of(ask), seconds)
        if isinstance(raw, Refusal):
            return raw
        try:
            reply = reply_of(raw, ask)
        except OtherModel as error:
            return Refusal(FailureKind.UNKNOWN_VERSION, str(error))
        except ValueError as error:
            line = next(iter(str(error).splitlines()), "")
            return Refusal(FailureKind.OVERLOADED, f"The policy engine's answer cannot be read: {line}")
        booking.used = reply.usage
        return reply

    def read(self, ask: PolicyAsk, reply: PolicyReply) -> Any | Unusable:
        if reply.finish == "length":
            return cut_off(ask.max_tokens)
        if "\0" in reply.text:  # the database cannot hold one, and ids whose text was changed would be no record
            return Unusable("The answer has a NUL character. Leave it out.")
        return read(self.form, reply.text, self.request)

    def again(self, ask: PolicyAsk, text: str, problem: Unusable) -> PolicyAsk:
        """The correction in words; a compact prompt, which has none, is sampled again with another seed."""
        self.asked += 1
        ask = replace(ask, seed=seed_of(self.request, self.asked))
        if self.form is not None and self.form.name == COMPACT:
            return ask
        return replace(ask, messages=ask.messages + correction(text, problem))

    def sampled(self, ask: PolicyAsk, reply: PolicyReply) -> Sampled | None:
        if reply.trace is None:
            return None
        return Sampled(ask.model, ask.messages, self._sampling(ask, reply), reply.trace)

    def accepted(self, ask: PolicyAsk, reply: PolicyReply, output: Any) -> Answer:
        return Answer(
            output,
            reply.text,
            ask.model,
            ask.messages,
            self._sampling(ask, reply),
            trace=reply.trace,
            untraced=reply.untraced,
            spans=spans_of(self.form, reply.text),
        )

    def _sampling(self, ask: PolicyAsk, reply: PolicyReply) -> dict[str, Any]:
        sampling = sampling_of(ask) | {"form": self.form.name if self.form else "json"}
        return sampling | ({"prefix": True} if reply.prefix_used else {})

    def remedy(self, kind: FailureKind) -> str:
        if kind is FailureKind.UNKNOWN_VERSION:
            return f" Load {self.request.choice.model} into the engine, or choose a version that it has."
        return f" Set {ENGINE_KEY} to the engine's token." if kind is FailureKind.REFUSED_KEY else ""


def options_of(choice: EngineChoice) -> PolicyOptions | EngineFailure:
    """BAD_REQUEST: names the first field that cannot be used."""
    name, at, version = choice.model.rpartition("@")
    if not (name and at and version):
        problem = f"model: {choice.model!r} names no version. Write NAME@VERSION."
        return EngineFailure(FailureKind.BAD_REQUEST, problem)
    try:
        return PolicyOptions.model_validate(choice.options)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, ("options", *first["loc"])))
        known = ", ".join(PolicyOptions.model_fields)
        return EngineFailure(FailureKind.BAD_REQUEST, f"{place}: {first['msg']}. Known are {known}.")


def seed_of(request: RoleRequest, asked: int) -> int:
    """The seed of a call's nth prompt: another one for each call and each run, the same when a run is repeated."""
    named = f"{request.seed}\0{request.role.name}\0{request.turn}\0{request.place}\0{asked}"
    return int.from_bytes(blake2b(named.encode(), digest_size=8).digest()) >> 1


async def scored(
    to: Destination, model: str, ids: Sequence[int], sampling: dict[str, Any], *, most: int, seconds: float = 120.0
) -> Scores | Refusal:
    """Log-probability of each id after those before it, under a policy version.

    `sampling`: as the ids were sampled; our engine scores the distribution that follows from it, vLLM the plain one.
    """
    raw = await post(to, COMPLETIONS, scoring_body(model, ids, sampling, most=most), seconds)
    if isinstance(raw, Refusal):
        return raw
    try:
        return scores_of(raw, ids)
    except ValueError as error:
        return Refusal(FailureKind.BAD_REQUEST, f"The server does not score prompts as vLLM does: {error}")


async def _first(request: RoleRequest, options: PolicyOptions, form: RoleForm | None) -> PolicyAsk:
    choice, messages = request.choice, _rendered(request, form)
    return PolicyAsk(
        model=choice.model,
        messages=messages,
        max_tokens=choice.max_tokens,
        seed=seed_of(request, 1),
        temperature=1.0 if choice.temperature is None else choice.temperature,
        top_p=options.top_p,
        top_k=options.top_k,
        stop=tuple(dict.fromkeys((*(form.stop if form else ()), *options.stop))),
        prefix=await _prefix(request, messages),
        processed=bool(options.logprobs_mode),
    )


def _rendered(request: RoleRequest, form: RoleForm | None) -> tuple[Message, ...]:
    if form is not None:
        return form.render(request.given)
    schema = json.dumps(request.role.output.model_json_schema(), ensure_ascii=False)
    return with_schema(request.role.render(request.given), "text", schema)


async def _prefix(request: RoleRequest, messages: Sequence[Message]) -> Prefix | None:
    """The very tokens of the latest turn that the prompt repeats. None: it repeats none, or they are not known."""
    last = max((n for n, message in enumerate(messages) if message.turn), default=None)
    if last is None:
        return None
    ids = await request.recall(messages[: last + 1])
    return Prefix(ids, last + 1) if ids else None
