"""What the stand-in provider can answer, and how each answer looks on the wire. Opens no socket."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Usage as the provider bills it."""

    prompt: int = 11
    completion: int = 7
    cached: int = 0
    """Of the prompt. 0: the provider sends no such detail."""
    reasoning: int = 0
    """Of the completion. 0: the provider sends no such detail."""

    @property
    def wire(self) -> Json:
        counts: Json = {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
        }
        if self.cached:
            counts["prompt_tokens_details"] = {"cached_tokens": self.cached}
        if self.reasoning:
            counts["completion_tokens_details"] = {"reasoning_tokens": self.reasoning}
        return counts


@dataclass(frozen=True, slots=True)
class Completion:
    """A good answer: text, or a call of the tool `tool` with `arguments`. Streamed when the request asks for it."""

    text: str = ""
    tool: str = ""
    arguments: str = ""
    """JSON text, or whatever a model might put in its place."""
    calls: int = 1
    """How often the tool is called, with the same arguments each time."""
    beside: tuple[tuple[str, str], ...] = ()
    """Other tools that are called with it, each with its arguments."""
    tokens: Tokens | None = field(default_factory=Tokens)
    """None: this provider reports no usage."""
    finish: str = ""
    """Empty: stop, or tool_calls for a tool."""
    reasoning: str = ""
    """What it thought before, in a field of its own."""

    @property
    def reason(self) -> str:
        return self.finish or ("tool_calls" if self.tool else "stop")

    @property
    def called(self) -> list[tuple[str, str]]:
        """Every call, with its arguments."""
        return [*([(self.tool, self.arguments)] * self.calls if self.tool else []), *self.beside]


@dataclass(frozen=True, slots=True)
class Fault:
    """An error status with the provider's usual error body."""

    status: int
    message: str = "something went wrong"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Malformed:
    """Status 200 and a body that is not JSON."""

    body: bytes = b'{"id": "chatcmpl-1", "choices": [{"mess'


@dataclass(frozen=True, slots=True)
class Whole:
    """Status 200 and a value as JSON, for what is no completion."""

    body: Any


@dataclass(frozen=True, slots=True)
class Cut:
    """The answer's beginning, then a closed connection."""

    reply: Completion
    fraction: float = 0.5
    """Of the body's bytes, or of the stream's events."""


@dataclass(frozen=True, slots=True)
class Slow:
    """Another reply after `seconds`; with `between`, a stream pauses that long before each event instead."""

    reply: Completion | Whole
    seconds: float
    between: bool = False


@dataclass(frozen=True, slots=True)
class Hangup:
    """A connection closed without a byte."""


Reply = Completion | Fault | Malformed | Whole | Cut | Slow | Hangup


def error_body(fault: Fault) -> bytes:
    return json.dumps(
        {"error": {"message": fault.message, "type": "error", "param": None, "code": fault.code}}
    ).encode()


def completion_body(reply: Completion, model: str) -> bytes:
    """A whole answer, not streamed."""
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.called:
        message["tool_calls"] = [_tool_call(*call, n) for n, call in enumerate(reply.called, 1)]
    body: Json = _envelope("chat.completion", model)
    body["choices"] = [{"index": 0, "message": message, "finish_reason": reply.reason}]
    if reply.tokens is not None:
        body["usage"] = reply.tokens.wire
    return json.dumps(body).encode()


def completion_events(reply: Completion, model: str, *, usage: bool) -> Iterator[bytes]:
    """The same answer as server-sent events, in small pieces; `usage`: the request asked for it."""
    yield _chunk(model, {"role": "assistant", "content": ""})
    for piece in _chunks(reply.reasoning):
        yield _chunk(model, {"reasoning_content": piece})
    for index, (tool, arguments) in enumerate(reply.called):
        yield _chunk(model, {"tool_calls": [_tool_call(tool, "", index + 1) | {"index": index}]})
        for piece in _chunks(arguments):
            yield _chunk(model, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    for piece in _chunks(reply.text):
        yield _chunk(model, {"content": piece})
    yield _chunk(model, {}, finish=reply.reason)
    if usage and reply.tokens is not None:
        last: Json = {**_envelope("chat.completion.chunk", model), "choices": [], "usage": reply.tokens.wire}
        yield _event(json.dumps(last))
    yield _event("[DONE]")


def _envelope(kind: str, model: str) -> Json:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": model}


def _tool_call(name: str, arguments: str, nth: int) -> Json:
    return {"id": f"call_{nth}", "type": "function", "function": {"name": name, "arguments": arguments}}


def _chunk(model: str, delta: Json, finish: str | None = None) -> bytes:
    body = _envelope("chat.completion.chunk", model)
    body["choices"] = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return _event(json.dumps(body))


def _event(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


def _chunks(text: str, size: int = 9) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))
