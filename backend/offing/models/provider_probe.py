"""What a model can do: one short call for each capability, within a spending cap and a time limit.

The calls go through the same client, with the same address and key, as those of the litellm engine. Limits of
concurrent calls and pauses after a rate limit do not apply to them.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

from offing.core.model import EngineConfig, EngineFailure, FailureKind, Message, Usage
from offing.core.step import shorten_line
from offing.models.credentials import EngineEndpoint
from offing.models.engine import UsageMeter
from offing.models.litellm_client import SELF_HOSTED_PROVIDERS, call_litellm, estimate_price, get_litellm
from offing.models.litellm_failures import failure_from_error
from offing.models.litellm_redirects import send_only_key
from offing.models.litellm_request import (
    LitellmOptions,
    LitellmRequest,
    OutputMode,
    build_arguments,
    estimate_prompt_tokens,
    parse_options,
)
from offing.models.model_table import find_model_limits
from offing.models.role_call import AttemptFailure
from offing.models.stored_provider import StoredProvider, resolve_stored_endpoint
from offing.sdk.native_chat import NativeChat
from offing.telemetry.redaction import redact

CallName = Literal["plain answer", "tool call", "JSON schema", "streaming"]
Outcome = Literal["works", "fails", "unknown", "not tested"]

MAX_TOKENS = 1024
"""Maximum number of completion tokens of a call. A reasoning model needs some hundred before its first word."""
MAX_CALL_SECONDS = 30.0
MAX_PROBE_SECONDS = 100.0

_NUMBER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
    "additionalProperties": False,
}
_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "report_number", "description": "Report a number.", "parameters": _NUMBER_SCHEMA},
}
_PROMPTS: Mapping[CallName, str] = {
    "plain answer": "Reply with the single word: ready",
    "tool call": "Call the tool report_number with the number 7.",
    "JSON schema": 'Answer with the JSON object {"number": 7}.',
    "streaming": "Count from 1 to 20 in digits, separated by spaces.",
}
_MODES: Mapping[CallName, OutputMode] = {
    "plain answer": "text",
    "tool call": "native",
    "JSON schema": "schema",
    "streaming": "text",
}


@dataclass(frozen=True, slots=True)
class Capability:
    """One capability of a model, and what was seen."""

    name: str
    outcome: Outcome
    detail: str = ""
    cause: str = ""
    """The kind of failure of the call, such as `authentication_failed`. Empty if the call did not fail."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The capabilities of a model, and what it cost to find out."""

    model: str
    capabilities: tuple[Capability, ...]
    usage: Usage
    seconds: float

    def find(self, name: str) -> Capability:
        return next(one for one in self.capabilities if one.name == name)


@dataclass(slots=True)
class _Observations:
    """What the calls of a probe show together."""

    usage: Usage = field(default_factory=Usage)
    answered_calls: int = 0
    calls_with_usage: int = 0
    reasoning_tokens: int | None = None
    """`None` means that no call reports them."""


async def probe_provider(
    model: str,
    provider: StoredProvider,
    env: Mapping[str, str],
    meter: UsageMeter,
    max_cost_usd: Decimal,
    clock: Callable[[], float] = time.monotonic,
) -> ProbeResult | EngineFailure:
    """Try each capability of a model, whose name is without its provider.

    The failure means that the model cannot be called at all. `max_cost_usd` limits the maximum cost of each next call
    together with the cost so far; a capability that it has no room for is not tested.
    """
    started = clock()
    named = EngineConfig(engine="litellm", model=f"{provider.name}/{model}", max_tokens=MAX_TOKENS)
    engine_config, endpoint = resolve_stored_endpoint(named, provider, env)
    options = parse_options(engine_config)
    if isinstance(endpoint, EngineFailure) or isinstance(options, EngineFailure):
        return endpoint if isinstance(endpoint, EngineFailure) else options  # pyright: ignore[reportReturnType]
    probe = _Probe(engine_config, endpoint, options, meter, max_cost_usd)
    capabilities: list[Capability] = []
    with send_only_key(endpoint.stored_key):
        for name in _PROMPTS:
            remaining_seconds = MAX_PROBE_SECONDS - (clock() - started)
            if capabilities and capabilities[0].outcome != "works":
                capabilities.append(Capability(name, "not tested", "The plain answer does not work."))
            elif remaining_seconds <= 0:
                capabilities.append(Capability(name, "not tested", f"No time left of {MAX_PROBE_SECONDS:g} s."))
            else:
                capabilities.append(await probe.try_call(name, min(MAX_CALL_SECONDS, remaining_seconds)))
    known = await _describe_known(engine_config.model, probe.observations)
    return ProbeResult(named.model, (*capabilities, *known), probe.observations.usage, round(clock() - started, 2))


