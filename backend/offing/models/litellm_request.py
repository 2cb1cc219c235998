"""One attempt as arguments of litellm, and the sampling parameters to record. litellm is not imported."""

import math
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from offing.core.model import EngineConfig, EngineFailure, FailureKind, Message
from offing.core.run import StopReason
from offing.models.credentials import EngineEndpoint
from offing.models.model_limits import find_effort, get_completion_limit
from offing.models.model_table import find_model_limits
from offing.models.structured_output import Schema, to_strict_schema
from offing.sdk.native_chat import NativeChat

OutputMode = Literal["schema", "tool", "text", "native"]
"""How structured output is requested: response_format, one forced tool, text in the prompt, or a
role's own tools.
"""

ANSWER_TOOL = "answer"
MARKED_CACHE_MODELS = ("anthropic/",)
"""Beginnings of model names whose provider caches only the part of a prompt that is marked."""
INTERACTIVE_PROVIDERS = frozenset({"github_copilot", "chatgpt", "codex"})
"""Providers for which litellm would ask the user at the terminal to log in during a call."""
NON_HTTPX_PROVIDERS = frozenset({"aiohttp_openai"})
"""Providers whose requests litellm sends through another HTTP client, which follows redirects. Use
`openai` for the same servers.
"""
MIN_COMPLETION_TOKENS = 1_024
"""Smallest number of completion tokens to which a limit is reduced so that an attempt fits."""
BYTES_PER_TOKEN = 3.5
"""Slightly below the value of English prose, so that a reservation is rarely too small."""
_UNSAFE_MODEL_NAME = re.compile(r"://|[\\?#%\x00-\x1f\x7f]|(?:^|/)\.+(?:/|$)")
"""Text that a model name must not contain, because providers put the name into the URL. litellm
accepts a whole URL as a name, and a segment of dots or an encoded slash leads outside the base
path.
"""


class LitellmSampling(BaseModel):
    """Sampling parameters that are sent unchanged if set.

    Others are rejected, so that none is silently dropped.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop: list[str] | None = None
    reasoning_effort: str | None = None
    """Level that is sent without a check. `EngineConfig.reasoning_effort` is checked against the model table."""


class LitellmOptions(BaseModel):
    """Options of an engine config for the litellm engine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stream: bool | None = None
    """Whether to stream the answer. `None` means to stream if someone may watch and the provider can stream."""
    output_mode: Literal["auto", "schema", "tool", "text"] = "auto"
    """`auto` chooses by what litellm knows about the model."""
    send_seed: bool = False
    """Whether to send the run's seed. Not every server accepts one."""
    sampling: LitellmSampling = LitellmSampling()


@dataclass(frozen=True, slots=True)
class LitellmRequest:
    """Request of one attempt."""

    engine_config: EngineConfig
    options: LitellmOptions
    endpoint: EngineEndpoint
    output_mode: OutputMode
    schema: Schema
    messages: tuple[Message, ...]
    seed: int
    timeout_seconds: float = 0.0
    """Maximum time until the response is complete. It is set when the request is sent."""
    streamed_texts: list[str] = field(default_factory=list[str])
    """Text streamed so far. It is filled during the attempt, so that an interrupted one can be charged."""
    on_text: Callable[[str], Awaitable[None]] | None = None
    """Receives each streamed text. An empty text means that the model thinks."""
    streams: bool = False
    """Whether the answer is streamed."""
    corrections: tuple[Message, ...] = ()
    """Correction messages about invalid completions, which are the last ones of `messages`."""
    native_chat: NativeChat | None = None
    """Chat in the provider's format, for the mode `native`. `messages` are then the same as text, for the
    record.
    """
    completion_tokens: int | None = None
    """Maximum completion tokens of this attempt. `None` means those of the engine config."""
    min_completion_tokens: int = 0
    """The attempt is not worth making with fewer completion tokens. 0 means a quarter of the maximum."""
    reduced_by: StopReason | None = None
    """The limit of the budget for which `completion_tokens` was reduced. `None` means that it was not."""

    @property
    def max_completion_tokens(self) -> int:
        """Maximum completion tokens of this attempt, including thinking, within the context window."""
        limit = self.completion_tokens or get_completion_limit(self.engine_config)
        context = self.engine_config.context_tokens
        left = limit if context is None else context - estimate_prompt_tokens(self)
        return min(limit, left) if left >= MIN_COMPLETION_TOKENS else limit


