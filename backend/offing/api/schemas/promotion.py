"""API schemas of evaluations, promotion, canaries and rollback, and their serializers."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from offing.api.schemas import ApiModel, Page
from offing.api.schemas.rollouts import PolicyVersionOut
from offing.services.promotion_gate import GateResult
from offing.storage.evaluations import EvaluationSummary

NORMAL_95_QUANTILE = 1.96
"""Standard errors on each side of a mean, for a 95 % interval by the normal approximation."""


class EvaluationOut(ApiModel):
    """The results of a policy version on one set of tasks."""

    id: UUID
    policy_id: UUID
    policy_version: str = Field(description="NAME@VERSION.")
    dataset: str
    mode: Literal["greedy", "sampled"]
    graph: str
    seed: int
    batch_id: UUID | None = Field(description="The evaluated rollouts. null: they have been erased.")
    tasks: int
    rollouts: int
    scored: int = Field(description="Scored rollouts. The others ended with an infrastructure error.")
    reward: float | None = Field(description="Mean over tasks. null: no rollout was scored.")
    low: float | None = Field(
        description="Lower end of the 95 % interval of `reward` over tasks. null: fewer than two tasks."
    )
    high: float | None
    answered_fraction: float | None = Field(description="Fraction of the scored rollouts with an answer.")
    violated_fraction: float | None = Field(
        description="Fraction of the scored rollouts that violated a rule of their graph."
    )
    turns: float | None = Field(description="Mean per rollout.")
    tokens: float | None
    created_at: datetime


class EvaluationPage(Page):
    items: list[EvaluationOut]


class PromoteIn(ApiModel):
    """Whether to skip the promotion gate."""

    force: bool = Field(
        default=False, description="`true` skips the promotion gate. With `false`, the version must pass the gate."
    )


class GateResultOut(ApiModel):
    """A candidate compared with the active version on the tasks that both were evaluated on."""

    pair_count: int
    candidate: float = Field(description="Mean reward.")
    active: float
    difference: float
    low: float = Field(description="Lower end of the 95 % interval of the difference.")
    high: float


class PromotionOut(ApiModel):
    policy_version: PolicyVersionOut
    gate_result: GateResultOut | None = Field(description="null: the gate was skipped, or there was no active version.")


class CanaryIn(ApiModel):
    fraction: float = Field(gt=0, le=1, description="Fraction of the new runs that name the policy without a version.")


class RollbackOut(ApiModel):
    message: str = Field(description="What was done.")


def serialize_evaluation(row: EvaluationSummary) -> EvaluationOut:
    low, high = reward_interval(row)
    return EvaluationOut.model_validate(
        {
            "id": row.id,
            "policy_id": row.policy_version_id,
            "policy_version": f"{row.name}@{row.version}",
            "dataset": row.dataset,
            "mode": row.mode,
            "graph": row.graph,
            "seed": row.seed,
            "batch_id": row.batch_id,
            "tasks": row.task_count,
            "rollouts": row.rollout_count,
            "scored": row.scored_count,
            "reward": row.mean_reward,
            "low": low,
            "high": high,
            "answered_fraction": row.answered_fraction,
            "violated_fraction": row.violation_fraction,
            "turns": row.mean_turns,
            "tokens": row.mean_tokens,
            "created_at": row.created_at,
        }
    )


def reward_interval(row: EvaluationSummary) -> tuple[float | None, float | None]:
    """Return the ends of the 95 % interval of the mean reward over tasks, or `None` twice if the spread is not
    known.
    """
    if row.mean_reward is None or row.reward_stddev is None:
        return None, None
    margin = NORMAL_95_QUANTILE * row.reward_stddev / row.task_count**0.5
    return row.mean_reward - margin, row.mean_reward + margin


def serialize_gate_result(result: GateResult | None) -> GateResultOut | None:
    if result is None:
        return None
    comparison = result.comparison
    return GateResultOut(
        pair_count=comparison.pairs,
        candidate=comparison.candidate,
        active=comparison.active,
        difference=comparison.difference,
        low=comparison.low,
        high=comparison.high,
    )


EVALUATION_EXAMPLE: dict[str, Any] = {
    "id": "01980000-0000-7000-8000-00000000001c",
    "policy_id": "01980000-0000-7000-8000-00000000001d",
    "policy_version": "planner@3",
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
    "answered_fraction": 0.98,
    "violated_fraction": 0.0,
    "turns": 3.2,
    "tokens": 410.0,
    "created_at": "2026-11-21T09:00:00Z",
}
"""Example of EvaluationOut for the OpenAPI document."""

GATE_RESULT_EXAMPLE: dict[str, Any] = {
    "pair_count": 200,
    "candidate": 0.61,
    "active": 0.52,
    "difference": 0.09,
    "low": 0.03,
    "high": 0.15,
}
"""Example of GateResultOut."""
