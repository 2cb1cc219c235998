"""Engine for policy versions.

It renders a role as a request and parses the reply as a response with a token trace.

The server is called through `policy_protocol`. Retries, corrections and budgets are in `role_call`.
No other version than the configured one is ever used.
"""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from offing import environment
from offing.core.model import (
    EngineConfig,
    EngineFailure,
    EngineResponse,
    FailureKind,
    InvalidOutput,
    Message,
    SampledCompletion,
)
from offing.core.run import StopReason
from offing.models.credentials import ENGINE_KEY_VARIABLE, EngineEndpoint, resolve_policy_endpoint
from offing.models.engine import RoleRequest
from offing.models.litellm_request import add_schema_instructions, estimate_tokens
from offing.models.model_limits import get_completion_limit, get_timeout_seconds
from offing.models.policy_http import post_json
from offing.models.policy_protocol import (
    CHAT_PATH,
    COMPLETIONS_PATH,
    PolicyReply,
    PolicyRequest,
    TokenPrefix,
    TokenScores,
    WrongModelError,
    build_body,
    build_sampling_params,
    build_scoring_body,
    parse_reply,
    parse_scores,
)
from offing.models.prompt_formats import (
    COMPACT_FORMATS,
    TEXT,
    RolePromptFormat,
    describe_format,
    label_spans,
    parse_completion,
    select_format,
)
from offing.models.reservation import Reservation
from offing.models.retry import RetryPolicy
from offing.models.role_call import (
    MAX_CORRECTIONS,
    AttemptFailure,
    CallSettings,
    RoleCallRunner,
    correction_messages,
    truncated_output,
)

POLICY_RETRIES = RetryPolicy(max_attempts=6, base_seconds=2.0, max_wait_seconds=10.0, retries_timeouts=False)
"""Waits of 17 s in total on average, 34 s at most. A restarted engine must load its weights first.

The same request samples the same tokens again, so one that took too long would take as long again.
"""


