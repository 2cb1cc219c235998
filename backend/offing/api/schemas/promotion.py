"""API schemas of evaluations, promotion, canaries and rollback, and their serializers."""

from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import Field, model_validator

from offing.api.schemas.base import ApiModel, Page
from offing.api.schemas.rollouts import PolicyVersionOut
from offing.core.confidence_interval import Moments, find_mean_interval
from offing.services.promotion_gate import GateResult, GateRules, Guard, PairedComparison, merge_guards
from offing.storage.evaluations import EvaluationSummary


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
        description="Lower end of the 95 % interval of `reward` over tasks. null: no rollout was scored."
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


class GuardIn(ApiModel):
    """A metric in which a version must not be worse."""

    metric: str = Field(
        min_length=1,
        max_length=200,
        description="`turns`, `tokens`, `cost_usd` or `seconds`, of which less is better, or a scorer.",
    )
    margin: float = Field(default=0.0, ge=0, description="How much worse it may be on average.")
    relative: bool = Field(default=False, description="Whether `margin` is a fraction of the active version's mean.")


class PromoteIn(ApiModel):
    """The conditions of the promotion gate, or that it is skipped."""

    force: bool = Field(
        default=False, description="`true` skips the promotion gate. With `false`, the version must pass the gate."
    )
    by_canary: bool = Field(
        default=False,
        description="`true`: instead of passing the gate, the version must have been found better as the canary.",
    )
    margin: float = Field(
        default=0.0, ge=0, description="How far the mean reward may be below that of the active version."
    )
    confident: bool = Field(
        default=True,
        description="`true`: the lower end of the difference's interval decides. `false`: the mean difference does, "
        "and an equal version passes half of the time.",
    )
    not_worse: list[GuardIn] = Field(
        default_factory=list[GuardIn],
        max_length=20,
        description="Metrics in which the version must not be worse, beside `violations`.",
    )

    @model_validator(mode="after")
    def _one_decision(self) -> Self:
        if self.force and self.by_canary:
            raise ValueError("Use `force` or `by_canary`, not both.")
        return self


class MetricComparisonOut(ApiModel):
    """A metric of a candidate compared with that of the active version."""

    candidate: float = Field(description="Mean.")
    active: float
    difference: float
    low: float = Field(description="Lower end of the 90 % interval of the difference.")
    high: float


class GateResultOut(ApiModel):
    """A candidate compared with the active version on the tasks that both were evaluated on."""

    pair_count: int
    candidate: float = Field(description="Mean reward.")
    active: float
    difference: float
    low: float = Field(description="Lower end of the interval of the difference at `level`.")
    high: float
    level: float = Field(description="Two-sided level of the interval: 0.95 for the first look, more for later ones.")
    looks: int = Field(
        description="How often versions of this policy have been compared with this active version, this time included."
    )
    detectable_difference: float | None = Field(
        description="Difference that as many such tasks show in 80 of 100 cases. null: nothing was compared."
    )
    guards: dict[str, MetricComparisonOut] = Field(description="Metrics in which the version must not be worse.")


class PromotionOut(ApiModel):
    policy_version: PolicyVersionOut
    gate_result: GateResultOut | None = Field(description="null: the gate was skipped, or there was no active version.")


class CanaryIn(ApiModel):
    fraction: float = Field(gt=0, le=1, description="Fraction of the new runs that name the policy without a version.")


class RollbackOut(ApiModel):
    message: str = Field(description="What was done.")


def build_gate_rules(body: PromoteIn) -> GateRules:
    own = (Guard(one.metric, one.margin, one.relative) for one in body.not_worse)
    return GateRules(body.margin, body.confident, merge_guards(own))


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
    """Return the ends of the 95 % interval of the mean reward over tasks, or `None` twice if nothing was scored."""
    moments = (row.mean_reward, row.mean_squared_reward, row.least_reward, row.greatest_reward)
    if any(one is None for one in moments):
        return None, None
    interval = find_mean_interval(Moments(row.task_count, *(one or 0.0 for one in moments)))
    return interval.low, interval.high


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
        level=comparison.level,
        looks=result.looks,
        detectable_difference=comparison.detectable_difference,
        guards={name: _serialize_comparison(one) for name, one in result.guards.items()},
    )


def _serialize_comparison(one: PairedComparison) -> MetricComparisonOut:
    return MetricComparisonOut(
        candidate=one.candidate, active=one.active, difference=one.difference, low=one.low, high=one.high
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
    "level": 0.95,
    "looks": 1,
    "detectable_difference": 0.086,
    "guards": {"violations": {"candidate": 0.01, "active": 0.015, "difference": -0.005, "low": -0.02, "high": 0.01}},
}
"""Example of GateResultOut."""
