"""Requests answered by the engine, as values of the wire.

Knows the engine and the wire, not HTTP.
"""

import asyncio
import secrets
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from offing.core.errors import InvalidInput
from offing_engine.batch import Completion, Work
from offing_engine.rendering import Prefix
from offing_engine.sampling import Sampling
from offing_engine.scheduler import Engine
from offing_engine.weights import Policy
from offing_engine.wire import (
    ChatRequest,
    CompletionRequest,
    LoadPolicy,
    PrefixGiven,
    TokenizeRequest,
    prompt_entries,
    shown,
    token_entries,
)

BUILD = f"offing-engine {version('offing')}"
Answer = dict[str, Any]


def models(engine: Engine) -> Answer:
    """`GET /v1/models`."""
    return {"object": "list", "data": [_card(policy) for policy in engine.policies.values()]}


def _card(policy: Policy) -> Answer:
    kind = "full" if policy.adapter is None else "lora"
    ours = {"kind": kind, "max_model_len": policy.context, **_hashes(policy)}
    return {"id": policy.name, "object": "model", "created": 0, "owned_by": "offing", "root": str(policy.path), **ours}


def _hashes(policy: Policy) -> Answer:
    hashes = policy.hashes
    return {
        "weights_sha256": hashes.weights,
        "tokenizer_sha256": hashes.tokenizer,
        "template_sha256": hashes.template,
    }


async def chat(engine: Engine, asked: ChatRequest) -> Answer:
    """`POST /v1/chat/completions`."""
    policy = engine.policy(asked.model)
    prompt = policy.renderer.prompt(asked.messages, _prefix(asked.offing_prefix), asked.options)
    most = asked.max_completion_tokens or asked.max_tokens
    found = await _completed(engine, policy, prompt.ids, most, asked)
    pieces = policy.pieces.of(found.ids)
    choice = _choice(found, asked.return_token_ids) | {
        "message": {"role": "assistant", "content": _text(found, pieces, asked.include_stop_str_in_output)},
        "logprobs": {"content": _entries(policy, found, pieces)} if asked.logprobs else None,
    }
    answer = _answer("chat.completion", policy, prompt.ids, found, choice, asked.return_token_ids)
    return answer if prompt.prefix_used is None else answer | {"prefix_used": prompt.prefix_used}


async def complete(engine: Engine, asked: CompletionRequest) -> Answer:
    """`POST /v1/completions`."""
    policy = engine.policy(asked.model)
    ids = _given(policy, asked.prompt)
    most = 16 if asked.max_tokens is None else asked.max_tokens
    nothing = Completion((), (), (), "length")
    _checked(policy, ids, most)
    found = await _completed(engine, policy, ids, most, asked) if most else nothing
    pieces = policy.pieces.of(found.ids)
    choice = _choice(found, asked.return_token_ids) | {
        "text": _text(found, pieces, asked.include_stop_str_in_output),
        "logprobs": None if asked.logprobs is None else {"content": _entries(policy, found, pieces)},
    }
    if asked.prompt_logprobs is not None:
        choice["prompt_logprobs"] = await _scores(engine, policy, ids, asked)
    return _answer("text_completion", policy, ids, found, choice, asked.return_token_ids)


async def _scores(engine: Engine, policy: Policy, ids: tuple[int, ...], asked: CompletionRequest) -> list[Any]:
    found = await asyncio.to_thread(engine.score, policy.name, ids, _sampling(asked))
    names = {id: policy.renderer.token(id) for id in {*ids, *(best for _, best, _ in found)}}
    return list(prompt_entries(ids, found, asked.prompt_logprobs or 0, names))


def tokenize(engine: Engine, asked: TokenizeRequest) -> Answer:
    """`POST /tokenize`: of a text, or of messages as a chat request would render them."""
    policy = engine.policy(asked.model)
    if asked.messages is not None:
        given = policy.renderer.prompt(asked.messages, _prefix(asked.offing_prefix), asked.chat_template_kwargs or {})
        ids = given.ids
    elif asked.prompt is not None:
        ids = policy.renderer.ids(asked.prompt, asked.add_special_tokens)
    else:
        raise InvalidInput("prompt", "is not given, nor are messages", "Send one of them.")
    return {"count": len(ids), "max_model_len": policy.context, "tokens": ids, "token_strs": None}


