"""The state of the agent."""

# pyright: basic

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages


class Mood(Enum):
    """How the agent answers."""

    CALM = "calm"


@dataclass
class Finding:
    """What the agent has found out."""

    text: str
    mood: Mood = Mood.CALM


@dataclass
class State:
    """Messages and findings."""

    messages: Annotated[list[AnyMessage], add_messages] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
