"""Client of litellm: one request in, a reply or an attempt failure out.

Only this module imports litellm. Its import takes seconds and makes requests, so it happens once,
in a thread, with that switched off. Nothing is retried here.
"""

import asyncio
import logging
import sys
import threading
import warnings
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from typing import Any

from offing import environment
from offing.core.model import FailureKind, Usage
from offing.models.litellm_failures import failure_from_error
from offing.models.litellm_redirects import collect_rejected_redirects, disable_redirects
from offing.models.litellm_request import (
    LitellmRequest,
    OutputMode,
    build_arguments,
    estimate_prompt_tokens,
    estimate_tokens,
)
from offing.models.model_table import SELF_HOSTED_PROVIDERS
from offing.models.role_call import AttemptFailure
from offing.models.thinking import split_thinking
from offing.sdk.native_chat import NativeCall
from offing.telemetry.redaction import remove_secrets


@dataclass(frozen=True, slots=True)
class LitellmReply:
    """Response of a provider before it is parsed."""

    text: str
    finish_reason: str
    """Finish reason: stop, tool_calls, length or content_filter. Empty if the provider sent none."""
    usage: Usage
    usage_estimated: bool = False
    """The provider sent no usage, and the numbers are estimated."""
    tool_call_count: int = 0
    """Number of tool calls."""
    native_calls: tuple[NativeCall, ...] = ()
    """Tool calls of a chat with tools. `text` is then the text in addition to them."""
    thinking: str = ""
    """What the model thought before the answer, if the provider sent it."""


async def send_request(request: LitellmRequest) -> LitellmReply | AttemptFailure:
    """Send one request. Every error becomes an `AttemptFailure`; only cancellation is raised."""
    litellm = await get_litellm()
    with collect_rejected_redirects(keyless=request.endpoint.keyless) as redirects:
        try:
            response = await litellm.acompletion(**build_arguments(request))
            if request.streams:
                return await _collect_stream(litellm, request, response)
            return _build_reply(litellm, request, response, billed=_has_usage(response))
        except Exception as error:
            return (
                AttemptFailure(FailureKind.BAD_REQUEST, redirects[0])
                if redirects
                else failure_from_error(litellm, error)
            )


async def call_litellm(function: str, arguments: Mapping[str, Any], *, keyless: bool) -> Any | AttemptFailure:
    """Call `aembedding` or `arerank` and return litellm's response. Errors as for `send_request`."""
    litellm = await get_litellm()
    with collect_rejected_redirects(keyless=keyless) as redirects:
        try:
            return await getattr(litellm, function)(**arguments)
        except Exception as error:
            return (
                AttemptFailure(FailureKind.BAD_REQUEST, redirects[0])
                if redirects
                else failure_from_error(litellm, error)
            )


async def price_embedding(model: str, response: Any, estimated_tokens: int) -> Usage:
    """Return the usage of an embedding response. The estimate counts if the provider sent no usage."""
    litellm, reported = await get_litellm(), getattr(response.usage, "prompt_tokens", None) or 0
    if reported:
        cost_usd = _price_response(litellm, model, response)
    else:
        cost_usd = _price_tokens(litellm, model, estimated_tokens, 0)
    return Usage(reported or estimated_tokens, 0, cost_usd or Decimal(), priced=cost_usd is not None)


async def price_rerank(model: str, response: Any, estimated_tokens: int) -> Usage:
    """Return the usage of a rerank response.

    Some providers bill searches instead of tokens, which then count as 0. litellm returns a price of 0
    for a model that it does not list, so 0 means unknown except for a self-hosted provider.
    """
    meta: dict[str, Any] = response.meta or {}
    billed: dict[str, int | None] = meta.get("billed_units") or {}
    tokens: dict[str, int | None] = meta.get("tokens") or {}
    counted = tokens.get("input_tokens") or billed.get("total_tokens") or 0
    if not counted and not billed.get("search_units"):
        counted = estimated_tokens
    cost_usd = _price_response(await get_litellm(), model, response) or Decimal()
    is_priced = cost_usd > 0 or _provider_of_model(model) in SELF_HOSTED_PROVIDERS
    return Usage(counted, 0, cost_usd, priced=is_priced)