@dataclass(slots=True)
class _Probe:
    """The calls of one probe."""

    engine_config: EngineConfig
    endpoint: EngineEndpoint
    options: LitellmOptions
    meter: UsageMeter
    max_cost_usd: Decimal
    observations: _Observations = field(default_factory=_Observations)

    async def try_call(self, name: CallName, seconds: float) -> Capability:
        """Make one call within the spending limits."""
        request = self._build_request(name, seconds)
        prompt_tokens = estimate_prompt_tokens(request)
        cost_usd = await estimate_price(self.engine_config.model, prompt_tokens, MAX_TOKENS) or Decimal()
        if self.observations.usage.cost_usd + cost_usd > self.max_cost_usd:
            return Capability(name, "not tested", f"It may cost {cost_usd:.4f} USD, more than the cap leaves.")
        if (limit := await self.meter.reserve(prompt_tokens + MAX_TOKENS, cost_usd)) is not None:
            return Capability(name, "not tested", f"No room: {limit.replace('_', ' ')}.")
        usage = Usage()
        try:
            capability, usage = await self._send(name, request)
        finally:
            await self.meter.settle(usage)
            self.observations.usage += usage
        return capability

    async def _send(self, name: CallName, request: LitellmRequest) -> tuple[Capability, Usage]:
        started = time.monotonic()
        try:
            async with asyncio.timeout(request.timeout_seconds):
                outcome = await _collect(request)
        except TimeoutError:
            problem = f"No complete response within {request.timeout_seconds:g} s."
            return Capability(name, "fails", problem, FailureKind.TIMEOUT), Usage()
        if isinstance(outcome, AttemptFailure):
            problem = shorten_line(redact(f"{outcome.kind}: {outcome.message}"), 300)
            return Capability(name, "fails", problem, outcome.kind), Usage()
        response, chunk_count = outcome
        usage = await self._read_usage(request, response)
        seconds = time.monotonic() - started
        return _check_response(name, response, chunk_count, seconds), usage

    async def _read_usage(self, request: LitellmRequest, response: Any) -> Usage:
        """Return the usage of a response, estimated if it reports none, and note what it reports."""
        reported = getattr(response, "usage", None)
        prompt, completion = (getattr(reported, name, 0) or 0 for name in ("prompt_tokens", "completion_tokens"))
        details = getattr(reported, "completion_tokens_details", None)
        reasoning = getattr(details, "reasoning_tokens", None)
        seen = self.observations
        seen.answered_calls += 1
        seen.calls_with_usage += bool(prompt or completion)
        if reasoning or (reasoning is not None and not request.streams):  # litellm adds 0 to every stream
            seen.reasoning_tokens = (seen.reasoning_tokens or 0) + reasoning
        if not prompt and not completion:
            prompt, completion = estimate_prompt_tokens(request), MAX_TOKENS
        cost_usd = await estimate_price(self.engine_config.model, prompt, completion)
        return Usage(prompt, completion, cost_usd or Decimal(), priced=cost_usd is not None)

    def _build_request(self, name: CallName, seconds: float) -> LitellmRequest:
        messages, native = (Message("user", (_PROMPTS[name],)),), None
        if name == "tool call":
            native = NativeChat(({"role": "user", "content": _PROMPTS[name]},), (_TOOL,))
        schema = _NUMBER_SCHEMA if name == "JSON schema" else {}
        request = LitellmRequest(
            self.engine_config, self.options, self.endpoint, _MODES[name], schema, messages, 0, seconds
        )
        return replace(request, native_chat=native, streams=name == "streaming")


