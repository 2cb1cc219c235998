"""The inputs of a simulated run: question, documents, and scripted answers of its roles."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from pydantic import BaseModel

from offing.core.errors import InvalidInput
from offing.core.input_request import InputKind, InputPrompt, InputResponse, check_prompt, check_response
from offing.core.interaction import Interaction
from offing.core.model import EngineFailure, InvalidOutput
from offing.core.report_style import ReportStyle
from offing.core.run import Budget
from offing.core.tool_policy import ToolPolicy
from offing.models.structured_output import parse_output
from offing.sdk import Role, RuleContext
from offing.sdk.tool import CustomTool

ScriptedAnswer = BaseModel | Mapping[str, Any] | str | EngineFailure
"""An answer as the output type of the role, as JSON, as the text of a model, or a failure."""

AnswerScript = Sequence[ScriptedAnswer] | Callable[[Any], ScriptedAnswer]
"""Answers in order, or a function of the role's input."""


class ScenarioOptions(TypedDict, total=False):
    documents: Mapping[str, str]
    answers: Mapping[str, AnswerScript]
    revises: Sequence[str]
    rules: Mapping[str, str]
    prompt_formats: Mapping[str, str]
    context_tokens: Mapping[str, int]
    answer_tokens: Mapping[str, int]
    budget: Budget
    durations_seconds: Mapping[str, float]
    user_messages: Mapping[int, str]
    finish_after_steps: int | None
    tools: Sequence[CustomTool]
    tool_policy: ToolPolicy | None
    approves_tools: bool
    input_responses: Mapping[str, InputResponse]
    prior_exchanges: tuple[tuple[str, str], ...]
    seed: int
    report_style: ReportStyle | None
    interactions: frozenset[Interaction]
    failing_tools: Mapping[str, str]
    store_items: Sequence[tuple[tuple[str, ...], str, Mapping[str, Any]]]


class OutOfAnswersError(AssertionError):
    """A role was called more often than its script has answers."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything outside the graph. A role without an answer here is answered by its `extractive` function."""

    question: str = "What is it?"
    documents: Mapping[str, str] = field(default_factory=dict[str, str])
    """Texts by name, such as `tides.md`."""
    answers: Mapping[str, AnswerScript] = field(default_factory=dict[str, Any])
    """Scripted answers by role."""
    revises: Sequence[str] = ()
    """Roles to which a draft with problems goes back, as to a model. Their scripts answer that call, too."""
    rules: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of the rules that answer roles, by role."""
    prompt_formats: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of prompt formats, by role."""
    context_tokens: Mapping[str, int] = field(default_factory=dict[str, int])
    """Tokens of the context windows of the models that answer roles, by role."""
    answer_tokens: Mapping[str, int] = field(default_factory=dict[str, int])
    """Maximum tokens of an answer of the models that answer roles, by role."""
    budget: Budget = field(default_factory=Budget)
    durations_seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """Seconds that a role or a tool takes on the virtual clock, by name."""
    user_messages: Mapping[int, str] = field(default_factory=dict[int, str])
    """User messages to the run, by the number of steps after which each arrives."""
    finish_after_steps: int | None = None
    """Number of steps after which a person requests the run to finish early. `None` means never."""
    tools: Sequence[CustomTool] = ()
    """Custom tools of other packages that the graph names."""
    tool_policy: ToolPolicy | None = None
    """The tool policy. `None` means the default of this graph."""
    approves_tools: bool = False
    """Whether a person approves the calls that need an approval. With `False`, they are denied."""
    input_responses: Mapping[str, InputResponse] = field(default_factory=dict[str, InputResponse])
    """Responses of a person to input requests, by prompt. Without one, the default of the input request is used."""
    prior_exchanges: tuple[tuple[str, str], ...] = ()
    seed: int = 0
    report_style: ReportStyle | None = None
    """What the user asks of the form of the report. `None` means nothing."""
    interactions: frozenset[Interaction] = frozenset()
    """When the person wants to be asked before the run researches."""
    failing_tools: Mapping[str, str] = field(default_factory=dict[str, str])
    """Error messages of tools that fail, by name."""
    store_items: Sequence[tuple[tuple[str, ...], str, Mapping[str, Any]]] = ()
    """Initial items of LangGraph's store: namespace, key and value of each item."""

    def answer(self, role: Role[Any, Any], inputs: Any, call_index: int, turn: int) -> BaseModel | EngineFailure:
        """Return the answer of the role to its call number `call_index`, from 0."""
        if (form := self.select_format(role)) is not None:
            form.render(inputs)
        else:
            role.render(inputs)
        scripted = self._select_answer(role, inputs, call_index, turn)
        if isinstance(scripted, EngineFailure):
            return scripted
        return _to_output(role, scripted, inputs, self.prompt_formats.get(role.name))

    def respond(self, input_prompt: InputPrompt) -> InputResponse:
        """Return the person's response. Raises InvalidInput for one that is not allowed."""
        if input_prompt.kind is InputKind.TOOL and input_prompt.prompt not in self.input_responses:
            return InputResponse(approved=self.approves_tools)
        reply = self.input_responses.get(input_prompt.prompt, input_prompt.default)
        if reply is None:
            raise OutOfAnswersError(
                f"There is no response to {input_prompt.prompt!r}. Add one to the test, or give the "
                "input request a default."
            )
        return check_response(check_prompt(input_prompt), reply)

    def select_format(self, role: Role[Any, Any]) -> Any:
        name = self.prompt_formats.get(role.name)
        prompt_format = role.find_format(name) if name else None
        if name and prompt_format is None:
            raise InvalidInput(
                f"prompt_formats.{role.name}",
                f"the role has no prompt format {name!r}",
                "Use one of its prompt formats.",
            )
        return prompt_format

    def _select_answer(self, role: Role[Any, Any], inputs: Any, call_index: int, turn: int) -> ScriptedAnswer:
        script = self.answers.get(role.name)
        if callable(script):
            return script(inputs)
        if script is not None:
            if call_index >= len(script):
                raise OutOfAnswersError(
                    f"The role {role.name} is called {call_index + 1} times, but has only {len(script)} "
                    "scripted answers."
                )
            return script[call_index]
        if role.name in self.rules:
            return role.rules[self.rules[role.name]](inputs, RuleContext(self.seed, turn))
        if role.extractive is None:
            raise OutOfAnswersError(
                f"The role {role.name} has no model-free answer. Add a scripted answer to the test."
            )
        return role.extractive(inputs)


def _to_output(
    role: Role[Any, Any], answer: BaseModel | Mapping[str, Any] | str, inputs: Any, prompt_format: str | None
) -> BaseModel:
    """Return a scripted answer as the output type of the role.

    Raises AssertionError for an answer that the platform would not accept.
    """
    if isinstance(answer, BaseModel):
        value: Any = answer
    elif isinstance(answer, str):
        named = role.find_format(prompt_format) if prompt_format else None
        value = named.parse(answer, inputs) if named else parse_output(answer, role.output)
    else:
        value = role.output.model_validate(dict(answer))
    if isinstance(value, InvalidOutput):
        raise AssertionError(f"{role.name}: {value.problem}")
    if not isinstance(value, role.output):
        raise AssertionError(
            f"The answer of {role.name} is of type {type(value).__name__}; the output type is {role.output.__name__}."
        )
    return value