class PolicyOptions(BaseModel):
    """Options of an engine config for the policy engine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=0)
    """`0` means all tokens."""
    stop: tuple[str, ...] = ()
    """Stop strings in addition to those of the prompt format."""
    max_corrections: int = Field(default=MAX_CORRECTIONS, ge=0, le=5)
    """Maximum number of corrections of an invalid completion. `0` ends the call, as training may need."""
    logprobs_mode: Literal["", "processed_logprobs"] = ""
    """Log-probability mode of the server, if it does not report it."""


@dataclass(frozen=True, slots=True)
class PolicyEngine:
    """Stateless engine. Clock, sleep and randomness are parameters."""

    env: Mapping[str, str] = field(default_factory=lambda: environment.VARIABLES)
    retry_policy: RetryPolicy = POLICY_RETRIES
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random_float: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic

    async def answer(self, request: RoleRequest) -> EngineResponse | EngineFailure:
        """Return the response, or UNKNOWN_VERSION if the server does not have that version."""
        options = parse_options(request.engine_config)
        endpoint = resolve_policy_endpoint(request.engine_config, self.env)
        prompt_format = select_format(request, default=TEXT)
        if isinstance(options, EngineFailure):
            return options
        if isinstance(endpoint, EngineFailure):
            return endpoint
        if isinstance(prompt_format, EngineFailure):
            return prompt_format
        first_request = await _build_first_request(request, options, prompt_format)
        settings = CallSettings(self.retry_policy, self.sleep, self.random_float, self.clock)
        return await RoleCallRunner(
            _PolicyAdapter(request, endpoint, prompt_format), request, settings, options.max_corrections
        ).run(first_request)


@dataclass(slots=True)
class _PolicyAdapter:
    """Provider adapter of the policy server for one role call."""

    request: RoleRequest
    endpoint: EngineEndpoint
    prompt_format: RolePromptFormat | None
    prompt_count: int = 1
    """Number of different prompts sent so far, without retries."""
    provider: str = "offing"

    async def estimate_max_usage(self, request: PolicyRequest) -> tuple[int, Decimal]:
        prefix_tokens = len(request.prefix.token_ids) if request.prefix else 0
        new_messages = request.messages[request.prefix.messages :] if request.prefix else request.messages
        prompt = prefix_tokens + estimate_tokens(*(m.text for m in new_messages)) + 4 * len(new_messages) + 8
        return prompt + request.max_tokens, Decimal()

    async def send(
        self, request: PolicyRequest, timeout_seconds: float, reservation: Reservation
    ) -> PolicyReply | AttemptFailure:
        raw = await post_json(self.endpoint, CHAT_PATH, build_body(request), timeout_seconds)
        if isinstance(raw, AttemptFailure):
            return raw
        try:
            reply = parse_reply(raw, request)
        except WrongModelError as error:
            return AttemptFailure(FailureKind.UNKNOWN_VERSION, str(error))
        except ValueError as error:
            line = next(iter(str(error).splitlines()), "")
            return AttemptFailure(FailureKind.OVERLOADED, f"The policy engine's response cannot be parsed: {line}")
        reservation.usage = reply.usage
        return reply

    def read_output(self, request: PolicyRequest, reply: PolicyReply) -> Any | InvalidOutput:
        if reply.finish_reason == "length":
            return truncated_output(request.max_tokens)
        if "\0" in reply.text:  # the database cannot store NUL, and changed text would not match its ids
            return InvalidOutput("The answer has a NUL character. Leave it out.")
        return parse_completion(self.prompt_format, reply.text, self.request)

    def build_correction(self, request: PolicyRequest, text: str, problem: InvalidOutput) -> PolicyRequest:
        """Append a correction message. A compact prompt has none and is sampled again with another seed."""
        self.prompt_count += 1
        request = replace(request, seed=derive_seed(self.request, self.prompt_count))
        if self.prompt_format is not None and self.prompt_format.name in COMPACT_FORMATS:
            return request
        return replace(request, messages=request.messages + correction_messages(text, problem))

    def timeout_seconds(self, request: PolicyRequest) -> float:
        return get_timeout_seconds(self.request.engine_config, request.max_tokens)

    def reduce_completion(self, request: PolicyRequest, reason: StopReason) -> None:
        """Return `None`, because a completion that is cut off by a budget would be trained as the policy's own."""

    def raise_completion(self, request: PolicyRequest) -> None:
        """Return `None`, because the limit of a policy is fixed."""

    def sampled_completion(self, request: PolicyRequest, reply: PolicyReply) -> SampledCompletion | None:
        if reply.trace is None:
            return None
        return SampledCompletion(request.model, request.messages, self._sampling(request, reply), reply.trace)

    def build_response(self, request: PolicyRequest, reply: PolicyReply, output: Any) -> EngineResponse:
        return EngineResponse(
            output,
            reply.text,
            request.model,
            request.messages,
            self._sampling(request, reply),
            trace=reply.trace,
            missing_trace_reason=reply.no_trace_reason,
            spans=label_spans(self.prompt_format, reply.text),
        )

    def _sampling(self, request: PolicyRequest, reply: PolicyReply) -> dict[str, Any]:
        sampling = build_sampling_params(request) | describe_format(self.prompt_format, "json")
        return sampling | ({"prefix": True} if reply.prefix_used else {})

    def remedy(self, kind: FailureKind) -> str:
        if kind is FailureKind.UNKNOWN_VERSION:
            return f" Load {self.request.engine_config.model} into the engine, or use a version that it has."
        if kind is FailureKind.TIMEOUT:
            limit = _limit_completion(self.request.engine_config, self.prompt_format)
            return f" The policy may write {limit} tokens. Set a smaller max_tokens, or a larger timeout_seconds."
        return f" Set {ENGINE_KEY_VARIABLE} to the engine's token." if kind is FailureKind.AUTHENTICATION_FAILED else ""