async def _collect(request: LitellmRequest) -> tuple[Any, int] | AttemptFailure:
    """Return the whole response and the number of its parts with text. A response that is not streamed has one."""
    response = await call_litellm("acompletion", build_arguments(request), keyless=request.endpoint.keyless)
    if isinstance(response, AttemptFailure) or not request.streams:
        return response if isinstance(response, AttemptFailure) else (response, 1)
    litellm, chunks = await get_litellm(), list[Any]()
    try:
        async for chunk in response:
            chunks.append(chunk)
    except Exception as error:
        return failure_from_error(litellm, error)
    parts = sum(any(choice.delta.content for choice in chunk.choices) for chunk in chunks)
    return litellm.stream_chunk_builder(chunks), parts


def _check_response(name: CallName, response: Any, chunk_count: int, seconds: float) -> Capability:
    """Return whether a response shows the capability. Nothing of its text is kept except the start."""
    choice = response.choices[0] if getattr(response, "choices", None) else None
    text = redact(str(choice.message.content or "")) if choice else ""
    calls: list[Any] = (choice.message.tool_calls or []) if choice else []
    match name:
        case "plain answer":
            problem = "" if text.strip() else "The answer is empty."
        case "tool call":
            problem = _find_number_problem(calls[0].function.arguments) if calls else "The tool was not called."
        case "JSON schema":
            problem = _find_number_problem(text)
        case "streaming":
            problem = "" if chunk_count > 1 else "The answer came in one part."
    if problem and choice is not None and choice.finish_reason == "length":
        problem = f"{MAX_TOKENS} tokens were not enough for an answer."
    if problem:
        return Capability(name, "fails", shorten_line(f"{problem} {text}".strip(), 200))
    parts = f" in {chunk_count} parts" if name == "streaming" else ""
    return Capability(name, "works", f"{seconds:.1f} s{parts}")


def _find_number_problem(text: str) -> str:
    try:
        answer: Any = json.loads(text)
    except ValueError:
        return "The answer is not JSON."
    is_right = isinstance(answer, dict) and isinstance(answer.get("number"), int)  # pyright: ignore[reportUnknownMemberType]
    return "" if is_right else "The answer does not match the schema."


async def _describe_known(model: str, seen: _Observations) -> tuple[Capability, ...]:
    """Return the capabilities that need no call of their own."""
    if not seen.answered_calls:
        unseen = "No call was answered."
        reported = (Capability("reasoning tokens", "unknown", unseen), Capability("usage", "unknown", unseen))
    else:
        count = seen.reasoning_tokens
        detail = "Not reported." if count is None else f"{count} reported."
        reported = (
            Capability("reasoning tokens", "unknown" if count is None else "works", detail),
            Capability(
                "usage",
                "works" if seen.calls_with_usage == seen.answered_calls else "fails",
                f"Reported by {seen.calls_with_usage} of {seen.answered_calls} answers.",
            ),
        )
    tokens = (await asyncio.to_thread(find_model_limits, model)).context_tokens
    window = (
        Capability("context window", "works", f"{tokens:,} tokens.")
        if tokens
        else Capability("context window", "unknown", "The model is not in litellm's list.")
    )
    return (*reported, window, await _describe_price(model))


async def _describe_price(model: str) -> Capability:
    if model.partition("/")[0] in SELF_HOSTED_PROVIDERS:
        return Capability("price", "works", "A server of your own has no price.")
    prices = [await estimate_price(model, *tokens) for tokens in ((1_000_000, 0), (0, 1_000_000))]
    if None in prices:
        return Capability("price", "unknown", "The model is not in litellm's list, so its calls count as free.")
    return Capability("price", "works", f"{prices[0]:.2f} USD per million prompt tokens, {prices[1]:.2f} for answers.")