async def choose_output_mode(model: str) -> OutputMode:
    """Return the strictest output mode that this model supports, according to litellm."""
    if _provider_of_model(model) in SELF_HOSTED_PROVIDERS:
        return "schema"
    litellm = await get_litellm()
    if litellm.supports_response_schema(model):
        return "schema"
    return "tool" if litellm.supports_function_calling(model) else "text"


async def can_stream(model: str) -> bool:
    """Return whether litellm can stream answers of this model."""
    if _provider_of_model(model) in SELF_HOSTED_PROVIDERS:
        return True
    litellm = await get_litellm()
    try:
        supported: list[str] | None = litellm.get_supported_openai_params(model)
    except Exception as error:
        return bool(_check_unlisted_model(error))
    return "stream" in (supported or ())


async def estimate_price(model: str, prompt_tokens: int, completion_tokens: int) -> Decimal | None:
    """Return the price in US dollars from litellm's bundled list.

    `None` means that the model is not listed.
    """
    return _price_tokens(await get_litellm(), model, prompt_tokens, completion_tokens)


async def get_litellm() -> Any:
    """Return litellm. The first call imports it in a thread."""
    return sys.modules["litellm"] if _configured.is_set() else await asyncio.to_thread(_import_litellm)


_configured = threading.Event()
"""Set when litellm is imported and configured. The import alone is not enough."""


