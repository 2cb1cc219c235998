"""Native chats: how a role is asked through a provider's chat with tool calling, as plain values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from offing.core.model import InvalidOutput
from offing.sdk.type_vars import Input, Output


@dataclass(frozen=True, slots=True)
class NativeChat:
    """A prompt in the format of providers."""

    messages: tuple[dict[str, Any], ...]
    """Messages with role, content and, where present, tool_calls or tool_call_id."""
    tools: tuple[dict[str, Any], ...] = ()
    """Function definitions. Empty means a chat without tools."""
    tool_choice: str | dict[str, Any] = ""
    """Tool that must be called: `any`, `required`, or one by name. Empty means the provider's default."""


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A tool call as the provider returned it, without validation."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class NativeChatAdapter(Generic[Input, Output]):
    """Native chat of a role with tools."""

    build_chat: Callable[[Input], NativeChat]
    parse_reply: Callable[[str, Sequence[NativeCall], Input], Output | InvalidOutput]
    """Parses text and calls as the role's output. Never raises for the text of a model."""
    render_output: Callable[[Output], str]
    """Renders the output as text for the record, in the role's own prompt format."""
