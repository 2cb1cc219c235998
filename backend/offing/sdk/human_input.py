"""Input requests from a node, with the values that a graph passes and receives.

The calls `ask`, `approve` and `review` are implemented with one method that makes an input request.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from offing.core.input_request import InputKind, InputPrompt, InputResponse, NoResponderError, ReviewDecision

__all__ = ["HumanInputMixin", "NoResponderError", "PlanProposal", "PlanReview", "ReviewDecision"]


@dataclass(frozen=True, slots=True)
class PlanProposal:
    """A plan that a person can review and edit."""

    steps: tuple[str, ...]
    """Steps of the plan in order, one line each."""
    goal: str = ""
    """Goal of the plan. Empty means that it is the run's question."""


@dataclass(frozen=True, slots=True)
class PlanReview:
    """A person's review of a plan."""

    decision: ReviewDecision
    plan: PlanProposal
    """Plan to follow: the person's version if it was edited, else the proposed one."""
    comment: str = ""
    """The person's comment. With the decision COMMENTED it asks for another plan."""

    @property
    def is_accepted(self) -> bool:
        """Whether the plan may be followed."""
        return self.decision is not ReviewDecision.COMMENTED


class HumanInputMixin(ABC):
    """Implementation of `ask`, `approve` and `review` for any run context that can make an input request."""

    @abstractmethod
    async def request_input(self, prompt: InputPrompt, turn: int) -> InputResponse:
        """Make an input request and return the recorded response.

        Raises NoResponderError if no person can respond and there is no default.
        """

    async def ask(
        self,
        question: str,
        *,
        choices: Sequence[str] = (),
        default: str | None = None,
        timeout_seconds: float | None = None,
        turn: int = 0,
    ) -> str:
        default_response = None if default is None else InputResponse(text=default)
        asking = InputPrompt(
            InputKind.FREE_TEXT,
            question,
            choices=tuple(choices),
            default=default_response,
            timeout_seconds=timeout_seconds,
        )
        return (await self.request_input(asking, turn)).text

    async def approve(
        self,
        action: str,
        detail: str = "",
        *,
        default: bool | None = None,
        timeout_seconds: float | None = None,
        turn: int = 0,
    ) -> bool:
        default_response = None if default is None else InputResponse(approved=default)
        asking = InputPrompt(
            InputKind.APPROVAL, action, detail, default=default_response, timeout_seconds=timeout_seconds
        )
        return (await self.request_input(asking, turn)).approved

    async def review(
        self,
        plan: PlanProposal,
        *,
        default: ReviewDecision | None = None,
        timeout_seconds: float | None = None,
        turn: int = 0,
    ) -> PlanReview:
        default_response = None if default is None else InputResponse(decision=default)
        prompt = plan.goal or "Is this the plan to follow?"
        asking = InputPrompt(
            InputKind.PLAN_REVIEW, prompt, steps=plan.steps, default=default_response, timeout_seconds=timeout_seconds
        )
        answer = await self.request_input(asking, turn)
        edited = answer.decision is ReviewDecision.EDITED
        return PlanReview(answer.decision, replace(plan, steps=answer.steps) if edited else plan, answer.comment)
