"""One attempt as litellm's arguments, and what of it counts as sampling. Pure; imports no litellm."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from offing.core.model import EngineChoice, EngineFailure, FailureKind, Message
from offing.models.credentials import Destination
from offing.models.structured import Schema, strict_schema
from offing.sdk.native import NativeChat

Form = Literal["schema", "tool", "text", "native"]
"""How the answer's form is asked for: response_format, one forced tool, words in the prompt, or a role's own tools."""

TOOL = "answer"
INTERACTIVE = frozenset({"github_copilot", "chatgpt", "codex"})
"""Providers for which litellm would ask a person at the terminal to log in, in the middle of a call."""
PAST_HTTPX = frozenset({"aiohttp_openai"})
"""Providers whose requests litellm sends through another client, which follows redirects; `openai` asks the same
servers."""
BYTES_PER_TOKEN = 3.5
"""A little below English prose, so that a reservation is rarely too small."""
_ADDRESS = re.compile(r"://|[\\?#%\x00-\x1f\x7f]|(?:^|/)\.+(?:/|$)")
"""What a model's name must not hold, because providers put it into the address: litellm takes a whole address as one,
and a segment of dots or an encoded slash leads out of the base path."""


class Sampling(BaseModel):
    """Parameters sent as they are, when given. Others are refused, so that none is dropped in silence."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    stop: list[str] | None = None
    reasoning_effort: str | None = None


class LitellmOptions(BaseModel):
    """`choice.options` of the litellm engine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stream: bool = False
    form: Literal["auto", "schema", "tool", "text"] = "auto"
    """auto: what litellm knows of the model."""
    send_seed: bool = False
    """Send the run's seed; not every server takes one."""
    sampling: Sampling = Sampling()


@dataclass(frozen=True, slots=True)
class Ask:
    """One attempt at an answer."""

    choice: EngineChoice
    options: LitellmOptions
    to: Destination
    form: Form
    schema: Schema
    messages: tuple[Message, ...]
    seed: int
    seconds: float
    """Within which the provider must have answered whole."""
    pieces: list[str] = field(default_factory=list[str])
    """What has been streamed so far; filled while the attempt runs, so that a cut one can be booked."""
    corrections: tuple[Message, ...] = ()
    """What was said about answers that could not be used; the last of `messages`."""
    native: NativeChat | None = None
    """The chat as the provider takes it, for `native`; `messages` are then the same in words, for the record."""


def options_of(choice: EngineChoice) -> LitellmOptions | EngineFailure:
    """BAD_REQUEST: names the first field that cannot be used."""
    provider, slash, name = choice.model.partition("/")
    if not (slash and name) or provider in INTERACTIVE | PAST_HTTPX:
        remedy = "Write provider/model with a provider that takes a key, for instance openai/gpt-4o-mini."
        return EngineFailure(FailureKind.BAD_REQUEST, f"model: {choice.model!r} cannot be called. {remedy}")
    if _ADDRESS.search(name):
        remedy = "Name the model alone; another server is named by api_base."
        return EngineFailure(FailureKind.BAD_REQUEST, f"model: {choice.model!r} reads as an address. {remedy}")
    try:
        return LitellmOptions.model_validate(choice.options)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, ("options", *first["loc"])))
        known = f"options: {', '.join(LitellmOptions.model_fields)}; sampling: {', '.join(Sampling.model_fields)}"
        return EngineFailure(FailureKind.BAD_REQUEST, f"{place}: {first['msg']}. Known are {known}.")


def sampling_of(ask: Ask) -> dict[str, Any]:
    """Parameters of this attempt by their wire names; what is not configured is not sent."""
    sent: dict[str, Any] = {"max_tokens": ask.choice.max_tokens}
    if ask.choice.temperature is not None:
        sent["temperature"] = ask.choice.temperature
    if ask.options.send_seed:
        sent["seed"] = ask.seed
    return sent | ask.options.sampling.model_dump(exclude_none=True)


def arguments(ask: Ask) -> dict[str, Any]:
    """The arguments of litellm's completion call; retries are off in every layer below ours."""
    sent: dict[str, Any] = {
        "model": ask.choice.model,
        "messages": _messages(ask),
        "timeout": ask.seconds,
        "num_retries": 0,
        "max_retries": 0,
        "drop_params": False,
        **sampling_of(ask),
        **(_native_arguments(ask.native) if ask.native else _form_arguments(ask.form, ask.schema)),
    }
    if ask.options.stream:
        sent |= {"stream": True, "stream_options": {"include_usage": True}}
    if ask.to.api_base:
        sent |= {"api_base": ask.to.api_base, "api_key": ask.to.api_key}
    return sent


def with_schema(messages: Sequence[Message], form: Form, schema_text: str) -> tuple[Message, ...]:
    """The prompt with the answer's form said in words, where nothing else says it; first, for a steady prefix."""
    if form != "text":
        return tuple(messages)
    words = f"Answer with one JSON object and nothing else. It must match this JSON schema:\n{schema_text}"
    if messages and messages[0].role == "system":
        return (Message("system", (*messages[0].parts, words)), *messages[1:])
    return (Message("system", (words,)), *messages)


def tokens_of(*texts: str) -> int:
    """An estimate of the tokens in texts, where no provider has counted them."""
    return sum(math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN) for text in texts)


def prompt_tokens_of(ask: Ask) -> int:
    """An estimate of an attempt's prompt, schema and message framing included."""
    framing = 4 * len(ask.messages) + 8
    return framing + tokens_of(*(m.text for m in ask.messages)) + tokens_of(str(ask.schema))


def _form_arguments(form: Form, schema: Schema) -> dict[str, Any]:
    if form == "text":
        return {}
    strict = strict_schema(schema)
    shown = strict or schema
    if form == "schema":
        named = {"name": TOOL, "schema": shown, "strict": strict is not None}
        return {"response_format": {"type": "json_schema", "json_schema": named}}
    tool = {"name": TOOL, "description": "Give the answer.", "parameters": shown, "strict": strict is not None}
    choice = {"type": "function", "function": {"name": TOOL}}
    # Without the last argument litellm imports its MCP gateway for any call with tools, which needs a package more.
    return {"tools": [{"type": "function", "function": tool}], "tool_choice": choice, "_skip_mcp_handler": True}


def _messages(ask: Ask) -> list[dict[str, Any]]:
    if ask.native is None:
        return [{"role": m.role, "content": _storable(m.text)} for m in ask.messages]
    said = [{**message, "content": _storable(message["content"])} for message in ask.native.messages]
    return said + [{"role": m.role, "content": _storable(m.text)} for m in ask.corrections]


def _native_arguments(chat: NativeChat) -> dict[str, Any]:
    if not chat.tools:
        return {}
    choice = {"tool_choice": chat.choice} if chat.choice else {}
    return {"tools": list(chat.tools), "_skip_mcp_handler": True, **choice}


def _storable(text: str) -> str:
    """`text` without lone surrogates, which no wire carries."""
    return text.encode("utf-8", "replace").decode()
