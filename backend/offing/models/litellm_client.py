"""The only importer of litellm: one attempt in, a reply or a typed refusal out.

litellm takes seconds to import and wants to fetch things while it does; both are dealt with here, once. Knows no role
and no budget, and never retries.
"""

import asyncio
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from typing import Any

from offing.core.model import FailureKind, Usage
from offing.models.litellm_failures import refusal_of
from offing.models.litellm_redirects import noted_redirects, refuse_redirects
from offing.models.litellm_request import Ask, Form, arguments, prompt_tokens_of, tokens_of
from offing.models.role_call import Refusal
from offing.sdk.native import NativeCall
from offing.telemetry.redaction import without_secrets

SELF_HOSTED = frozenset({"ollama", "ollama_chat", "hosted_vllm", "vllm", "lm_studio", "llamafile"})
"""Nobody bills for these, and asking litellm about them would ask their servers, in the middle of the event loop."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the provider wrote, not yet looked at."""

    text: str
    finish: str
    """Why it stopped: stop, tool_calls, length, content_filter. Empty: it did not say."""
    usage: Usage
    estimated: bool = False
    """The provider gave no usage; the figures are ours."""
    calls: int = 0
    """Tool calls made."""
    native: tuple[NativeCall, ...] = ()
    """The same, for a chat with tools; `text` is then what was said beside them."""


async def complete(ask: Ask) -> Reply | Refusal:
    """One request. Whatever a provider or litellm raises becomes a `Refusal`; only cancellation passes through."""
    litellm = await loaded()
    with noted_redirects(keyless=ask.to.keyless) as redirects:
        try:
            response = await litellm.acompletion(**arguments(ask))
            if ask.options.stream:
                return await _streamed(litellm, ask, response)
            return _reply(litellm, ask, response, billed=_usage_given(response))
        except Exception as error:
            return Refusal(FailureKind.BAD_REQUEST, redirects[0]) if redirects else refusal_of(litellm, error)


async def form_for(ask_model: str) -> Form:
    """The strictest way to ask this model for a form, by litellm's own table."""
    if _provider(ask_model) in SELF_HOSTED:
        return "schema"
    litellm = await loaded()
    if litellm.supports_response_schema(ask_model):
        return "schema"
    return "tool" if litellm.supports_function_calling(ask_model) else "text"


async def price(model: str, prompt_tokens: int, completion_tokens: int) -> Decimal | None:
    """US dollars by the price list that came with litellm; nothing is fetched. None: not listed."""
    return _listed_price(await loaded(), model, prompt_tokens, completion_tokens)


async def loaded() -> Any:
    """litellm, imported off the event loop by whoever needs it first."""
    return sys.modules["litellm"] if _ready.is_set() else await asyncio.to_thread(_load)


_ready = threading.Event()
"""Imported and configured; the import alone is not enough."""