async def load(engine: Engine, asked: LoadPolicy) -> Answer:
    """`POST /v1/load_policy`."""
    return _card(await asyncio.to_thread(engine.load, asked.name, Path(asked.path), asked.base))


async def unload(engine: Engine, name: str) -> Answer:
    """`POST /v1/unload_policy`."""
    await asyncio.to_thread(engine.unload, name)
    return {"id": name, "object": "model", "deleted": True}


async def _completed(
    engine: Engine, policy: Policy, ids: tuple[int, ...], most: int | None, asked: ChatRequest | CompletionRequest
) -> Completion:
    """Queues the request and waits. When the caller goes away, the request is dropped at the next step."""
    most = _checked(policy, ids, most)
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Completion] = loop.create_future()

    def settle(found: Completion | BaseException) -> None:
        if not answer.done():
            answer.set_exception(found) if isinstance(found, BaseException) else answer.set_result(found)

    def done(found: Completion | BaseException) -> None:
        loop.call_soon_threadsafe(settle, found)

    seed = secrets.randbits(63) if asked.seed is None else asked.seed
    stops = tuple(stop.encode() for stop in asked.stops)
    work = Work(ids, most, _sampling(asked), seed, stops, done)
    engine.submit(policy.name, work)
    try:
        return await answer
    finally:
        work.dropped = True


def _checked(policy: Policy, ids: Sequence[int], most: int | None) -> int:
    """Tokens to draw at most. Raises InvalidInput when they do not fit the context."""
    room = policy.context - len(ids)
    if room < (1 if most is None else most):
        problem = f"the prompt's {len(ids)} tokens and {most or 1} more exceed the context of {policy.context} tokens"
        raise InvalidInput("max_tokens" if room > 0 else "messages", problem, "Send a shorter prompt, or ask for less.")
    return room if most is None else most


def _given(policy: Policy, prompt: str | Sequence[int]) -> tuple[int, ...]:
    if isinstance(prompt, str):
        return policy.renderer.ids(prompt, special=True)
    policy.renderer.check(prompt, "prompt")
    return tuple(prompt)


def _prefix(given: PrefixGiven | None) -> Prefix | None:
    return None if given is None else Prefix(tuple(given.token_ids), given.messages)


def _sampling(asked: ChatRequest | CompletionRequest) -> Sampling:
    temperature = 1.0 if asked.temperature is None else asked.temperature
    return Sampling(temperature, asked.top_p or 1.0, max(asked.top_k or 0, 0))


def _text(found: Completion, pieces: Sequence[bytes], keep: bool) -> str:
    return shown(b"".join(pieces).decode("utf-8", "replace"), found.stop, keep)


def _entries(policy: Policy, found: Completion, pieces: Sequence[bytes]) -> list[Any]:
    names = [policy.renderer.token(id) for id in found.ids]
    return list(token_entries(names, pieces, found.logprobs))


def _choice(found: Completion, with_ids: bool) -> Answer:
    ids = {"token_ids": found.ids} if with_ids else {}
    ended = {"finish_reason": found.finish, "stop_reason": found.stop}
    return {"index": 0, **ended, **ids, "token_entropy": found.entropy}


def _answer(kind: str, policy: Policy, ids: Sequence[int], found: Completion, choice: Answer, with_ids: bool) -> Answer:
    """The response around its one choice. Text completions carry the prompt's ids in the choice too, as vLLM does."""
    used = {"prompt_tokens": len(ids), "completion_tokens": len(found.ids), "total_tokens": len(ids) + len(found.ids)}
    cached = {"prompt_tokens_details": {"cached_tokens": found.cached}}
    if with_ids and kind == "text_completion":
        choice = choice | {"prompt_token_ids": ids}
    return {
        "id": f"offing-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": policy.name,
        "system_fingerprint": BUILD,
        **({"prompt_token_ids": ids} if with_ids else {}),
        "choices": [choice],
        "usage": used | cached,
        **_hashes(policy),
    }
