"""Engine for all providers of litellm.

It renders a role as a request and parses the reply as the role's output.

Retries, corrections and budgets are in `role_call`.
"""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from offing import environment
from offing.core.errors import InvalidInput
from offing.core.model import EngineFailure, EngineResponse, FailureKind, InvalidOutput
from offing.core.run import StopReason
from offing.models.call_limits import find_operator_limit
from offing.models.call_slots import SlotGate, get_call_slots
from offing.models.credentials import EngineEndpoint, key_variable, resolve_endpoint
from offing.models.endpoint_pauses import EndpointGate, get_pauses, identify_endpoint
from offing.models.engine import RoleRequest
from offing.models.fallbacks import answer_in_order
from offing.models.litellm_client import (
    LitellmReply,
    can_stream,
    choose_output_mode,
    estimate_price,
    estimate_usage,
    get_litellm,
    send_request,
)
from offing.models.litellm_redirects import send_only_key
from offing.models.litellm_request import (
    LitellmOptions,
    LitellmRequest,
    OutputMode,
    add_schema_instructions,
    build_sampling_params,
    estimate_prompt_tokens,
    estimate_tokens,
    parse_options,
    raise_completion,
    reduce_completion,
)
from offing.models.model_limits import RoleLimits, get_timeout_seconds, resolve_model_limits
from offing.models.output_choice import add_choices
from offing.models.output_repair import ReadOutput, describe_repairs, read_completion
from offing.models.prompt_formats import (
    RolePromptFormat,
    cut_at_stop,
    describe_format,
    label_spans,
    select_format,
)
from offing.models.reservation import Reservation
from offing.models.retry import RetryPolicy, shorten_patience
from offing.models.role_call import (
    AttemptFailure,
    BudgetCutOff,
    CallSettings,
    RoleCallRunner,
    correction_messages,
    truncated_output,
)
from offing.models.stored_provider import resolve_stored_endpoint
from offing.models.structured_output import Schema
from offing.models.text_stream import StreamProgress
from offing.models.thinking import describe_overflow, took_the_room
from offing.sdk.native_chat import NativeChatAdapter
from offing.telemetry.redaction import bind_secrets


