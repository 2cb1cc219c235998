"""Token-level protocol of policy servers: vLLM's chat completions with extensions.

The extensions are those of our engine and of SGLang. A reply whose tokens are not all known has no
trace.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from offing.core.model import Message, Usage
from offing.core.tokens import TokenTrace

CHAT_PATH = "/v1/chat/completions"
COMPLETIONS_PATH = "/v1/completions"

PROCESSED_LOGPROBS = "processed_logprobs"
"""vLLM's name for logprobs of the distribution that is sampled from, after temperature and truncation."""
ENGINE_FINGERPRINT_PREFIX = "offing-engine"
"""Prefix of our engine's fingerprint. Its logprobs are always processed ones."""
MIN_LOGPROB = -9999.0
"""Value that servers send for a logprob that JSON cannot represent."""
LOGPROB_TOLERANCE = 1e-6
"""Maximum amount by which a float32 logprob of a certain token may exceed 0."""


@dataclass(frozen=True, slots=True)
class TokenPrefix:
    """Token ids that stand for the first `message_count` messages of a prompt."""

    token_ids: tuple[int, ...]
    messages: int


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """Request of one attempt."""

    model: str
    """NAME@VERSION."""
    messages: tuple[Message, ...]
    max_tokens: int
    seed: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """`0` means all tokens."""
    stop: tuple[str, ...] = ()
    prefix: TokenPrefix | None = None
    processed_logprobs: bool = False
    """Whether the server is known to return logprobs of the distribution that it samples from."""

    @property
    def is_untruncated(self) -> bool:
        """Whether sampling uses the model's own distribution, to which raw logprobs belong."""
        return self.temperature == 1.0 and self.top_p == 1.0 and self.top_k == 0


@dataclass(frozen=True, slots=True)
class PolicyReply:
    """Response of a policy before it is parsed."""

    text: str
    finish_reason: str
    """`stop` or `length`. Empty if the server sent none."""
    usage: Usage
    trace: TokenTrace | None
    no_trace_reason: str = ""
    """Reason why there is no trace."""
    prefix_used: bool = False


