"""What a role is: a typed function that any engine can answer.

A role knows its input and output types, how its input is rendered for a model, what kind of step an answer makes,
and how it is answered without any model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from offing.core.model import Message
from offing.core.step import StepKind

Input = TypeVar("Input", bound=BaseModel)
Output = TypeVar("Output", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Headline:
    """How an answer shows in a timeline: a title, and a second line that may be empty."""

    title: str
    detail: str = ""


ModelFree = Callable[[Input], Output]
"""Answers a role from its input alone: no model, no I/O, the same answer for the same input."""


@dataclass(frozen=True, slots=True)
class Role(Generic[Input, Output]):
    """A typed function of a graph. `name` is what engines are configured by."""

    name: str
    input: type[Input]
    output: type[Output]
    render: Callable[[Input], tuple[Message, ...]]
    """The prompt. The output's JSON schema is added by the engine, so that it need not stand here."""
    headline: Callable[[Output], Headline]
    kind: StepKind = StepKind.TURN
    label: str = ""
    """Word in the timeline. Empty: the kind."""
    extractive: ModelFree[Input, Output] | None = None
    """None: this role needs a model, and the `extractive` engine refuses it by name."""