@dataclass(frozen=True, slots=True)
class LitellmEngine:
    """Stateless engine. Clock, sleep and randomness are parameters."""

    env: Mapping[str, str] = field(default_factory=lambda: environment.VARIABLES)
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random_float: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic

    async def answer(self, request: RoleRequest) -> EngineResponse | EngineFailure:
        """Return the response. A selected prompt format is rendered as text, without a schema.

        Runs pin the limits of their engines. Those of judges and other calls outside runs are resolved here.
        """
        if not request.engine_config.fallbacks:
            return await self._answer_one(request)
        return await answer_in_order(request, self._answer_one, self.clock)

    async def _answer_one(self, request: RoleRequest) -> EngineResponse | EngineFailure:
        with bind_secrets():
            request, endpoint = await self._resolve_endpoint(request)
            with send_only_key(endpoint.stored_key if isinstance(endpoint, EngineEndpoint) else ""):
                return await self._answer(request, endpoint)

    async def _resolve_endpoint(self, request: RoleRequest) -> tuple[RoleRequest, EngineEndpoint | EngineFailure]:
        """Return the endpoint of the call. A stored provider of the tenant takes precedence over the environment."""
        engine_config = request.engine_config
        stored = await request.find_provider(engine_config.model.partition("/")[0])
        if stored is None or isinstance(stored, EngineFailure):
            return request, stored or resolve_endpoint(engine_config, self.env)
        engine_config, endpoint = resolve_stored_endpoint(engine_config, stored, self.env)
        return replace(request, engine_config=engine_config), endpoint

    async def _answer(
        self, request: RoleRequest, endpoint: EngineEndpoint | EngineFailure
    ) -> EngineResponse | EngineFailure:
        request = _resolve_limits(request)
        options = parse_options(request.engine_config)
        prompt_format = select_format(request)
        for problem in (options, endpoint, prompt_format):
            if isinstance(problem, EngineFailure):
                return problem
        assert not isinstance(options, EngineFailure)
        assert not isinstance(endpoint, EngineFailure)
        assert not isinstance(prompt_format, EngineFailure)
        if prompt_format is None and request.role.native_chat is not None:
            return await self._answer_native_chat(request, options, endpoint, request.role.native_chat)
        output_mode: OutputMode = "text"
        if prompt_format is None:
            output_mode = (
                options.output_mode
                if options.output_mode != "auto"
                else await choose_output_mode(request.engine_config.model)
            )
        schema: Schema = {} if prompt_format else _build_schema(request)
        prompt = prompt_format.render(request.inputs) if prompt_format else request.role.render(request.inputs)
        if prompt_format is None:
            prompt = add_schema_instructions(prompt, output_mode, json.dumps(schema, ensure_ascii=False))
        attempt_request = LitellmRequest(
            request.engine_config, options, endpoint, output_mode, schema, prompt, request.seed
        )
        return await self._run(request, prompt_format, attempt_request)

    async def _answer_native_chat(
        self,
        request: RoleRequest,
        options: LitellmOptions,
        endpoint: EngineEndpoint,
        native: NativeChatAdapter[Any, Any],
    ) -> EngineResponse | EngineFailure:
        """Answer as a native chat with the role's own tools. It is recorded as text."""
        chat, prompt = native.build_chat(request.inputs), request.role.render(request.inputs)
        attempt_request = LitellmRequest(
            request.engine_config, options, endpoint, "native", {}, prompt, request.seed, native_chat=chat
        )
        return await self._run(request, None, attempt_request)

    async def _run(
        self, request: RoleRequest, prompt_format: RolePromptFormat | None, attempt_request: LitellmRequest
    ) -> EngineResponse | EngineFailure:
        policy = shorten_patience(self.retry_policy) if request.has_fallback else self.retry_policy
        try:
            slot_gate = self._open_slot_gate(attempt_request)
        except InvalidInput as error:
            return EngineFailure(FailureKind.BAD_REQUEST, str(error))
        gate = self._open_gate(attempt_request)
        settings = CallSettings(policy, self.sleep, self.random_float, self.clock, gate, slot_gate)
        attempt_request = replace(attempt_request, streams=await _choose_streaming(request, attempt_request.options))
        adapter = _LitellmAdapter(request, prompt_format, self.clock, attempt_request.endpoint.stored_name)
        return await RoleCallRunner(adapter, request, settings).run(attempt_request)

    def _open_gate(self, request: LitellmRequest) -> EndpointGate:
        model = request.engine_config.model
        return EndpointGate(identify_endpoint(model, request.endpoint), model, get_pauses(), self.sleep, self.clock)

    def _open_slot_gate(self, request: LitellmRequest) -> SlotGate | None:
        provider, endpoint = request.engine_config.model.partition("/")[0], request.endpoint
        of_operator = find_operator_limit(provider, endpoint.api_base, self.env, is_stored=bool(endpoint.stored_name))
        limits = [limit for limit in (endpoint.stored_limit, of_operator) if limit is not None]
        return SlotGate(limits, get_call_slots(), self.clock) if limits else None


def _build_schema(request: RoleRequest) -> Schema:
    """Return the schema of the role's output, with the values that are possible for these inputs."""
    schema = request.role.output.model_json_schema()
    return add_choices(schema, request.role.choices(request.inputs)) if request.role.choices else schema


async def _choose_streaming(request: RoleRequest, options: LitellmOptions) -> bool:
    """Return whether to stream: as configured, otherwise if someone may watch and the provider can stream."""
    if options.stream is not None:
        return options.stream
    return request.text_listener is not None and await can_stream(request.engine_config.model)


