"""Asking a person from a node: the values that a graph gives and gets, and the three calls in terms of one question.

The only home of that translation. It knows neither how a question reaches a person nor how a run waits.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from offing.core.question import Answer, Asking, QuestionKind, Unanswered, Verdict

__all__ = ["AsksPeople", "Plan", "Review", "Unanswered", "Verdict"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan as a person sees and edits it."""

    steps: tuple[str, ...]
    """What is to be done, in order; one line each."""
    goal: str = ""
    """What the plan is for. Empty: the run's question says so."""


@dataclass(frozen=True, slots=True)
class Review:
    """What a person made of a plan."""

    verdict: Verdict
    plan: Plan
    """As it is to be followed: the person's where it was edited, else the one that was shown."""
    comment: str = ""
    """The person's words. With the verdict COMMENTED they ask for another plan."""

    @property
    def accepted(self) -> bool:
        """The plan may be followed."""
        return self.verdict is not Verdict.COMMENTED


class AsksPeople(ABC):
    """`ask`, `approve` and `review` of a run's context, for any context that can put a question."""

    @abstractmethod
    async def put(self, asking: Asking, turn: int) -> Answer:
        """The answer to a question, on record. Raises Unanswered where nobody can answer and there is no default."""

    async def ask(
        self,
        question: str,
        *,
        choices: Sequence[str] = (),
        default: str | None = None,
        within: float | None = None,
        turn: int = 0,
    ) -> str:
        given = None if default is None else Answer(text=default)
        asking = Asking(QuestionKind.ASK, question, choices=tuple(choices), default=given, within=within)
        return (await self.put(asking, turn)).text

    async def approve(
        self, what: str, detail: str = "", *, default: bool | None = None, within: float | None = None, turn: int = 0
    ) -> bool:
        given = None if default is None else Answer(approved=default)
        asking = Asking(QuestionKind.APPROVE, what, detail, default=given, within=within)
        return (await self.put(asking, turn)).approved

    async def review(
        self, plan: Plan, *, default: Verdict | None = None, within: float | None = None, turn: int = 0
    ) -> Review:
        given = None if default is None else Answer(verdict=default)
        prompt = plan.goal or "Is this the plan to follow?"
        asking = Asking(QuestionKind.REVIEW, prompt, steps=plan.steps, default=given, within=within)
        answer = await self.put(asking, turn)
        edited = answer.verdict is Verdict.EDITED
        return Review(answer.verdict, replace(plan, steps=answer.steps) if edited else plan, answer.comment)