def parse_options(engine_config: EngineConfig) -> LitellmOptions | EngineFailure:
    """Parse the options of an engine config, or return BAD_REQUEST that names the first invalid field."""
    provider, slash, name = engine_config.model.partition("/")
    if not (slash and name) or provider in INTERACTIVE_PROVIDERS | NON_HTTPX_PROVIDERS:
        remedy = "Use provider/model with a provider that takes a key, such as openai/gpt-4o-mini."
        return EngineFailure(FailureKind.BAD_REQUEST, f"model: {engine_config.model!r} cannot be called. {remedy}")
    if _UNSAFE_MODEL_NAME.search(name):
        remedy = "Use only the name of the model. Set api_base for another server."
        return EngineFailure(FailureKind.BAD_REQUEST, f"model: {engine_config.model!r} looks like an address. {remedy}")
    try:
        return LitellmOptions.model_validate(engine_config.options)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(map(str, ("options", *first["loc"])))
        names = (
            f"options: {', '.join(LitellmOptions.model_fields)}; sampling: {', '.join(LitellmSampling.model_fields)}"
        )
        return EngineFailure(FailureKind.BAD_REQUEST, f"{location}: {first['msg']}. Supported: {names}.")


def build_sampling_params(request: LitellmRequest) -> dict[str, Any]:
    """Return the sampling parameters of this attempt by their names in the request.

    Unset ones are not sent.
    """
    sent: dict[str, Any] = {"max_tokens": request.max_completion_tokens}
    if request.engine_config.temperature is not None:
        sent["temperature"] = request.engine_config.temperature
    if request.options.send_seed:
        sent["seed"] = request.seed
    return sent | request.options.sampling.model_dump(exclude_none=True) | _build_effort(request.engine_config)


def _build_effort(engine_config: EngineConfig) -> dict[str, Any]:
    """Return the reasoning effort. `none` is not sent to a model that is known not to think."""
    effort, listed = find_effort(engine_config), find_model_limits(engine_config.model)
    is_moot = effort == "none" and listed.is_listed and not listed.supports_reasoning
    return {} if effort is None or is_moot else {"reasoning_effort": effort}


