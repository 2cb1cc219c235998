"""How a role is asked through a provider's own chat with tools, and how the answer is read: values, and no wire."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from offing.core.model import Unusable
from offing.sdk.values import Input, Output


@dataclass(frozen=True, slots=True)
class NativeChat:
    """A prompt as providers take it."""

    messages: tuple[dict[str, Any], ...]
    """With role, content, and tool_calls or tool_call_id where they have them."""
    tools: tuple[dict[str, Any], ...] = ()
    """Function definitions. Empty: plain chat."""
    choice: str | dict[str, Any] = ""
    """Which tool must be called: any, required, or one by name. Empty: the provider's default."""


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A tool call as a provider gave it; nothing in it was checked."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Native(Generic[Input, Output]):
    """The provider's side of a role that is a chat with tools."""

    chat: Callable[[Input], NativeChat]
    read: Callable[[str, Sequence[NativeCall], Input], Output | Unusable]
    """Text and calls as the role's output. Never raises for what a model wrote."""
    write: Callable[[Output], str]
    """The output as text, for the record; in the words of the role's own form."""
