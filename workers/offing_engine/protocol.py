"""Requests and responses of the token-level protocol: the needed part of vLLM's, and extensions.

A vLLM field that this engine does not support is rejected if it would change what is sampled.
Otherwise it is ignored, as in vLLM.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from offing.core.errors import InvalidInput

MAX_SEED = 2**63 - 1
MAX_STOP_STRINGS = 16


class TokenPrefixBody(BaseModel):
    """Token ids that stand for the first `message_count` messages."""

    token_ids: Annotated[list[int], Field(min_length=1)]
    message_count: Annotated[int, Field(ge=1)]


class _SamplingBody(BaseModel):
    """Common fields of both completion requests."""

    model_config = ConfigDict(extra="ignore")

    model: str
    max_tokens: Annotated[int | None, Field(ge=0)] = None
    temperature: Annotated[float | None, Field(ge=0, le=100)] = None
    top_p: Annotated[float | None, Field(gt=0, le=1)] = None
    top_k: Annotated[int | None, Field(ge=-1)] = None
    """`0` and `-1` mean all tokens."""
    seed: Annotated[int | None, Field(ge=0, le=MAX_SEED)] = None
    stop: str | Annotated[list[str], Field(max_length=MAX_STOP_STRINGS)] | None = None
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
    def stop_strings(self) -> tuple[str, ...]:
        listed = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(stop for stop in listed if stop)


class ChatRequest(_SamplingBody):
    """Body of `POST /v1/chat/completions`."""

    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int | None, Field(ge=0, le=0)] = None
    tools: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    offing_prefix: TokenPrefixBody | None = None

    @property
    def template_options(self) -> dict[str, Any]:
        """Variables for the chat template."""
        tools = {"tools": self.tools} if self.tools else {}
        return {**(self.chat_template_kwargs or {}), **tools}


class CompletionRequest(_SamplingBody):
    """Body of `POST /v1/completions`, with ids to continue or to score."""

    prompt: Annotated[list[int], Field(min_length=1)] | Annotated[str, Field(min_length=1)]
    logprobs: Annotated[int | None, Field(ge=0, le=1)] = None
    prompt_logprobs: Annotated[int | None, Field(ge=0, le=1)] = None


class TokenizeRequest(BaseModel):
    """Body of `POST /tokenize`."""

    model: str
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    add_special_tokens: bool = True
    chat_template_kwargs: dict[str, Any] | None = None
    offing_prefix: TokenPrefixBody | None = None


class LoadAdapterRequest(BaseModel):
    """Body of `POST /v1/load_lora_adapter`."""

    lora_name: str
    lora_path: str
    base: str | None = None
    """Extension: the resident full weights of the adapter, if its own files do not name them."""


class UnloadAdapterRequest(BaseModel):
    """Body of `POST /v1/unload_lora_adapter`."""

    lora_name: str


class LoadPolicyRequest(BaseModel):
    """Body of `POST /v1/load_policy`, for full weights or an adapter."""

    name: str
    path: str
    base: str | None = None


class UnloadPolicyRequest(BaseModel):
    """Body of `POST /v1/unload_policy`."""

    name: str


RequestT = TypeVar("RequestT", bound=BaseModel)


def parse_request(kind: type[RequestT], body: bytes) -> RequestT:
    """Parse the request in `body`. Raises InvalidInput that names the first invalid field."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "body"
        raise InvalidInput(field, first["msg"], "Send a supported value or omit the field.") from None


def render_token_entries(
    names: Sequence[str], token_texts: Sequence[bytes], logprobs: Sequence[float]
) -> list[dict[str, str | float | list[int]]]:
    """Render `logprobs.content`: one entry per sampled token.

    `bytes` is what it adds to the text, which is nothing for special tokens.
    """
    listed = zip(names, token_texts, logprobs, strict=True)
    return [{"token": name, "logprob": logprob, "bytes": list(token_bytes)} for name, token_bytes, logprob in listed]


def render_prompt_entries(
    ids: Sequence[int], scores: Sequence[tuple[float, int, float]], include_top: int, names: Mapping[int, str]
) -> list[dict[str, dict[str, float | str]] | None]:
    """Render `prompt_logprobs` of a completion response.

    The first id has no entry. Other ids have their logprob, and with `include_top` also that of the
    most likely id.
    """
    entries: list[dict[str, dict[str, float | str]] | None] = [None]
    for id, (logprob, best, highest) in zip(ids[1:], scores, strict=True):
        entry: dict[str, dict[str, float | str]] = {str(id): {"logprob": logprob, "decoded_token": names[id]}}
        if include_top:
            entry.setdefault(str(best), {"logprob": highest, "decoded_token": names[best]})
        entries.append(entry)
    return entries


def visible_text(text: str, stop_string: str | None, include_stop: bool) -> str:
    """Return the text of the response: cut before its stop string, or including the whole token of it."""
    if stop_string is None or include_stop:
        return text
    return text[: text.find(stop_string)] if stop_string in text else text


def render_error(message: str, kind: str, param: str | None, code: int) -> dict[str, Any]:
    """Render an error in the format of OpenAI's API."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