def reduce_completion(request: LitellmRequest, reason: StopReason) -> LitellmRequest | None:
    """Return the request with half of the completion tokens, so that it fits what a budget leaves.

    `None` means that they would be too few. Thinking keeps its share.
    """
    limit = request.max_completion_tokens
    least = request.min_completion_tokens or min(limit, max(MIN_COMPLETION_TOKENS, limit // 4))
    if limit <= least:
        return None
    return replace(request, completion_tokens=max(least, limit // 2), min_completion_tokens=least, reduced_by=reason)


def raise_completion(request: LitellmRequest) -> LitellmRequest | None:
    """Return the same request with twice the completion tokens, for a model that thought for too long.

    `None` means that the model cannot write noticeably more.
    """
    limit, output = request.max_completion_tokens, request.engine_config.output_tokens
    raised = replace(request, completion_tokens=min(2 * limit, output or 2 * limit), reduced_by=None)
    least = limit + limit // 4
    return replace(raised, min_completion_tokens=least) if raised.max_completion_tokens >= least else None


def build_arguments(request: LitellmRequest) -> dict[str, Any]:
    """Return the arguments of litellm's completion call. Retries are off in every layer below."""
    sent: dict[str, Any] = {
        "model": request.engine_config.model,
        "messages": _build_messages(request),
        "timeout": request.timeout_seconds,
        "num_retries": 0,
        "max_retries": 0,
        "drop_params": False,
        **build_sampling_params(request),
        **(
            _build_native_arguments(request.native_chat)
            if request.native_chat
            else _build_output_arguments(request.output_mode, request.schema)
        ),
    }
    if request.streams:
        sent |= {"stream": True, "stream_options": {"include_usage": True}}
    return sent | request.endpoint.to_arguments()


def add_schema_instructions(
    messages: Sequence[Message], output_mode: OutputMode, schema_text: str
) -> tuple[Message, ...]:
    """Put instructions for the output schema before the prompt.

    Only the mode `text` needs them. They come first, so that the prefix stays the same.
    """
    if output_mode != "text":
        return tuple(messages)
    words = f"Answer with one JSON object and nothing else. It must match this JSON schema:\n{schema_text}"
    if messages and messages[0].role == "system":
        return (Message("system", (*messages[0].parts, words)), *messages[1:])
    return (Message("system", (words,)), *messages)


def estimate_tokens(*texts: str) -> int:
    """Estimate the tokens of texts that no provider has counted."""
    return sum(math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN) for text in texts)


def estimate_prompt_tokens(request: LitellmRequest) -> int:
    """Estimate the tokens of the prompt, including the schema and message framing."""
    framing = 4 * len(request.messages) + 8
    return framing + estimate_tokens(*(m.text for m in request.messages)) + estimate_tokens(str(request.schema))


def _build_output_arguments(output_mode: OutputMode, schema: Schema) -> dict[str, Any]:
    if output_mode == "text":
        return {}
    strict = to_strict_schema(schema)
    sent_schema = strict or schema
    if output_mode == "schema":
        named = {"name": ANSWER_TOOL, "schema": sent_schema, "strict": strict is not None}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    tool = {
        "name": ANSWER_TOOL,
        "description": "Give the answer.",
        "parameters": sent_schema,
        "strict": strict is not None,
    }
    tool_choice = {"type": "function", "function": {"name": ANSWER_TOOL}}
    # Without the last argument litellm imports its MCP gateway for calls with tools, which needs another
    # package.
    return {"tools": [{"type": "function", "function": tool}], "tool_choice": tool_choice, "_skip_mcp_handler": True}


def _build_messages(request: LitellmRequest) -> list[dict[str, Any]]:
    if request.native_chat is None:
        messages = [{"role": m.role, "content": _replace_surrogates(m.text)} for m in request.messages]
        return _mark_cached_part(request.engine_config.model, messages)
    messages = [
        {**message, "content": _replace_surrogates(message["content"])} for message in request.native_chat.messages
    ]
    return messages + [{"role": m.role, "content": _replace_surrogates(m.text)} for m in request.corrections]


def _mark_cached_part(model: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mark the end of the system message for the providers that cache only what is marked.

    The system message of a role is the same in all of its calls. Other providers find the common beginning themselves.
    """
    marks = model.startswith(MARKED_CACHE_MODELS) and find_model_limits(model).supports_prompt_caching
    if not marks or not messages or messages[0]["role"] != "system" or not messages[0]["content"]:
        return messages
    block = {"type": "text", "text": messages[0]["content"], "cache_control": {"type": "ephemeral"}}
    return [{"role": "system", "content": [block]}, *messages[1:]]


def _build_native_arguments(chat: NativeChat) -> dict[str, Any]:
    if not chat.tools:
        return {}
    tool_choice = {"tool_choice": chat.tool_choice} if chat.tool_choice else {}
    return {"tools": list(chat.tools), "_skip_mcp_handler": True, **tool_choice}


def _replace_surrogates(text: str) -> str:
    """Return `text` without lone surrogates, which no request can encode."""
    return text.encode("utf-8", "replace").decode()
