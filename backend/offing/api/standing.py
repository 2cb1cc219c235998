"""How policy versions stand, on the wire: evaluations, verdicts of the gate, and who gave way to whom."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from offing.api.collecting import PolicyOut
from offing.api.schemas import Page, Wire
from offing.services.training_gate import Verdict
from offing.storage.evaluations import ScoreRow

NORMAL = 1.96
"""Standard errors to each side of a mean, for 95 % by the normal approximation."""


class EvaluationOut(Wire):
    """A version on one set of tasks."""

    id: UUID
    policy_id: UUID
    policy: str = Field(description="NAME@VERSION.")
    dataset: str
    mode: Literal["greedy", "sampled"]
    graph: str
    seed: int
    batch_id: UUID | None = Field(description="The rollouts behind it. null: they were erased.")
    tasks: int
    rollouts: int
    scored: int = Field(description="In the others the platform failed.")
    reward: float | None = Field(description="Mean over tasks. null: nothing was scored.")
    low: float | None = Field(description="Of its 95 % interval, by the spread of tasks. null: fewer than two tasks.")
    high: float | None
    answered: float | None = Field(description="Share of the scored rollouts.")
    violated: float | None = Field(description="Share that broke a rule of their flow.")
    turns: float | None = Field(description="Of a rollout, on average.")
    tokens: float | None
    created_at: datetime


class EvaluationPage(Page):
    items: list[EvaluationOut]


class PromoteIn(Wire):
    """Whether the gate is asked."""

    force: bool = Field(default=False, description="true: whatever it is worth. false: if it passes the gate.")


class VerdictOut(Wire):
    """A candidate against the active version, on the tasks that both were evaluated on."""

    pairs: int
    candidate: float = Field(description="Mean reward.")
    champion: float
    difference: float
    low: float = Field(description="Of the difference's 95 % interval.")
    high: float


class PromotionOut(Wire):
    policy: PolicyOut
    verdict: VerdictOut | None = Field(description="null: the gate was not asked, or there was no active version.")


class CanaryIn(Wire):
    share: float = Field(gt=0, le=1, description="Of the new runs that name the policy without a version.")


class RollbackOut(Wire):
    said: str = Field(description="What was done.")


def evaluation_out(row: ScoreRow) -> EvaluationOut:
    low, high = interval(row)
    linked: dict[str, Any] = {"policy_id": row.policy, "policy": f"{row.name}@{row.version}", "batch_id": row.batch}
    own = {"low", "high", *linked}
    known: dict[str, Any] = {name: getattr(row, name) for name in EvaluationOut.model_fields if name not in own}
    return EvaluationOut(**known | linked, low=low, high=high)


def interval(row: ScoreRow) -> tuple[float | None, float | None]:
    """Ends of the 95 % interval of the mean reward over tasks. None: the spread is not known."""
    if row.reward is None or row.spread is None:
        return None, None
    reach = NORMAL * row.spread / row.tasks**0.5
    return row.reward - reach, row.reward + reach


def verdict_out(verdict: Verdict | None) -> VerdictOut | None:
    if verdict is None:
        return None
    return VerdictOut(**{name: getattr(verdict.paired, name) for name in VerdictOut.model_fields})


EVALUATION: dict[str, Any] = {
    "id": "01980000-0000-7000-8000-00000000001c",
    "policy_id": "01980000-0000-7000-8000-00000000001d",
    "policy": "planner@3",
    "dataset": "heldout-1@500",
    "mode": "greedy",
    "graph": "agentflow",
    "seed": 0,
    "batch_id": None,
    "tasks": 200,
    "rollouts": 200,
    "scored": 200,
    "reward": 0.61,
    "low": 0.54,
    "high": 0.68,
    "answered": 0.98,
    "violated": 0.0,
    "turns": 3.2,
    "tokens": 410.0,
    "created_at": "2026-11-21T09:00:00Z",
}
"""Of EvaluationOut, for the OpenAPI document."""

VERDICT: dict[str, Any] = {
    "pairs": 200,
    "candidate": 0.61,
    "champion": 0.52,
    "difference": 0.09,
    "low": 0.03,
    "high": 0.15,
}
"""Of VerdictOut."""
