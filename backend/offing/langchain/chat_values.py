"""Chats with tools as plain values: the input and output of a chat model of a LangGraph graph.

They are converted from and to LangChain's messages.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.messages import ChatMessage as LangChainChatMessage
from pydantic import BaseModel, ConfigDict, Field

from offing.core.errors import InvalidInput

_ID_PREFIX = "offing-"

ChatRole = Literal["system", "user", "assistant", "tool"]

RAW_TEXT_KEY = "offing_wrote"
"""Key in a message's `additional_kwargs` for the exact text of the model, if it wrote one."""


_REASONING_TYPES = frozenset({"reasoning", "thinking", "redacted_thinking"})
_TOOL_CALL_TYPES = frozenset({"tool_use", "tool_call", "invalid_tool_call"})
"""Types of message parts that repeat the content of tool calls."""


def _is_empty(value: object) -> bool:
    """Return whether a value is empty.

    Empty fields are left out of the request, so that call keys do not change when a field is added.
    """
    return not value


class _FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ChatToolCall(_FrozenModel):
    """A tool call by the model."""

    name: str
    args: dict[str, Any] = {}


class ChatMessage(_FrozenModel):
    """One message.

    Ids that LangChain generates at random are left out, so that equal messages are equal values.
    """

    role: ChatRole
    text: str = ""
    calls: tuple[ChatToolCall, ...] = ()
    """Tool calls of an assistant message."""
    call_ids: tuple[str, ...] = ()
    """One id per tool call."""
    answers: str = ""
    """Id of the call that a tool message answers."""
    tool: str = ""
    """Name of the tool of a tool message. Empty means that it is unknown."""
    seq: int = 0
    """Number of the step of this run that recorded an assistant message. 0 means none."""
    wrote: str = ""
    """Exact text of an assistant message, if it is known."""


class ChatTool(_FrozenModel):
    """A tool that the model may call."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    """JSON schema of its arguments."""


class ChatPrompt(_FrozenModel):
    """Prompt of a chat model: all messages so far and the tools that it may call."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[ChatTool, ...] = ()
    must_call: str = ""
    """Name of the tool that the model must call, or `any`. Empty means that it may answer in text."""
    stop: tuple[str, ...] = ()
    """Stop sequences at which the answer is cut."""
    one_call: bool = Field(default=False, exclude_if=_is_empty)
    """Whether at most one tool may be called at a time."""
    answer_schema: dict[str, Any] = Field(default={}, exclude_if=_is_empty)
    """JSON schema of an answer in text. Empty means free text."""

    @property
    def turn(self) -> int:
        """Number of the requested answer in this conversation, from 1."""
        return 1 + sum(message.role == "assistant" for message in self.messages)


class ChatReply(_FrozenModel):
    """Reply of a chat model: text, tool calls, or both."""

    text: str = ""
    calls: tuple[ChatToolCall, ...] = ()
    wrote: str = ""
    """Exact text of the model. Empty means that the provider returned text and tool calls separately."""
    message: dict[str, Any] = Field(default={}, exclude_if=_is_empty)
    """The message of a graph's own model with everything that it contains. Empty means an answer of an engine."""


def to_chat_messages(messages: Sequence[BaseMessage], run_id: str) -> tuple[ChatMessage, ...]:
    """Convert LangChain's messages to values. `run_id` is the id of the current run.

    Raises InvalidInput if a message has content other than text.
    """
    return tuple(_to_chat_message(message, run_id) for message in messages)


def to_ai_message(reply: ChatReply, *, run_id: str, seq: int, usage: tuple[int, int], model: str) -> AIMessage:
    """Convert a reply to LangChain's message.

    The ids in the message are derived from the step, so that a repeated call gives the same message.
    """
    prompt, completion = usage
    return AIMessage(
        content=reply.text,
        id=f"{_ID_PREFIX}{run_id}-{seq}",
        additional_kwargs={RAW_TEXT_KEY: reply.wrote} if reply.wrote else {},
        tool_calls=[
            {"name": c.name, "args": c.args, "id": f"call_{seq}_{n}", "type": "tool_call"}
            for n, c in enumerate(reply.calls, 1)
        ],
        usage_metadata={"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion},
        response_metadata={"model_name": model},
    )


def _to_chat_message(message: BaseMessage, run_id: str) -> ChatMessage:
    text = _extract_text(message)
    if isinstance(message, AIMessage):
        calls = tuple(ChatToolCall(name=c["name"], args=c["args"]) for c in message.tool_calls)
        ids = tuple(str(c["id"] or f"call_{n}") for n, c in enumerate(message.tool_calls, 1))
        wrote = str(message.additional_kwargs.get(RAW_TEXT_KEY, ""))
        return ChatMessage(
            role="assistant", text=text, calls=calls, call_ids=ids, seq=_find_seq(message, run_id), wrote=wrote
        )
    if isinstance(message, ToolMessage):
        return ChatMessage(role="tool", text=text, answers=message.tool_call_id, tool=message.name or "")
    return ChatMessage(role="system" if _is_system(message) else "user", text=text)


def _is_system(message: BaseMessage) -> bool:
    return isinstance(message, SystemMessage) or (
        isinstance(message, LangChainChatMessage) and message.role == "system"
    )


def _find_seq(message: AIMessage, run_id: str) -> int:
    """Return the number of the step that recorded the message.

    0 means that this run did not record it; an earlier run of the conversation may have.
    """
    of_run, _, seq = (message.id or "").rpartition("-")
    return int(seq) if of_run == f"{_ID_PREFIX}{run_id}" and seq.isdecimal() else 0


def _extract_text(message: BaseMessage) -> str:
    """Return the text of a message. Raises InvalidInput for a part that is not text, such as an image."""
    if isinstance(message.content, str):
        return message.content
    return "".join(map(extract_part_text, message.content))


def extract_part_text(part: Any) -> str:
    """Return the text of a part of a message. Raises InvalidInput for a part that is not text."""
    if isinstance(part, str):
        return part
    match part.get("type"):
        case "text" | "text-plain":
            return str(part.get("text", ""))
        case "json":
            return json.dumps(part.get("json"), ensure_ascii=False, sort_keys=True)
        case kind if kind in _REASONING_TYPES | _TOOL_CALL_TYPES:
            return ""
        case kind:
            raise InvalidInput(
                "messages", f"a part of type {kind!r} is not text", "Send text. Other content is not supported."
            )
