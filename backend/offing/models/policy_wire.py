"""The token-level wire of policy servers as values: vLLM's chat completions, what our engine adds, SGLang's variants.

The only home of their field names, and of the rule that a reply whose tokens are not all known has no trace. Pure;
knows neither HTTP nor roles.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from offing.core.model import Message, Usage
from offing.core.tokens import TokenTrace

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"

PROCESSED = "processed_logprobs"
"""vLLM's name for log-probabilities of the distribution that is sampled from, temperature and cuts included."""
OUR_ENGINE = "offing-engine"
"""Beginning of our engine's fingerprint; its log-probabilities are always processed ones."""
UNLIKELIEST = -9999.0
"""What servers write for a log-probability that JSON cannot hold."""
ROUNDING = 1e-6
"""How far above 0 a float32 log-probability of a certain token can come out."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Ids that stand for the first `messages` messages of a prompt."""

    token_ids: tuple[int, ...]
    messages: int


@dataclass(frozen=True, slots=True)
class PolicyAsk:
    """One attempt at an answer."""

    model: str
    """NAME@VERSION."""
    messages: tuple[Message, ...]
    max_tokens: int
    seed: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """0: all tokens."""
    stop: tuple[str, ...] = ()
    prefix: Prefix | None = None
    processed: bool = False
    """The server is known to give log-probabilities of the distribution that it samples from."""

    @property
    def plain(self) -> bool:
        """Sampled from the model's own distribution, which raw log-probabilities are of."""
        return self.temperature == 1.0 and self.top_p == 1.0 and self.top_k == 0


@dataclass(frozen=True, slots=True)
class PolicyReply:
    """What the policy wrote, not yet looked at."""

    text: str
    finish: str
    """stop or length. Empty: the server did not say."""
    usage: Usage
    trace: TokenTrace | None
    untraced: str = ""
    """Why there is no trace."""
    prefix_used: bool = False


