"""The requests and responses of the token-level wire: the part of vLLM's that is needed, and what we add.

The only home of their names. What vLLM knows and this engine does not is refused where it would change what is drawn;
the rest is ignored, as vLLM does. Knows neither HTTP nor torch.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from offing.core.errors import InvalidInput

MOST_SEED = 2**63 - 1
MOST_STOPS = 16


class PrefixGiven(BaseModel):
    """Ids that stand for the first `messages` messages."""

    token_ids: Annotated[list[int], Field(min_length=1)]
    messages: Annotated[int, Field(ge=1)]


class _Sampled(BaseModel):
    """What both completion requests share."""

    model_config = ConfigDict(extra="ignore")

    model: str
    max_tokens: Annotated[int | None, Field(ge=0)] = None
    temperature: Annotated[float | None, Field(ge=0, le=100)] = None
    top_p: Annotated[float | None, Field(gt=0, le=1)] = None
    top_k: Annotated[int | None, Field(ge=-1)] = None
    """0 and -1: all tokens."""
    seed: Annotated[int | None, Field(ge=0, le=MOST_SEED)] = None
    stop: str | Annotated[list[str], Field(max_length=MOST_STOPS)] | None = None
    return_token_ids: bool = False
    include_stop_str_in_output: bool = False
    n: Literal[1] | None = None
    stream: Literal[False] | None = None
    best_of: Literal[1] | None = None
    min_p: Annotated[float | None, Field(ge=0, le=0)] = None
    min_tokens: Annotated[int | None, Field(ge=0, le=0)] = None
    presence_penalty: Annotated[float | None, Field(ge=0, le=0)] = None
    frequency_penalty: Annotated[float | None, Field(ge=0, le=0)] = None
    repetition_penalty: Annotated[float | None, Field(ge=1, le=1)] = None
    logit_bias: Annotated[dict[str, float] | None, Field(max_length=0)] = None
    ignore_eos: Literal[False] | None = None
    response_format: None = None
    guided_json: None = None
    structured_outputs: None = None

    @property
    def stops(self) -> tuple[str, ...]:
        listed = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(stop for stop in listed if stop)


class ChatRequest(_Sampled):
    """`POST /v1/chat/completions`."""

    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int | None, Field(ge=0, le=0)] = None
    tools: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    offing_prefix: PrefixGiven | None = None

    @property
    def options(self) -> dict[str, Any]:
        """For the template."""
        tools = {"tools": self.tools} if self.tools else {}
        return {**(self.chat_template_kwargs or {}), **tools}


class CompletionRequest(_Sampled):
    """`POST /v1/completions` with ids, to continue or to score them."""

    prompt: Annotated[list[int], Field(min_length=1)] | Annotated[str, Field(min_length=1)]
    logprobs: Annotated[int | None, Field(ge=0, le=1)] = None
    prompt_logprobs: Annotated[int | None, Field(ge=0, le=1)] = None


class TokenizeRequest(BaseModel):
    """`POST /tokenize`."""

    model: str
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    add_special_tokens: bool = True
    chat_template_kwargs: dict[str, Any] | None = None
    offing_prefix: PrefixGiven | None = None


class LoadAdapter(BaseModel):
    """`POST /v1/load_lora_adapter`."""

    lora_name: str
    lora_path: str
    base: str | None = None
    """Ours: the resident full weights that it belongs to, where its own files do not say."""


class UnloadAdapter(BaseModel):
    """`POST /v1/unload_lora_adapter`."""

    lora_name: str


class LoadPolicy(BaseModel):
    """`POST /v1/load_policy`: full weights, or an adapter."""

    name: str
    path: str
    base: str | None = None


class UnloadPolicy(BaseModel):
    """`POST /v1/unload_policy`."""

    name: str


R = TypeVar("R", bound=BaseModel)


def read(kind: type[R], body: bytes) -> R:
    """The request in `body`. Raises InvalidInput naming the first field that cannot be used."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "body"
        raise InvalidInput(field, first["msg"], "Send a value that this engine knows, or leave it out.") from None


def token_entries(
    names: Sequence[str], pieces: Sequence[bytes], logprobs: Sequence[float]
) -> list[dict[str, str | float | list[int]]]:
    """`logprobs.content`: one entry a drawn token. `bytes` is what it adds to the text, nothing for special tokens."""
    listed = zip(names, pieces, logprobs, strict=True)
    return [{"token": name, "logprob": logprob, "bytes": list(piece)} for name, piece, logprob in listed]


def prompt_entries(
    ids: Sequence[int], found: Sequence[tuple[float, int, float]], top: int, names: Mapping[int, str]
) -> list[dict[str, dict[str, float | str]] | None]:
    """`prompt_logprobs`: nothing for the first id, then its own log-probability, with `top` also the likeliest id's."""
    entries: list[dict[str, dict[str, float | str]] | None] = [None]
    for id, (logprob, best, highest) in zip(ids[1:], found, strict=True):
        entry: dict[str, dict[str, float | str]] = {str(id): {"logprob": logprob, "decoded_token": names[id]}}
        if top:
            entry.setdefault(str(best), {"logprob": highest, "decoded_token": names[best]})
        entries.append(entry)
    return entries


def shown(text: str, stop: str | None, keep: bool) -> str:
    """The text as the request wants it: cut before the stop string that ended it, or with the whole of its token."""
    if stop is None or keep:
        return text
    return text[: text.find(stop)] if stop in text else text


def error_body(message: str, kind: str, param: str | None, code: int) -> dict[str, Any]:
    """An error as OpenAI's clients read it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