def _load() -> Any:
    """Import with everything off that calls home, reads files, retries, follows redirects or repeats prompts."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    os.environ.setdefault("LITELLM_DISABLE_BUG_REPORT_LINK", "True")
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
    litellm.disable_hf_tokenizer_download = True
    refuse_redirects()
    _ask_no_server_about_models()
    for chatty in loggers:
        chatty.handlers.clear()
    for hooks in (litellm.callbacks, litellm.success_callback, litellm.failure_callback):
        hooks.clear()  # pyright: ignore[reportUnknownMemberType]
    _ready.set()
    return litellm


def _ask_no_server_about_models() -> None:
    """litellm asks Ollama and Lemonade what a model can do, with the provider's key: at their usual addresses, which
    are not where the call goes and which nobody may have accepted, and in the middle of the event loop."""
    import_module("litellm.llms.ollama.common_utils").OllamaModelInfo.get_runtime_model_info = _model_unasked
    import_module("litellm.llms.lemonade.chat.transformation").LemonadeChatConfig.get_model_info = _model_unasked


def _model_unasked(_config: Any, model: str, *_: Any, **__: Any) -> dict[str, Any]:
    """What litellm takes for the answer where none comes."""
    free = {"mode": "chat", "input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
    return {"key": model, **free, "max_tokens": None, "max_input_tokens": None, "max_output_tokens": None}


async def _streamed(litellm: Any, ask: Ask, stream: Any) -> Reply:
    """Collect a stream. Raises `ConnectionError` for one that ends before the provider said that it had finished."""
    chunks: list[Any] = []
    async with aclosing(stream):
        async for chunk in stream:
            chunks.append(chunk)
            ask.pieces.extend(_pieces(chunk))
    if not stream.received_finish_reason:
        raise ConnectionError("the stream ended before the answer did")
    whole = litellm.stream_chunk_builder(chunks)
    return _reply(litellm, ask, whole, billed=any(_usage_given(chunk) for chunk in stream.chunks))


def _pieces(chunk: Any) -> Iterable[str]:
    for choice in chunk.choices:
        yield choice.delta.content or ""
        for call in choice.delta.tool_calls or ():
            yield call.function.arguments or ""


def _reply(litellm: Any, ask: Ask, response: Any, *, billed: bool) -> Reply:
    if not response.choices:
        raise ConnectionError("the provider answered without any choice")
    choice = response.choices[0]
    calls: list[Any] = choice.message.tool_calls or []
    text: str = (calls[0].function.arguments if calls else choice.message.content) or ""
    usage = _usage(litellm, ask, response) if billed else estimated_usage(litellm, ask, text)
    if ask.native is not None:
        found = tuple(NativeCall(_said(call.function.name), _said(call.function.arguments)) for call in calls)
        said = _said(choice.message.content)
        return Reply(said, choice.finish_reason or "", usage, not billed, len(calls), found)
    return Reply(_said(text), choice.finish_reason or "", usage, not billed, len(calls))


def _said(text: str | None) -> str:
    """What a provider's server wrote, without a key that it may have been given and repeats."""
    clean: str = without_secrets((text or "").replace("\x00", ""))
    return clean


def estimated_usage(litellm: Any, ask: Ask, text: str) -> Usage:
    """Our own count, where the provider gave none."""
    prompt, completion = prompt_tokens_of(ask), tokens_of(text)
    usd = _listed_price(litellm, ask.choice.model, prompt, completion)
    return Usage(prompt, completion, usd or Decimal(), priced=usd is not None)


def _usage_given(response: Any) -> bool:
    usage = getattr(response, "usage", None)
    return bool(usage and (usage.prompt_tokens or usage.completion_tokens))


def _usage(litellm: Any, ask: Ask, response: Any) -> Usage:
    """The provider's tokens, and their price with cached and reasoning tokens as the list has them."""
    given, usd = response.usage, _response_price(litellm, ask.choice.model, response)
    tokens = given.prompt_tokens or 0, given.completion_tokens or 0
    return Usage(*tokens, usd or Decimal(), priced=usd is not None)


def _response_price(litellm: Any, model: str, response: Any) -> Decimal | None:
    if _provider(model) in SELF_HOSTED:
        return Decimal()
    try:
        return _money(litellm.completion_cost(completion_response=response, model=model))
    except Exception as error:
        return _unlisted(error)


def _listed_price(litellm: Any, model: str, prompt: int, completion: int) -> Decimal | None:
    if _provider(model) in SELF_HOSTED:
        return Decimal()
    try:
        parts = litellm.cost_per_token(model=model, prompt_tokens=prompt, completion_tokens=completion)
    except Exception as error:
        return _unlisted(error)
    return _money(sum(parts))


def _unlisted(error: Exception) -> None:
    """A model that is not in the list is an expected answer, raised in several shapes; anything else is a surprise."""
    known = ("ModelNotMappedError", "NotFoundError", "BadRequestError")
    if type(error).__name__ not in known and "mapped" not in str(error):
        raise error


def _money(usd: float) -> Decimal:
    return Decimal(repr(round(usd, 12)))


def _provider(model: str) -> str:
    return model.partition("/")[0]
