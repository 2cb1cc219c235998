"""What a role is: a typed function that any engine can answer.

A role knows its input and output types, how its input is rendered for a model, what kind of step an answer makes,
and how it is answered without any model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

from offing.core.model import Message
from offing.core.step import StepKind
from offing.sdk.form import Form
from offing.sdk.native import Native
from offing.sdk.values import Input, Output


@dataclass(frozen=True, slots=True)
class Headline:
    """How an answer shows in a timeline: a title, and a second line that may be empty."""

    title: str
    detail: str = ""


ModelFree = Callable[[Input], Output]
"""Answers a role from its input alone: no model, no I/O, the same answer for the same input."""


@dataclass(frozen=True, slots=True)
class Seat:
    """What a rule may know beside its input, so that it can draw at random and be repeated."""

    seed: int
    """The run's."""
    turn: int
    """Of the graph's loop, from 1. 0: outside the loop."""


Rule = Callable[[Input, Seat], Output]
"""Answers a role by rules that are made for one environment: no model, no I/O."""


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
    forms: tuple[Form[Input, Output], ...] = ()
    """Other ways to ask it, by name."""
    rules: Mapping[str, Rule[Input, Output]] = field(default_factory=dict[str, Any])
    """Who answers it for the engine `rules`, by name: oracle, random, or world for a role without choices there."""
    native: Native[Input, Output] | None = None
    """How a provider with a chat and tools of its own is asked. None: by the output's schema, or in a form."""

    def form(self, name: str) -> Form[Input, Output] | None:
        """The form of that name. None: there is none."""
        return next((form for form in self.forms if form.name == name), None)