@dataclass(frozen=True, slots=True)
class _LitellmAdapter:
    """Provider adapter of litellm for one role call."""

    request: RoleRequest
    prompt_format: RolePromptFormat | None
    clock: Callable[[], float] = time.monotonic
    stored_name: str = ""
    """Name of the stored provider that is called. Empty means that there is none."""
    progress: StreamProgress = field(default_factory=StreamProgress)

    @property
    def provider(self) -> str:
        return self.request.engine_config.model.partition("/")[0]

    async def estimate_max_usage(self, request: LitellmRequest) -> tuple[int, Decimal]:
        prompt = estimate_prompt_tokens(request)
        limit = request.max_completion_tokens
        max_cost_usd = await estimate_price(request.engine_config.model, prompt, limit)
        return prompt + limit, max_cost_usd or Decimal()

    async def send(
        self, request: LitellmRequest, timeout_seconds: float, reservation: Reservation
    ) -> LitellmReply | AttemptFailure:
        """Send the request. If a stream is interrupted, the usage of the received text is estimated and charged."""
        on_text = self.progress.start(self.clock, self.request.text_listener)
        request = replace(request, timeout_seconds=timeout_seconds, streamed_texts=[], on_text=on_text)
        is_complete = False
        try:
            async with asyncio.timeout(timeout_seconds):
                outcome = await send_request(request)
            is_complete = isinstance(outcome, LitellmReply)
        except TimeoutError:
            outcome = AttemptFailure(FailureKind.TIMEOUT, f"No complete response within {timeout_seconds:g} s.")
        finally:
            if not is_complete and request.streamed_texts:
                reservation.usage = estimate_usage(await get_litellm(), request, "".join(request.streamed_texts))
        if isinstance(outcome, AttemptFailure):
            return replace(outcome, usage=reservation.usage, text="".join(request.streamed_texts))
        reservation.usage = outcome.usage
        return replace(outcome, text=cut_at_stop(self.prompt_format, outcome.text))

    def read_output(self, request: LitellmRequest, reply: LitellmReply) -> Any | InvalidOutput:
        """Read the reply as a `ReadOutput`. A native chat is read as the role's output itself."""
        if reply.finish_reason == "length":
            return _describe_cut_off(request, reply)
        if request.native_chat is not None and self.request.role.native_chat is not None:
            return self.request.role.native_chat.parse_reply(reply.text, reply.native_calls, self.request.inputs)
        if reply.tool_call_count > 1:
            return InvalidOutput(f"There are {reply.tool_call_count} tool calls. Make exactly one.")
        return read_completion(self.prompt_format, reply.text, self.request)

    def build_correction(self, request: LitellmRequest, text: str, problem: InvalidOutput) -> LitellmRequest:
        messages = correction_messages(text, problem)
        return replace(request, messages=request.messages + messages, corrections=request.corrections + messages)

    def timeout_seconds(self, request: LitellmRequest) -> float:
        return get_timeout_seconds(request.engine_config, request.max_completion_tokens)

    def reduce_completion(self, request: LitellmRequest, reason: StopReason) -> LitellmRequest | None:
        return reduce_completion(request, reason)

    def raise_completion(self, request: LitellmRequest) -> LitellmRequest | None:
        return raise_completion(request)

    def sampled_completion(self, request: LitellmRequest, reply: LitellmReply) -> None:
        """Return `None`, because providers send no token ids."""

    def build_response(self, request: LitellmRequest, reply: LitellmReply, output: Any) -> EngineResponse:
        sampling = build_sampling_params(request) | describe_format(self.prompt_format, request.output_mode)
        if request.streams:
            sampling["stream"] = True
        if self.progress.first_text_ms is not None:
            sampling["first_text_ms"] = self.progress.first_text_ms
        if reply.usage_estimated:
            sampling["usage_estimated"] = True
        if request.native_chat is not None and self.request.role.native_chat is not None:
            text, spans = self.request.role.native_chat.render_output(output), ()
        else:
            assert isinstance(output, ReadOutput)
            sampling |= describe_repairs(output, reply.text)
            output, text, spans = output.output, output.text, label_spans(self.prompt_format, output.text)
        model, first_text_ms = request.engine_config.model, self.progress.first_text_ms
        return EngineResponse(output, text, model, request.messages, sampling, spans=spans, first_text_ms=first_text_ms)

    def remedy(self, kind: FailureKind) -> str:
        if kind is not FailureKind.AUTHENTICATION_FAILED:
            return ""
        if self.stored_name:
            return f" Set a valid key with `offing provider add {self.stored_name}`, or choose another engine."
        variable = key_variable(self.provider)
        return f" Set a valid {variable} where the workers run, or choose another engine."


def _resolve_limits(request: RoleRequest) -> RoleRequest:
    config = request.engine_config
    if config.answer_tokens is not None or config.max_tokens is not None:
        return request
    return replace(request, engine_config=resolve_model_limits(config, RoleLimits(request.role.answer_tokens)))


def _describe_cut_off(request: LitellmRequest, reply: LitellmReply) -> InvalidOutput:
    """Describe why a reply that reached its limit is incomplete: thinking, the budget, or its own length."""
    limit, room = request.max_completion_tokens, request.engine_config.thinking_tokens or 0
    thinking = reply.usage.reasoning_tokens or estimate_tokens(reply.thinking)
    overflow = describe_overflow(limit, thinking) if took_the_room(reply.text, thinking, room, reply.usage) else None
    if request.reduced_by is not None:
        cause = f" {overflow.problem}" if overflow else ""
        problem = (
            f"The answer was cut off at {limit} tokens: {request.reduced_by.replace('_', ' ')} left no more.{cause}"
        )
        return BudgetCutOff(problem, request.reduced_by)
    return overflow or truncated_output(limit)
