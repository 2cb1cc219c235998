"""Handlers of the engine's requests, independent of HTTP."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from offing.core.errors import InvalidInput
from offing_engine.batch import Completion, GenerationRequest
from offing_engine.chat_template import TokenPrefix
from offing_engine.protocol import (
    ChatRequest,
    CompletionRequest,
    LoadPolicyRequest,
    TokenizeRequest,
    TokenPrefixBody,
    render_prompt_entries,
    render_token_entries,
    visible_text,
)
from offing_engine.sampling import SamplingParams
from offing_engine.scheduler import EngineScheduler
from offing_engine.weights import LoadedPolicy

SYSTEM_FINGERPRINT = f"offing-engine {version('offing')}"
ResponseBody = dict[str, Any]


def list_models(engine: EngineScheduler) -> ResponseBody:
    """Handle `GET /v1/models`."""
    return {"object": "list", "data": [_render_model(policy) for policy in engine.policies.values()]}


def _render_model(policy: LoadedPolicy) -> ResponseBody:
    kind = "full" if policy.adapter is None else "lora"
    extensions = {"kind": kind, "max_model_len": policy.max_context_tokens, **_render_hashes(policy)}
    return {
        "id": policy.name,
        "object": "model",
        "created": 0,
        "owned_by": "offing",
        "root": str(policy.path),
        **extensions,
    }


def _render_hashes(policy: LoadedPolicy) -> ResponseBody:
    hashes = policy.hashes
    return {
        "weights_sha256": hashes.weights,
        "tokenizer_sha256": hashes.tokenizer,
        "template_sha256": hashes.template,
    }


async def create_chat_completion(engine: EngineScheduler, request: ChatRequest) -> ResponseBody:
    """Handle `POST /v1/chat/completions`."""
    policy = engine.get_policy(request.model)
    prompt = policy.chat_template.render_prompt(
        request.messages, _parse_prefix(request.offing_prefix), request.template_options
    )
    max_new_tokens = request.max_completion_tokens or request.max_tokens
    completion = await _generate(engine, policy, prompt.token_ids, max_new_tokens, request)
    token_texts = policy.token_decoder.decode_each(completion.ids)
    choice = _render_choice(completion, request.return_token_ids) | {
        "message": {
            "role": "assistant",
            "content": _render_text(completion, token_texts, request.include_stop_str_in_output),
        },
        "logprobs": {"content": _render_logprobs(policy, completion, token_texts)} if request.logprobs else None,
    }
    answer = _render_response("chat.completion", policy, prompt.token_ids, completion, choice, request.return_token_ids)
    return answer if prompt.prefix_used is None else answer | {"prefix_used": prompt.prefix_used}


async def create_completion(engine: EngineScheduler, request: CompletionRequest) -> ResponseBody:
    """Handle `POST /v1/completions`."""
    policy = engine.get_policy(request.model)
    ids = _parse_prompt(policy, request.prompt)
    max_new_tokens = 16 if request.max_tokens is None else request.max_tokens
    nothing = Completion((), (), (), "length")
    _check_length(policy, ids, max_new_tokens)
    completion = await _generate(engine, policy, ids, max_new_tokens, request) if max_new_tokens else nothing
    token_texts = policy.token_decoder.decode_each(completion.ids)
    choice = _render_choice(completion, request.return_token_ids) | {
        "text": _render_text(completion, token_texts, request.include_stop_str_in_output),
        "logprobs": None
        if request.logprobs is None
        else {"content": _render_logprobs(policy, completion, token_texts)},
    }
    if request.prompt_logprobs is not None:
        choice["prompt_logprobs"] = await _score_prompt(engine, policy, ids, request)
    return _render_response("text_completion", policy, ids, completion, choice, request.return_token_ids)


async def _score_prompt(
    engine: EngineScheduler, policy: LoadedPolicy, ids: tuple[int, ...], request: CompletionRequest
) -> list[Any]:
    scores = await asyncio.to_thread(engine.score, policy.name, ids, _parse_sampling(request))
    names = {id: policy.chat_template.token_name(id) for id in {*ids, *(best for _, best, _ in scores)}}
    return list(render_prompt_entries(ids, scores, request.prompt_logprobs or 0, names))


def tokenize_request(engine: EngineScheduler, request: TokenizeRequest) -> ResponseBody:
    """Handle `POST /tokenize` for a text, or for messages as a chat request renders them."""
    policy = engine.get_policy(request.model)
    if request.messages is not None:
        prompt = policy.chat_template.render_prompt(
            request.messages, _parse_prefix(request.offing_prefix), request.chat_template_kwargs or {}
        )
        ids = prompt.token_ids
    elif request.prompt is not None:
        ids = policy.chat_template.encode(request.prompt, request.add_special_tokens)
    else:
        raise InvalidInput("prompt", "neither prompt nor messages is set", "Send one of them.")
    return {"count": len(ids), "max_model_len": policy.max_context_tokens, "tokens": ids, "token_strs": None}


async def load_policy(engine: EngineScheduler, request: LoadPolicyRequest) -> ResponseBody:
    """Handle `POST /v1/load_policy`."""
    return _render_model(await asyncio.to_thread(engine.load, request.name, Path(request.path), request.base))


async def unload_policy(engine: EngineScheduler, name: str) -> ResponseBody:
    """Handle `POST /v1/unload_policy`."""
    await asyncio.to_thread(engine.unload, name)
    return {"id": name, "object": "model", "deleted": True}


async def _generate(
    engine: EngineScheduler,
    policy: LoadedPolicy,
    ids: tuple[int, ...],
    max_new_tokens: int | None,
    request: ChatRequest | CompletionRequest,
) -> Completion:
    """Queue the request and wait for its completion.

    If the client disconnects, it is dropped at the next step.
    """
    max_new_tokens = _check_length(policy, ids, max_new_tokens)
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Completion] = loop.create_future()

    def settle(result: Completion | BaseException) -> None:
        if not answer.done():
            answer.set_exception(result) if isinstance(result, BaseException) else answer.set_result(result)

    def set_result(result: Completion | BaseException) -> None:
        loop.call_soon_threadsafe(settle, result)

    seed = secrets.randbits(63) if request.seed is None else request.seed
    stops = tuple(stop.encode() for stop in request.stop_strings)
    generation = GenerationRequest(ids, max_new_tokens, _parse_sampling(request), seed, stops, set_result)
    engine.submit(policy.name, generation)
    try:
        return await answer
    finally:
        generation.cancelled = True


def _check_length(policy: LoadedPolicy, ids: Sequence[int], max_new_tokens: int | None) -> int:
    """Return the maximum number of tokens to sample.

    Raises InvalidInput if they do not fit in the context.
    """
    available = policy.max_context_tokens - len(ids)
    if available < (1 if max_new_tokens is None else max_new_tokens):
        problem = (
            f"the prompt of {len(ids)} tokens plus {max_new_tokens or 1} new tokens exceed the context of "
            f"{policy.max_context_tokens} tokens"
        )
        raise InvalidInput(
            "max_tokens" if available > 0 else "messages", problem, "Send a shorter prompt or reduce max_tokens."
        )
    return available if max_new_tokens is None else max_new_tokens


def _parse_prompt(policy: LoadedPolicy, prompt: str | Sequence[int]) -> tuple[int, ...]:
    if isinstance(prompt, str):
        return policy.chat_template.encode(prompt, add_special_tokens=True)
    policy.chat_template.check_ids(prompt, "prompt")
    return tuple(prompt)


def _parse_prefix(prefix: TokenPrefixBody | None) -> TokenPrefix | None:
    return None if prefix is None else TokenPrefix(tuple(prefix.token_ids), prefix.message_count)


def _parse_sampling(request: ChatRequest | CompletionRequest) -> SamplingParams:
    temperature = 1.0 if request.temperature is None else request.temperature
    return SamplingParams(temperature, request.top_p or 1.0, max(request.top_k or 0, 0))


def _render_text(completion: Completion, token_texts: Sequence[bytes], include_stop: bool) -> str:
    return visible_text(b"".join(token_texts).decode("utf-8", "replace"), completion.stop_string, include_stop)


def _render_logprobs(policy: LoadedPolicy, completion: Completion, token_texts: Sequence[bytes]) -> list[Any]:
    names = [policy.chat_template.token_name(id) for id in completion.ids]
    return list(render_token_entries(names, token_texts, completion.logprobs))


def _render_choice(completion: Completion, with_ids: bool) -> ResponseBody:
    ids = {"token_ids": completion.ids} if with_ids else {}
    ended = {"finish_reason": completion.finish_reason, "stop_reason": completion.stop_string}
    return {"index": 0, **ended, **ids, "token_entropy": completion.entropies}


def _render_response(
    kind: str, policy: LoadedPolicy, ids: Sequence[int], completion: Completion, choice: ResponseBody, with_ids: bool
) -> ResponseBody:
    """Build a response with one choice.

    Text completions have the prompt's ids in the choice, too, as in vLLM.
    """
    used = {
        "prompt_tokens": len(ids),
        "completion_tokens": len(completion.ids),
        "total_tokens": len(ids) + len(completion.ids),
    }
    cached = {"prompt_tokens_details": {"cached_tokens": completion.cached_tokens}}
    if with_ids and kind == "text_completion":
        choice = choice | {"prompt_token_ids": ids}
    return {
        "id": f"offing-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": policy.name,
        "system_fingerprint": SYSTEM_FINGERPRINT,
        **({"prompt_token_ids": ids} if with_ids else {}),
        "choices": [choice],
        "usage": used | cached,
        **_render_hashes(policy),
    }
