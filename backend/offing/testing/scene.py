"""What a rehearsed run is given: question, documents, and what answers its roles. The only home of scripted answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from offing.core.errors import InvalidInput
from offing.core.model import EngineFailure, Unusable
from offing.core.policy import Policy
from offing.core.question import Answer, Asking, QuestionKind, check_answer, check_asking
from offing.core.run import Budget
from offing.models.structured import parse_output
from offing.sdk import Role, Seat
from offing.sdk.tool import OwnTool

Said = BaseModel | Mapping[str, Any] | str | EngineFailure
"""An answer as the role's type, as JSON, as a model's text, or a failure."""

Answering = Sequence[Said] | Callable[[Any], Said]
"""Answers in their order, or a function of the role's input."""


class OutOfAnswers(AssertionError):
    """A role was asked once more than its script has answers."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything outside the graph. A role without an answer here is answered by its `extractive` function."""

    question: str = "What is it?"
    documents: Mapping[str, str] = field(default_factory=dict[str, str])
    """Texts by name, such as `tides.md`."""
    answers: Mapping[str, Answering] = field(default_factory=dict[str, Any])
    """By role."""
    rules: Mapping[str, str] = field(default_factory=dict[str, str])
    """Role to the name of the rule that answers it."""
    forms: Mapping[str, str] = field(default_factory=dict[str, str])
    """Role to the form that it is asked in."""
    budget: Budget = field(default_factory=Budget)
    takes: Mapping[str, float] = field(default_factory=dict[str, float])
    """Seconds that a role or a tool takes on the virtual clock."""
    people: Mapping[int, str] = field(default_factory=dict[int, str])
    """What a person writes to the run, by the number of steps after which it comes."""
    write_after: int | None = None
    """Steps after which a person asks to stop and write. None: nobody does."""
    tools: Sequence[OwnTool] = ()
    """Own tools of other packages that the graph names."""
    policy: Policy | None = None
    """None: what the platform gives a run of this graph."""
    approves: bool = False
    """Whether a person allows calls that the policy asks about. False: they are denied."""
    replies: Mapping[str, Answer] = field(default_factory=dict[str, Answer])
    """What a person answers to the run, by the words of the question. Absent: the question's default."""
    earlier: tuple[tuple[str, str], ...] = ()
    seed: int = 0
    failing_tools: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tools that fail, with what they say."""
    items: Sequence[tuple[tuple[str, ...], str, Mapping[str, Any]]] = ()
    """What is in LangGraph's store before: namespace, key and value of each item."""

    def answer(self, role: Role[Any, Any], given: Any, nth: int, turn: int) -> BaseModel | EngineFailure:
        """What the role answers when it is asked for the nth time, from 0."""
        if (form := self.form(role)) is not None:
            form.render(given)
        else:
            role.render(given)
        said = self._said(role, given, nth, turn)
        if isinstance(said, EngineFailure):
            return said
        return _typed(role, said, given, self.forms.get(role.name))

    def reply(self, asking: Asking) -> Answer:
        """A person's answer. Raises InvalidInput for one that a person could not give."""
        if asking.kind is QuestionKind.TOOL and asking.prompt not in self.replies:
            return Answer(approved=self.approves)
        reply = self.replies.get(asking.prompt, asking.default)
        if reply is None:
            raise OutOfAnswers(f"Nobody answers {asking.prompt!r}: give the test a reply, or the question a default.")
        return check_answer(check_asking(asking), reply)

    def form(self, role: Role[Any, Any]) -> Any:
        name = self.forms.get(role.name)
        found = role.form(name) if name else None
        if name and found is None:
            raise InvalidInput(f"forms.{role.name}", f"The role has no form {name!r}", "Name one of its forms.")
        return found

    def _said(self, role: Role[Any, Any], given: Any, nth: int, turn: int) -> Said:
        script = self.answers.get(role.name)
        if callable(script):
            return script(given)
        if script is not None:
            if nth >= len(script):
                raise OutOfAnswers(f"{role.name} is asked for the {nth + 1}. time, and has {len(script)} answers.")
            return script[nth]
        if role.name in self.rules:
            return role.rules[self.rules[role.name]](given, Seat(self.seed, turn))
        if role.extractive is None:
            raise OutOfAnswers(f"{role.name} has no model-free answer: give the test an answer for it.")
        return role.extractive(given)


def _typed(role: Role[Any, Any], said: BaseModel | Mapping[str, Any] | str, given: Any, form: str | None) -> BaseModel:
    """What was said as the role's type. Raises AssertionError for what the platform would not accept."""
    if isinstance(said, BaseModel):
        found: Any = said
    elif isinstance(said, str):
        named = role.form(form) if form else None
        found = named.parse(said, given) if named else parse_output(said, role.output)
    else:
        found = role.output.model_validate(dict(said))
    if isinstance(found, Unusable):
        raise AssertionError(f"{role.name}: {found.problem}")
    if not isinstance(found, role.output):
        raise AssertionError(f"{role.name} answers {type(found).__name__}; its output is {role.output.__name__}.")
    return found