def parse_options(engine_config: EngineConfig) -> PolicyOptions | EngineFailure:
    """Parse the options of an engine config, or return BAD_REQUEST that names the first invalid field."""
    name, at, version = engine_config.model.rpartition("@")
    if not (name and at and version):
        problem = f"model: {engine_config.model!r} has no version. Use NAME@VERSION."
        return EngineFailure(FailureKind.BAD_REQUEST, problem)
    try:
        return PolicyOptions.model_validate(engine_config.options)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(map(str, ("options", *first["loc"])))
        names = ", ".join(PolicyOptions.model_fields)
        return EngineFailure(FailureKind.BAD_REQUEST, f"{location}: {first['msg']}. Supported: {names}.")


def derive_seed(request: RoleRequest, prompt_number: int) -> int:
    """Derive the seed of a call's nth prompt.

    It differs between calls and runs, and is the same on replay.
    """
    named = f"{request.seed}\0{request.role.name}\0{request.turn}\0{request.call_path}\0{prompt_number}"
    return int.from_bytes(blake2b(named.encode(), digest_size=8).digest()) >> 1


async def score_tokens(
    endpoint: EngineEndpoint,
    model: str,
    ids: Sequence[int],
    sampling: dict[str, Any],
    *,
    max_tokens: int,
    timeout_seconds: float = 120.0,
) -> TokenScores | AttemptFailure:
    """Return the logprob of each id given those before it, under a policy version.

    `sampling` are the parameters with which the ids were sampled. Our engine scores the distribution
    that they define, and vLLM the model's own one.
    """
    raw = await post_json(
        endpoint, COMPLETIONS_PATH, build_scoring_body(model, ids, sampling, max_tokens=max_tokens), timeout_seconds
    )
    if isinstance(raw, AttemptFailure):
        return raw
    try:
        return parse_scores(raw, ids)
    except ValueError as error:
        return AttemptFailure(
            FailureKind.BAD_REQUEST, f"The server does not return prompt logprobs as vLLM does: {error}"
        )


async def _build_first_request(
    request: RoleRequest, options: PolicyOptions, prompt_format: RolePromptFormat | None
) -> PolicyRequest:
    engine_config, messages = request.engine_config, _render_prompt(request, prompt_format)
    return PolicyRequest(
        model=engine_config.model,
        messages=messages,
        max_tokens=_limit_completion(engine_config, prompt_format),
        seed=derive_seed(request, 1),
        temperature=1.0 if engine_config.temperature is None else engine_config.temperature,
        top_p=options.top_p,
        top_k=options.top_k,
        stop=tuple(dict.fromkeys((*(prompt_format.stop if prompt_format else ()), *options.stop))),
        prefix=await _find_token_prefix(request, messages),
        processed_logprobs=bool(options.logprobs_mode),
    )


def _limit_completion(engine_config: EngineConfig, prompt_format: RolePromptFormat | None) -> int:
    """Return the smaller limit of the engine config and the prompt format."""
    limit = get_completion_limit(engine_config)
    longest = prompt_format.max_tokens if prompt_format else None
    return limit if longest is None else min(limit, longest)


def _render_prompt(request: RoleRequest, prompt_format: RolePromptFormat | None) -> tuple[Message, ...]:
    if prompt_format is not None:
        return prompt_format.render(request.inputs)
    schema = json.dumps(request.role.output.model_json_schema(), ensure_ascii=False)
    return add_schema_instructions(request.role.render(request.inputs), "text", schema)


async def _find_token_prefix(request: RoleRequest, messages: Sequence[Message]) -> TokenPrefix | None:
    """Return the token prefix of the latest role call that the prompt repeats.

    `None` if there is none or its tokens are unknown.
    """
    last = max((n for n, message in enumerate(messages) if message.turn), default=None)
    if last is None:
        return None
    ids = await request.find_prefix(messages[: last + 1])
    return TokenPrefix(ids, last + 1) if ids else None
