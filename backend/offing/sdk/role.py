"""Roles: typed functions of a graph that any engine can answer.

A role defines its input and output types, how its input is rendered for a model, which kind of step
it records, and how it is answered without a model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

from offing.core.model import Message
from offing.core.step import StepKind
from offing.sdk.native_chat import NativeChatAdapter
from offing.sdk.prompt_format import PromptFormat
from offing.sdk.type_vars import Input, Output

DEFAULT_ANSWER_TOKENS = 4_096
"""Completion tokens that suffice for the answers of most roles."""
REPORT_ANSWER_TOKENS = 16_384
"""Completion tokens that suffice for a report of 10,000 words with its citations."""


@dataclass(frozen=True, slots=True)
class Headline:
    """Title and optional second line of an answer in the timeline."""

    title: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OutputChoice:
    """A field of an output whose value is one of few, such as the name of a tool."""

    path: str
    """Path of the field, such as `tool`, `action.tool` or `coverage.*.sub_question`."""
    values: tuple[str, ...]
    is_required: bool = True
    """Whether any other value is rejected. If not, only a similar value is replaced by the one that is meant."""


ModelFreeFunction = Callable[[Input], Output]
"""Answers a role from its input only, without a model and I/O. The same input gives the same answer."""


@dataclass(frozen=True, slots=True)
class RuleContext:
    """Seed and turn given to a rule, so that it can draw random numbers repeatably."""

    seed: int
    """Seed of the run."""
    turn: int
    """Turn of the graph's loop, from 1. 0 means outside the loop."""


RuleFunction = Callable[[Input, RuleContext], Output]
"""Answers a role by rules made for one environment, without a model and I/O."""


@dataclass(frozen=True, slots=True)
class Role(Generic[Input, Output]):
    """A typed function of a graph. Engines are configured by its `name`."""

    name: str
    input: type[Input]
    output: type[Output]
    render: Callable[[Input], tuple[Message, ...]]
    """Renders the prompt. The engine adds the JSON schema of the output."""
    headline: Callable[[Output], Headline]
    step_kind: StepKind = StepKind.ROLE_CALL
    label: str = ""
    """Word in the timeline. Empty means the step kind."""
    extractive: ModelFreeFunction[Input, Output] | None = None
    """Model-free answer.

    `None` means that the role needs a model and that the `extractive` engine rejects it.
    """
    prompt_formats: tuple[PromptFormat[Input, Output], ...] = ()
    """Further prompt formats, by name. Environments add formats to roles by their input type."""
    rules: Mapping[str, RuleFunction[Input, Output]] = field(default_factory=dict[str, Any])
    """Rules for the engine `rules`, by name. Environments add rules to roles by their input type."""
    native_chat: NativeChatAdapter[Input, Output] | None = None
    """Native chat with tools.

    `None` means that the role is asked by its output's schema or in a prompt format.
    """
    answer_tokens: int = DEFAULT_ANSWER_TOKENS
    """Completion tokens that an answer may need, without thinking. A role that writes a report needs
    `REPORT_ANSWER_TOKENS`. A model that cannot write as many, and the user's settings, reduce them.
    """
    default_format: str = ""
    """Prompt format in which new runs ask a provider's model if they name none. Empty means `json`."""
    choices: Callable[[Input], tuple[OutputChoice, ...]] | None = None
    """Fields of the output whose values are one of few for an input.

    A provider's model gets them as enumerations of the schema, and another value is asked for again.
    An empty text is always allowed. `None` means that there are none.
    """
    repair_output: Callable[[Output, Input], tuple[Output, tuple[str, ...]]] | None = None
    """Repairs a parsed output of a provider's model. Returns it with the names of the repairs.

    `None` means that nothing is repaired.
    """

    def find_format(self, name: str) -> PromptFormat[Input, Output] | None:
        """Return the prompt format with this name. `None` means that there is none."""
        return next((one for one in self.prompt_formats if one.name == name), None)