class _LenientModel(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Token(_LenientModel):
    token: str = ""
    logprob: float
    bytes: list[int] | None = None


class _Logprobs(_LenientModel):
    content: list[_Token] | None = None


class _ResponseMessage(_LenientModel):
    content: str | None = None


class _SglangMeta(_LenientModel):
    """SGLang's metadata: logprob, id and text of each token."""

    output_token_logprobs: list[tuple[float, int, str | None]] | None = None


class _Choice(_LenientModel):
    message: _ResponseMessage
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None
    token_entropy: list[float] | None = None
    meta_info: _SglangMeta | None = None


class _ResponseUsage(_LenientModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _CompletionResponse(_LenientModel):
    model: str = ""
    choices: list[_Choice] = Field(min_length=1)
    prompt_token_ids: list[int] | None = None
    usage: _ResponseUsage | None = None
    system_fingerprint: str | None = None
    logprobs_mode: str | None = None
    weights_sha256: str = ""
    tokenizer_sha256: str = ""
    template_sha256: str = ""
    prefix_used: bool | None = None


class WrongModelError(ValueError):
    """The server answered with another model than the requested one."""


@dataclass(frozen=True, slots=True)
class _CompletionTokens:
    """Completion tokens. A field is `None` if the server does not send it."""

    prompt: Sequence[int] | None
    ids: Sequence[int] | None
    logprobs: Sequence[float] | None
    texts: Sequence[bytes] | None


def build_sampling_params(request: PolicyRequest) -> dict[str, Any]:
    """Return the sampling parameters by their names in the protocol.

    All are sent, because a server takes missing ones from the model's folder.
    """
    sent: dict[str, Any] = {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "top_k": request.top_k or -1,
        "seed": request.seed,
    }
    return sent | ({"stop": list(request.stop)} if request.stop else {})


def build_body(request: PolicyRequest) -> dict[str, Any]:
    """Return the body of the request."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": m.role, "content": _replace_surrogates(m.text)} for m in request.messages],
        **build_sampling_params(request),
        "repetition_penalty": 1.0,
        "min_p": 0.0,
        "logprobs": True,
        "return_token_ids": True,
        "return_prompt_token_ids": True,  # SGLang versions without the field above
        "include_stop_str_in_output": True,
    }
    if request.prefix is not None:
        body["offing_prefix"] = {"token_ids": request.prefix.token_ids, "message_count": request.prefix.messages}
    return body


def parse_reply(raw: bytes, request: PolicyRequest) -> PolicyReply:
    """Parse a response.

    Raises ValueError if it is not valid, and WrongModelError for another policy version.
    """
    reply = _CompletionResponse.model_validate_json(raw)
    if reply.model and reply.model != request.model:
        raise WrongModelError(
            f"The server responded with the model {reply.model!r}, but {request.model!r} was requested."
        )
    choice, text = reply.choices[0], reply.choices[0].message.content or ""
    tokens = _extract_tokens(reply, choice)
    trace = _build_trace(reply, choice, tokens, request, text)
    used = reply.usage or _ResponseUsage(
        prompt_tokens=len(tokens.prompt or ()), completion_tokens=len(tokens.ids or ())
    )
    return PolicyReply(
        text,
        choice.finish_reason or "",
        Usage(used.prompt_tokens, used.completion_tokens),
        trace if isinstance(trace, TokenTrace) else None,
        trace if isinstance(trace, str) else "",
        bool(reply.prefix_used),
    )


def build_scoring_body(model: str, ids: Sequence[int], sampling: dict[str, Any], *, max_tokens: int) -> dict[str, Any]:
    """Return a request for the logprobs of given ids.

    vLLM requires at least one completion token in `max_tokens`.
    """
    sampling_fields = {name: sampling[name] for name in ("temperature", "top_p", "top_k") if name in sampling}
    return {"model": model, "prompt": list(ids), "max_tokens": max_tokens, "prompt_logprobs": 0, **sampling_fields}


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Logprobs of given ids under a policy version."""

    logprobs: tuple[float | None, ...]
    """Logprob of each id given those before it. `None` for the first id."""
    weights_sha256: str = ""
    """Empty if the server does not send it."""


class _ScoredChoice(_LenientModel):
    prompt_logprobs: list[dict[str, _Token] | None]


class _ScoresResponse(_LenientModel):
    choices: list[_ScoredChoice] = Field(min_length=1)
    weights_sha256: str = ""


def parse_scores(raw: bytes, ids: Sequence[int]) -> TokenScores:
    """Parse a response to `build_scoring_body`. Raises ValueError if it does not score these ids."""
    body = _ScoresResponse.model_validate_json(raw)
    entries = body.choices[0].prompt_logprobs
    if len(entries) != len(ids):
        raise ValueError(f"{len(entries)} logprobs for {len(ids)} ids")
    logprobs = tuple(None if entry is None else _logprob_of(entry, id) for id, entry in zip(ids, entries, strict=True))
    return TokenScores(logprobs, body.weights_sha256)


def _logprob_of(entry: dict[str, _Token], id: int) -> float:
    if str(id) not in entry:
        raise ValueError(f"no logprob of id {id}")
    return entry[str(id)].logprob


def _extract_tokens(reply: _CompletionResponse, choice: _Choice) -> _CompletionTokens:
    """Collect the completion tokens from the fields of different servers."""
    logprob_entries = choice.logprobs.content if choice.logprobs else None
    native = choice.meta_info.output_token_logprobs if choice.meta_info else None
    prompt = reply.prompt_token_ids if reply.prompt_token_ids is not None else choice.prompt_token_ids
    if choice.token_ids is None and native is not None:
        texts = [text.encode() for _, _, text in native if text is not None]
        valid_texts = texts if len(texts) == len(native) else None
        return _CompletionTokens(
            prompt, [id for _, id, _ in native], [logprob for logprob, _, _ in native], valid_texts
        )
    if logprob_entries is None:
        return _CompletionTokens(prompt, choice.token_ids, None, None)
    texts = [token.token.encode() if token.bytes is None else bytes(token.bytes) for token in logprob_entries]
    return _CompletionTokens(prompt, choice.token_ids, [token.logprob for token in logprob_entries], texts)


def _build_trace(
    reply: _CompletionResponse, choice: _Choice, tokens: _CompletionTokens, request: PolicyRequest, text: str
) -> TokenTrace | str:
    """Return the token trace, or the reason why there is none."""
    if problem := _describe_missing(tokens) or _describe_mismatch(tokens) or _explain_skew(reply, request):
        return problem
    assert tokens.prompt is not None
    assert tokens.ids is not None
    assert tokens.logprobs is not None
    assert tokens.texts is not None
    token_texts = _match_texts(tokens.texts, text)
    if token_texts is None:
        return "the server's tokens do not decode to its text"
    entropy = choice.token_entropy
    has_entropy = entropy is not None and len(entropy) == len(tokens.ids) and all(math.isfinite(e) for e in entropy)
    return TokenTrace(
        prompt_ids=tuple(tokens.prompt),
        completion_ids=tuple(tokens.ids),
        logprobs=tuple(min(value, 0.0) for value in tokens.logprobs),
        token_bytes=token_texts,
        policy=request.model,
        finish_reason=choice.finish_reason or "",
        entropy=tuple(max(e, 0.0) for e in entropy or ()) if has_entropy else None,
        weights_sha256=reply.weights_sha256,
        tokenizer_sha256=reply.tokenizer_sha256,
        template_sha256=reply.template_sha256,
        engine_build=reply.system_fingerprint or "",
    )


def _describe_missing(tokens: _CompletionTokens) -> str:
    for name, values in (
        ("prompt token ids", tokens.prompt),
        ("completion token ids", tokens.ids),
        ("logprobs", tokens.logprobs),
        ("token texts", tokens.texts),
    ):
        if not values:
            return f"the server does not return {name}"
    return ""


def _describe_mismatch(tokens: _CompletionTokens) -> str:
    ids, logprobs = tokens.ids or (), tokens.logprobs or ()
    if len(ids) != len(logprobs):
        return f"the server returns {len(logprobs)} logprobs for {len(ids)} tokens"
    if min(*ids, *(tokens.prompt or ())) < 0:
        return "the server returns a negative token id"
    if not all(MIN_LOGPROB < value <= LOGPROB_TOLERANCE for value in logprobs):
        return "the server returns a logprob that is not finite"
    return ""


def _explain_skew(reply: _CompletionResponse, request: PolicyRequest) -> str:
    """Explain why the logprobs do not belong to the sampled distribution. Empty if they do."""
    if request.temperature == 0:
        return "at temperature 0 nothing is sampled"
    is_offing_engine = (reply.system_fingerprint or "").startswith(ENGINE_FINGERPRINT_PREFIX)
    if (
        request.is_untruncated
        or request.processed_logprobs
        or is_offing_engine
        or reply.logprobs_mode == PROCESSED_LOGPROBS
    ):
        return ""
    return (
        "the server does not report whether its logprobs are those of the sampled distribution: sample at temperature "
        f"1 without top_p and top_k, or start it with {PROCESSED_LOGPROBS} and set options.logprobs_mode to it"
    )


def _match_texts(token_texts: Sequence[bytes], text: str) -> tuple[bytes, ...] | None:
    """Return token texts that decode to `text`, or `None`.

    vLLM sends an end-of-turn token by its name, although `text` does not contain it.
    """
    for candidate in (tuple(token_texts), (*token_texts[:-1], b"")):
        if b"".join(candidate).decode("utf-8", "replace") == text:
            return candidate
    return None


def _replace_surrogates(text: str) -> str:
    """Return `text` without lone surrogates, which no request can encode."""
    return text.encode("utf-8", "replace").decode()
