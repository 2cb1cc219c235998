"""A chat with tools as plain values: what a chat model of a LangGraph graph is given and gives back.

The only home of these shapes and of their exchange with LangChain's messages. Knows no engine and no run.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, SystemMessage, ToolMessage
from pydantic import BaseModel, ConfigDict, Field

from offing.core.errors import InvalidInput

_OURS = "offing-"

Speaker = Literal["system", "user", "assistant", "tool"]

WROTE = "offing_wrote"
"""In an answer's additional_kwargs: what the model wrote, letter by letter, where its own form has it."""


_THOUGHTS = frozenset({"reasoning", "thinking", "redacted_thinking"})
_CALLS = frozenset({"tool_use", "tool_call", "invalid_tool_call"})
"""Parts of a message that say again what its calls say."""


def _is_empty(value: object) -> bool:
    """What was not asked for is no part of a call, so that its key stays what it was before there was such a field."""
    return not value


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Call(_Value):
    """A tool call that a model asks for."""

    name: str
    args: dict[str, Any] = {}


class Said(_Value):
    """One message. Ids that LangChain draws at random are left out, so that the same words are the same value."""

    role: Speaker
    text: str = ""
    calls: tuple[Call, ...] = ()
    """Of the assistant."""
    call_ids: tuple[str, ...] = ()
    """One a call."""
    answers: str = ""
    """Of a tool: the id of the call that it answers."""
    tool: str = ""
    """Of a tool: its name. Empty: not given."""
    seq: int = 0
    """Of the assistant: the step of this run that wrote it. 0: none did."""
    wrote: str = ""
    """Of the assistant: letter by letter, as far as is known."""


class Tool(_Value):
    """A tool that the model may call."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    """JSON schema of its arguments."""


class Chat(_Value):
    """What a chat model is asked: everything said so far, and the tools that it may call."""

    said: tuple[Said, ...]
    tools: tuple[Tool, ...] = ()
    must_call: str = ""
    """A tool's name, or `any`. Empty: it may answer in words."""
    stop: tuple[str, ...] = ()
    """Strings at which the answer is cut."""
    one_call: bool = Field(default=False, exclude_if=_is_empty)
    """At most one tool may be called at a time."""
    answer_schema: dict[str, Any] = Field(default={}, exclude_if=_is_empty)
    """JSON schema of an answer in words. Empty: any words."""

    @property
    def turn(self) -> int:
        """Which answer of this conversation is asked for, from 1."""
        return 1 + sum(said.role == "assistant" for said in self.said)


class Reply(_Value):
    """What a chat model answers: words, calls, or both."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    wrote: str = ""
    """All that the model wrote, letter by letter. Empty: the provider gave text and calls apart."""


def said_in(messages: Sequence[BaseMessage], run: str) -> tuple[Said, ...]:
    """LangChain's messages as values, in the run of that id. Raises InvalidInput for content that is not text."""
    return tuple(_said(message, run) for message in messages)


def answer_of(reply: Reply, *, run: str, seq: int, used: tuple[int, int], model: str) -> AIMessage:
    """A reply as LangChain's message; the ids in it follow from the step, so that they are the same when repeated."""
    prompt, completion = used
    return AIMessage(
        content=reply.text,
        id=f"{_OURS}{run}-{seq}",
        additional_kwargs={WROTE: reply.wrote} if reply.wrote else {},
        tool_calls=[
            {"name": c.name, "args": c.args, "id": f"call_{seq}_{n}", "type": "tool_call"}
            for n, c in enumerate(reply.calls, 1)
        ],
        usage_metadata={"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion},
        response_metadata={"model_name": model},
    )


def _said(message: BaseMessage, run: str) -> Said:
    text = _text(message)
    if isinstance(message, AIMessage):
        calls = tuple(Call(name=c["name"], args=c["args"]) for c in message.tool_calls)
        ids = tuple(str(c["id"] or f"call_{n}") for n, c in enumerate(message.tool_calls, 1))
        wrote = str(message.additional_kwargs.get(WROTE, ""))
        return Said(role="assistant", text=text, calls=calls, call_ids=ids, seq=_seq(message, run), wrote=wrote)
    if isinstance(message, ToolMessage):
        return Said(role="tool", text=text, answers=message.tool_call_id, tool=message.name or "")
    return Said(role="system" if _instructs(message) else "user", text=text)


def _instructs(message: BaseMessage) -> bool:
    return isinstance(message, SystemMessage) or (isinstance(message, ChatMessage) and message.role == "system")


def _seq(message: AIMessage, run: str) -> int:
    """The step that wrote it. 0: none of this run did; an earlier run of the conversation may have."""
    of_run, _, seq = (message.id or "").rpartition("-")
    return int(seq) if of_run == f"{_OURS}{run}" and seq.isdecimal() else 0


def _text(message: BaseMessage) -> str:
    """The message's text. Raises InvalidInput for a part that is none, such as an image."""
    if isinstance(message.content, str):
        return message.content
    return "".join(map(_part, message.content))


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    match part.get("type"):
        case "text" | "text-plain":
            return str(part.get("text", ""))
        case "json":
            return json.dumps(part.get("json"), ensure_ascii=False, sort_keys=True)
        case kind if kind in _THOUGHTS | _CALLS:
            return ""
        case kind:
            raise InvalidInput("messages", f"a part of type {kind!r} is no text", "Send text; nothing else is taken.")