def _import_litellm() -> Any:
    """Import litellm without its telemetry, file access, retries, redirects and changes of prompts."""
    environment.set_variable("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    environment.set_variable("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
    environment.set_default("LITELLM_MODE", "PRODUCTION")
    environment.set_default("LITELLM_DISABLE_BUG_REPORT_LINK", "True")
    warnings.filterwarnings("ignore", message="Items? .* on TypedDict class.* using the `ReadOnly` qualifier")
    loggers = [logging.getLogger(name) for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai")]
    for chatty in loggers:
        chatty.setLevel(logging.WARNING)
    import litellm

    litellm.suppress_debug_info = True
    litellm.turn_off_message_logging = True
    litellm.drop_params = False
    litellm.modify_params = False
    litellm.num_retries = 0
    # For embeddings, litellm reads 0 in `max_retries` as this number.
    litellm.DEFAULT_MAX_RETRIES = 0  # pyright: ignore[reportPrivateImportUsage]
    litellm.disable_hf_tokenizer_download = True
    disable_redirects()
    _disable_model_probes()
    for chatty in loggers:
        chatty.handlers.clear()
    for hooks in (litellm.callbacks, litellm.success_callback, litellm.failure_callback):
        hooks.clear()  # pyright: ignore[reportUnknownMemberType]
    _configured.set()
    return litellm


def _disable_model_probes() -> None:
    """Prevent litellm from asking Ollama and Lemonade about a model.

    It would send the provider's key to their default URLs, which are not the endpoint and may not be
    accepted, and block the event loop.
    """
    import_module("litellm.llms.ollama.common_utils").OllamaModelInfo.get_runtime_model_info = _no_model_info
    import_module("litellm.llms.lemonade.chat.transformation").LemonadeChatConfig.get_model_info = _no_model_info


def _no_model_info(_config: Any, model: str, *_: Any, **__: Any) -> dict[str, Any]:
    """Return the value that litellm uses when a server gives no information."""
    free = {"mode": "chat", "input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
    return {"key": model, **free, "max_tokens": None, "max_input_tokens": None, "max_output_tokens": None}


async def _collect_stream(litellm: Any, request: LitellmRequest, stream: Any) -> LitellmReply:
    """Collect a stream. Raises ConnectionError if it ends before the provider has finished."""
    chunks: list[Any] = []
    async with aclosing(stream):
        async for chunk in stream:
            chunks.append(chunk)
            text = "".join(_chunk_texts(chunk))
            request.streamed_texts.append(text)
            if request.on_text is not None and (text or _has_thoughts(chunk)):
                await request.on_text(text)
    if not stream.received_finish_reason:
        raise ConnectionError("the stream ended before the answer was complete")
    response = litellm.stream_chunk_builder(chunks)
    return _build_reply(litellm, request, response, billed=any(_has_usage(chunk) for chunk in stream.chunks))


def _chunk_texts(chunk: Any) -> Iterable[str]:
    for choice in chunk.choices:
        yield choice.delta.content or ""
        for call in choice.delta.tool_calls or ():
            yield call.function.arguments or ""


def _has_thoughts(chunk: Any) -> bool:
    return any(getattr(choice.delta, "reasoning_content", None) for choice in chunk.choices)


def _build_reply(litellm: Any, request: LitellmRequest, response: Any, *, billed: bool) -> LitellmReply:
    if not response.choices:
        raise ConnectionError("the provider's response has no choices")
    choice = response.choices[0]
    calls: list[Any] = choice.message.tool_calls or []
    thinking, content = _read_content(choice.message)
    text: str = (calls[0].function.arguments if calls else content) or ""
    usage = _read_usage(litellm, request, response) if billed else estimate_usage(litellm, request, text, thinking)
    reason = choice.finish_reason or ""
    if request.native_chat is not None:
        native_calls = tuple(
            NativeCall(_redact(call.function.name), _redact(call.function.arguments)) for call in calls
        )
        return LitellmReply(_redact(content), reason, usage, not billed, len(calls), native_calls, thinking)
    return LitellmReply(_redact(text), reason, usage, not billed, len(calls), thinking=thinking)


def _read_content(message: Any) -> tuple[str, str]:
    """Return the thinking and the text of a message. Some servers leave the thinking in the text."""
    thinking, content = split_thinking(message.content or "")
    thinking = (getattr(message, "reasoning_content", None) or "") + thinking
    return thinking, content.lstrip() if thinking else content


def _redact(text: str | None) -> str:
    """Return an error text without a key that the server may repeat."""
    clean: str = remove_secrets((text or "").replace("\x00", ""))
    return clean


def estimate_usage(litellm: Any, request: LitellmRequest, text: str, thinking: str = "") -> Usage:
    """Estimate the usage for a provider that sends none."""
    prompt, thought = estimate_prompt_tokens(request), estimate_tokens(thinking)
    completion = estimate_tokens(text) + thought
    cost_usd = _price_tokens(litellm, request.engine_config.model, prompt, completion)
    return Usage(prompt, completion, cost_usd or Decimal(), priced=cost_usd is not None, reasoning_tokens=thought)


def _has_usage(response: Any) -> bool:
    usage = getattr(response, "usage", None)
    return bool(usage and (usage.prompt_tokens or usage.completion_tokens))


def _read_usage(litellm: Any, request: LitellmRequest, response: Any) -> Usage:
    """Return the tokens that the provider sent, with the list's price of cached and reasoning tokens."""
    provider_usage, cost_usd = response.usage, _price_response(litellm, request.engine_config.model, response)
    prompt, completion = provider_usage.prompt_tokens or 0, provider_usage.completion_tokens or 0
    cached = _read_detail(provider_usage, "prompt_tokens_details", "cached_tokens")
    cached = cached or getattr(provider_usage, "cache_read_input_tokens", None) or 0
    thought = _read_detail(provider_usage, "completion_tokens_details", "reasoning_tokens")
    known = cost_usd is not None
    return Usage(prompt, completion, cost_usd or Decimal(), known, min(cached, prompt), min(thought, completion))


def _read_detail(provider_usage: Any, details: str, name: str) -> int:
    """Return a number from the details of a usage, as OpenAI names them. 0 if the provider does not send it."""
    return getattr(getattr(provider_usage, details, None), name, None) or 0


def _price_response(litellm: Any, model: str, response: Any) -> Decimal | None:
    if _provider_of_model(model) in SELF_HOSTED_PROVIDERS:
        return Decimal()
    try:
        return _round_usd(litellm.completion_cost(completion_response=response, model=model))
    except Exception as error:
        return _check_unlisted_model(error)


def _price_tokens(litellm: Any, model: str, prompt: int, completion: int) -> Decimal | None:
    if _provider_of_model(model) in SELF_HOSTED_PROVIDERS:
        return Decimal()
    try:
        parts = litellm.cost_per_token(model=model, prompt_tokens=prompt, completion_tokens=completion)
    except Exception as error:
        return _check_unlisted_model(error)
    return _round_usd(sum(parts))


def _check_unlisted_model(error: Exception) -> None:
    """Ignore an error that means an unlisted model, which litellm raises in several forms.

    Raise any other error again.
    """
    expected_errors = ("ModelNotMappedError", "NotFoundError", "BadRequestError")
    if type(error).__name__ not in expected_errors and "mapped" not in str(error):
        raise error


def _round_usd(cost_usd: float) -> Decimal:
    return Decimal(repr(round(cost_usd, 12)))


def _provider_of_model(model: str) -> str:
    return model.partition("/")[0]