class _Lenient(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Token(_Lenient):
    token: str = ""
    logprob: float
    bytes: list[int] | None = None


class _Logprobs(_Lenient):
    content: list[_Token] | None = None


class _Said(_Lenient):
    content: str | None = None


class _Meta(_Lenient):
    """SGLang's own: log-probability, id and text of each token."""

    output_token_logprobs: list[tuple[float, int, str | None]] | None = None


class _Choice(_Lenient):
    message: _Said
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None
    token_entropy: list[float] | None = None
    meta_info: _Meta | None = None


class _Used(_Lenient):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Reply(_Lenient):
    model: str = ""
    choices: list[_Choice] = Field(min_length=1)
    prompt_token_ids: list[int] | None = None
    usage: _Used | None = None
    system_fingerprint: str | None = None
    logprobs_mode: str | None = None
    weights_sha256: str = ""
    tokenizer_sha256: str = ""
    template_sha256: str = ""
    prefix_used: bool | None = None


class OtherModel(ValueError):
    """The server answered with another model than the one asked for."""


@dataclass(frozen=True, slots=True)
class _Tokens:
    """Completion tokens as far as a server gives them. None: it does not."""

    prompt: Sequence[int] | None
    ids: Sequence[int] | None
    logprobs: Sequence[float] | None
    pieces: Sequence[bytes] | None


def sampling_of(ask: PolicyAsk) -> dict[str, Any]:
    """Parameters by their wire names. All are sent: a server takes those that are missing from the model's folder."""
    sent: dict[str, Any] = {
        "max_tokens": ask.max_tokens,
        "temperature": ask.temperature,
        "top_p": ask.top_p,
        "top_k": ask.top_k or -1,
        "seed": ask.seed,
    }
    return sent | ({"stop": list(ask.stop)} if ask.stop else {})


def body_of(ask: PolicyAsk) -> dict[str, Any]:
    """The request's body."""
    body: dict[str, Any] = {
        "model": ask.model,
        "messages": [{"role": m.role, "content": _storable(m.text)} for m in ask.messages],
        **sampling_of(ask),
        "repetition_penalty": 1.0,
        "min_p": 0.0,
        "logprobs": True,
        "return_token_ids": True,
        "return_prompt_token_ids": True,  # SGLang before it knew the field above
        "include_stop_str_in_output": True,
    }
    if ask.prefix is not None:
        body["offing_prefix"] = {"token_ids": ask.prefix.token_ids, "messages": ask.prefix.messages}
    return body


def reply_of(raw: bytes, ask: PolicyAsk) -> PolicyReply:
    """A response as a reply. Raises ValueError for what is none, OtherModel for one of another policy version."""
    reply = _Reply.model_validate_json(raw)
    if reply.model and reply.model != ask.model:
        raise OtherModel(f"The server answered as {reply.model!r} when {ask.model!r} was asked for.")
    choice, text = reply.choices[0], reply.choices[0].message.content or ""
    tokens = _tokens(reply, choice)
    trace = _trace(reply, choice, tokens, ask, text)
    used = reply.usage or _Used(prompt_tokens=len(tokens.prompt or ()), completion_tokens=len(tokens.ids or ()))
    return PolicyReply(
        text,
        choice.finish_reason or "",
        Usage(used.prompt_tokens, used.completion_tokens),
        trace if isinstance(trace, TokenTrace) else None,
        trace if isinstance(trace, str) else "",
        bool(reply.prefix_used),
    )


def scoring_body(model: str, ids: Sequence[int], sampling: dict[str, Any], *, most: int) -> dict[str, Any]:
    """A request for the log-probabilities of `ids` themselves. `most`: completion tokens, which vLLM wants one of."""
    how = {name: sampling[name] for name in ("temperature", "top_p", "top_k") if name in sampling}
    return {"model": model, "prompt": list(ids), "max_tokens": most, "prompt_logprobs": 0, **how}


@dataclass(frozen=True, slots=True)
class Scores:
    """What a policy version makes of given ids."""

    logprobs: tuple[float | None, ...]
    """Of each id after those before it. None for the first."""
    weights_sha256: str = ""
    """Empty: the server does not say."""


class _Scored(_Lenient):
    prompt_logprobs: list[dict[str, _Token] | None]


class _Scores(_Lenient):
    choices: list[_Scored] = Field(min_length=1)
    weights_sha256: str = ""


def scores_of(raw: bytes, ids: Sequence[int]) -> Scores:
    """A response to `scoring_body`. Raises ValueError for one that does not score these ids."""
    body = _Scores.model_validate_json(raw)
    found = body.choices[0].prompt_logprobs
    if len(found) != len(ids):
        raise ValueError(f"{len(found)} log-probabilities for {len(ids)} ids")
    logprobs = tuple(None if entry is None else _of(entry, id) for id, entry in zip(ids, found, strict=True))
    return Scores(logprobs, body.weights_sha256)


def _of(entry: dict[str, _Token], id: int) -> float:
    if str(id) not in entry:
        raise ValueError(f"no log-probability of id {id}")
    return entry[str(id)].logprob


def _tokens(reply: _Reply, choice: _Choice) -> _Tokens:
    """What the server gives, from wherever it puts it."""
    listed = choice.logprobs.content if choice.logprobs else None
    native = choice.meta_info.output_token_logprobs if choice.meta_info else None
    prompt = reply.prompt_token_ids if reply.prompt_token_ids is not None else choice.prompt_token_ids
    if choice.token_ids is None and native is not None:
        pieces = [text.encode() for _, _, text in native if text is not None]
        known = pieces if len(pieces) == len(native) else None
        return _Tokens(prompt, [id for _, id, _ in native], [logprob for logprob, _, _ in native], known)
    if listed is None:
        return _Tokens(prompt, choice.token_ids, None, None)
    pieces = [token.token.encode() if token.bytes is None else bytes(token.bytes) for token in listed]
    return _Tokens(prompt, choice.token_ids, [token.logprob for token in listed], pieces)


def _trace(reply: _Reply, choice: _Choice, tokens: _Tokens, ask: PolicyAsk, text: str) -> TokenTrace | str:
    """The trace, or why there is none."""
    if problem := _missing(tokens) or _unfit(tokens) or _skewed(reply, ask):
        return problem
    assert tokens.prompt is not None
    assert tokens.ids is not None
    assert tokens.logprobs is not None
    assert tokens.pieces is not None
    pieces = _fitting(tokens.pieces, text)
    if pieces is None:
        return "the server's tokens do not decode to its text"
    entropy = choice.token_entropy
    known = entropy is not None and len(entropy) == len(tokens.ids) and all(math.isfinite(e) for e in entropy)
    return TokenTrace(
        prompt_ids=tuple(tokens.prompt),
        completion_ids=tuple(tokens.ids),
        logprobs=tuple(min(value, 0.0) for value in tokens.logprobs),
        pieces=pieces,
        policy=ask.model,
        finish=choice.finish_reason or "",
        entropy=tuple(max(e, 0.0) for e in entropy or ()) if known else None,
        weights_sha256=reply.weights_sha256,
        tokenizer_sha256=reply.tokenizer_sha256,
        template_sha256=reply.template_sha256,
        engine_build=reply.system_fingerprint or "",
    )


def _missing(tokens: _Tokens) -> str:
    for what, values in (
        ("prompt token ids", tokens.prompt),
        ("completion token ids", tokens.ids),
        ("log-probabilities", tokens.logprobs),
        ("text of its tokens", tokens.pieces),
    ):
        if not values:
            return f"the server gives no {what}"
    return ""


def _unfit(tokens: _Tokens) -> str:
    ids, logprobs = tokens.ids or (), tokens.logprobs or ()
    if len(ids) != len(logprobs):
        return f"the server gives {len(logprobs)} log-probabilities for {len(ids)} tokens"
    if min(*ids, *(tokens.prompt or ())) < 0:
        return "the server gives a negative token id"
    if not all(UNLIKELIEST < value <= ROUNDING for value in logprobs):
        return "the server gives a log-probability that is not finite"
    return ""


def _skewed(reply: _Reply, ask: PolicyAsk) -> str:
    """Why log-probabilities cannot be those of the distribution that was sampled from. Empty: they are."""
    if ask.temperature == 0:
        return "at temperature 0 nothing is sampled"
    ours = (reply.system_fingerprint or "").startswith(OUR_ENGINE)
    if ask.plain or ask.processed or ours or reply.logprobs_mode == PROCESSED:
        return ""
    return (
        "the server does not say whether its log-probabilities are of the distribution sampled from: sample at "
        f"temperature 1 without top_p and top_k, or start it with {PROCESSED} and say so in options.logprobs_mode"
    )


def _fitting(pieces: Sequence[bytes], text: str) -> tuple[bytes, ...] | None:
    """Pieces that decode to `text`. vLLM shows an end-of-turn token by its name, although the text is without it."""
    for fitting in (tuple(pieces), (*pieces[:-1], b"")):
        if b"".join(fitting).decode("utf-8", "replace") == text:
            return fitting
    return None


def _storable(text: str) -> str:
    """`text` without lone surrogates, which no wire carries."""
    return text.encode("utf-8", "replace").decode()
