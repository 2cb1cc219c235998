"""What is tried with each package of other people's graphs: a question, what its models say, and what must come of it.

A script is a function of what a model is asked, so that a call that is made again is answered the same.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.model_provider.replies import Completion, Fault, Reply
from tests.model_provider.server import Received

APART = "--"
"""Between graph and role in the name of a model."""


@dataclass(frozen=True)
class ReceivedPrompt:
    """What a model is asked, whichever way it is asked."""

    role: str
    messages: tuple[tuple[str, str], ...]
    """Speaker and words of each; calls are among the words."""
    tools: frozenset[str] = frozenset()
    """Names of the tools that it may call."""

    @property
    def last(self) -> str:
        return self.messages[-1][1]

    @property
    def system_text(self) -> str:
        """All that the system says."""
        return "\n".join(text for speaker, text in self.messages if speaker == "system")

    @property
    def answered(self) -> bool:
        """Whether the last message is what a tool gave."""
        return self.messages[-1][0] == "tool"

    @property
    def everything(self) -> str:
        return "\n".join(text for _, text in self.messages)


def parse_native_prompt(body: Mapping[str, Any]) -> ReceivedPrompt:
    """A request to a provider."""
    messages = tuple((m["role"], _text(m)) for m in body["messages"])
    tools = frozenset(tool["function"]["name"] for tool in body.get("tools") or ())
    return ReceivedPrompt(str(body["model"]).partition(APART)[2], messages, tools)


def parse_text_prompt(body: Mapping[str, Any], role: str) -> ReceivedPrompt:
    """A request to a policy, which is given everything in words."""
    first = next((m["content"] for m in body["messages"] if m["role"] == "system"), "")
    message, _, offered = first.partition("# Tools\n\n")
    tools = frozenset(re.findall(r'"function": {.*?"name": "(\w+)"', offered))
    messages = [(m["role"], m["content"]) for m in body["messages"] if m["role"] != "system"]
    spoken = [("tool" if "<tool_response>" in text else speaker, text) for speaker, text in messages]
    return ReceivedPrompt(role, (("system", message), *spoken), tools)


Respond = Callable[[ReceivedPrompt], Reply]


@dataclass(frozen=True)
class Peer:
    """A graph of another package, and what is asked of it."""

    name: str
    """Of its module here and of its graph."""
    question: str
    says: Respond
    answer: str
    """What its report says."""
    follow: str = ""
    """A question that continues in the same thread. Empty: it keeps no conversation."""
    follow_answer: str = ""
    roles: tuple[str, ...] = ("agent",)
    tools: tuple[str, ...] = ()
    """Names of the tools whose calls must be steps, in any order."""
    askers: tuple[str, ...] = ()
    """Who asks a model, by the names that the package gives them."""
    replies: tuple[str, ...] = ()
    """What a person answers to its interrupts, in their order."""
    heeds: tuple[str, ...] = ()
    """Words in the question that each of the answers is for. Empty: the order tells."""
    fails: Mapping[str, str] = field(default_factory=dict[str, str])
    """What does not work yet: the kind of test, and why."""
    module: str = ""
    """Where its graph is, under its name. Empty: a module has its name, and there it is `graph`."""

    @property
    def place(self) -> str:
        return f"tests.peers.{self.module}:{self.name}" if self.module else f"tests.peers.{self.name}:graph"


def says(text: str) -> Completion:
    return Completion(text)


def calls(tool: str, /, **arguments: Any) -> Completion:
    return Completion(tool=tool, arguments=json.dumps(arguments))


def together(*called: Completion) -> Completion:
    """Several calls in one answer."""
    first, *rest = called
    return Completion(first.text, first.tool, first.arguments, beside=tuple((c.tool, c.arguments) for c in rest))


def unexpected(received: ReceivedPrompt) -> Reply:
    """For what no script has foreseen."""
    return Fault(400, f"no line for {received.last!r}, told {received.system_text!r}")


def provider(peers: Mapping[str, Peer]) -> Callable[[Received], Reply]:
    """A provider that has a model for each role of each graph."""

    def respond(request: Received) -> Reply:
        received = parse_native_prompt(request.body)
        return peers[str(request.body["model"]).partition(APART)[0]].says(received)

    return respond


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "\n".join(part.get("text", "") for part in content)
    called = message.get("tool_calls") or ()
    return "\n".join([content, *(f"{c['function']['name']}({c['function']['arguments']})" for c in called)]).strip()
