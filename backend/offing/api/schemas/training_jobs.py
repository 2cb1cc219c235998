"""API schemas of training jobs, and their serializers."""

from collections.abc import Mapping
from datetime import datetime
from importlib.util import find_spec
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from offing.api.schemas.base import ApiModel, Page
from offing.api.schemas.rollouts import JudgeUsageOut, serialize_judge_usage
from offing.services import prompt_distillation
from offing.services.training_jobs import JobWithLedger
from offing.storage.training_events import TrainingEvent
from offing.storage.training_jobs import TrainingJobRow
from offing.storage.training_metrics import TrainingMetric

TrainingJobState = Literal["queued", "running", "paused", "done", "failed", "cancelled"]


class TrainingJobIn(ApiModel):
    """A training job to queue."""

    config: dict[str, Any] = Field(
        description="Same content as the TOML file of `offing train`: `policy`, `algorithm`, `data`, `pipeline`, "
        "`learner`, `guards`.",
        examples=[{"algorithm": "flow-grpo", "policy": "planner@1"}],
    )


class TrainingJobOut(ApiModel):
    """A training job."""

    id: UUID
    kind: Literal["train", "loop", "prompt_library"]
    name: str = Field(description="Name of the policy that the job trains.")
    config: dict[str, Any]
    config_sha256: str
    seed: int
    state: TrainingJobState
    requested_action: Literal["pause", "cancel"] | None = Field(
        description="Takes effect after the current training step."
    )
    waiting_for: str = Field(
        description="Why a queued job does not start, as far as this server can tell. Empty: no known obstacle."
    )
    phase: str
    step: int = Field(description="Committed training steps.")
    planned_steps: int | None = Field(
        description="Training steps that the job will have. null: not known before the job has started."
    )
    groups: int = Field(description="Groups read.")
    rollouts: int = Field(description="Rollouts trained on.")
    produced_version_id: UUID | None = Field(description="The policy version that the job produced.")
    stop_reason: str
    error: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class TrainingJobDetail(TrainingJobOut):
    ledger: dict[str, int] = Field(description="Number of rollouts by the decision of the job about them.")
    seconds_left: float | None = Field(
        description="Estimated seconds of the remaining training steps. null: not known, or the job does not run."
    )
    judges: JudgeUsageOut = Field(description="What the judges of all batches that the job has collected have used.")


class TrainingJobListItem(TrainingJobOut):
    reward: float | None = Field(
        description="Mean reward of the rollouts of the last training step. null: there is no training step with "
        "rollouts yet."
    )


class TrainingJobPage(Page):
    items: list[TrainingJobListItem]


class TrainingMetricOut(ApiModel):
    step: int
    name: str
    value: float | None = Field(description="null: not a finite number.")
    at: datetime


class TrainingMetricList(ApiModel):
    items: list[TrainingMetricOut]
    next: int | None = Field(description="`after` of the next request. null: there are no new metrics.")


class TrainingEventOut(ApiModel):
    """A recorded decision. Events are never deleted."""

    id: UUID
    job_id: UUID | None
    policy_id: UUID | None
    kind: str
    detail: dict[str, Any]
    at: datetime


class TrainingEventList(ApiModel):
    items: list[TrainingEventOut]
    next: UUID | None = Field(description="`after` of the next request. null: there are no new events.")


def serialize_job(job: TrainingJobRow) -> TrainingJobOut:
    return TrainingJobOut(**_job_fields(job))


def serialize_job_list_item(job: TrainingJobRow, reward: float | None) -> TrainingJobListItem:
    return TrainingJobListItem(**_job_fields(job), reward=None if reward is None else _finite_or_none(reward))


def serialize_job_detail(job: JobWithLedger) -> TrainingJobDetail:
    return TrainingJobDetail(
        **_job_fields(job.job),
        ledger=dict(job.ledger),
        seconds_left=job.seconds_left,
        judges=serialize_judge_usage(job.judges),
    )


def serialize_metrics(metrics: list[TrainingMetric]) -> TrainingMetricList:
    items = [TrainingMetricOut(step=m.step, name=m.name, value=_finite_or_none(m.value), at=m.at) for m in metrics]
    return TrainingMetricList(items=items, next=metrics[-1].step if metrics else None)


def serialize_events(events: list[TrainingEvent]) -> TrainingEventList:
    items = [
        TrainingEventOut(id=e.id, job_id=e.job_id, policy_id=e.policy_version_id, kind=e.kind, detail=e.detail, at=e.at)
        for e in events
    ]
    return TrainingEventList(items=items, next=events[-1].id if events else None)


def _job_fields(job: TrainingJobRow) -> Mapping[str, Any]:
    is_queued_training = job.state == "queued" and job.kind != prompt_distillation.JOB_KIND
    return {
        "id": job.id,
        "kind": job.kind,
        "name": job.name,
        "config": _public_config(job),
        "config_sha256": job.config_sha256,
        "seed": job.seed,
        "state": job.state,
        "requested_action": job.requested_action,
        "waiting_for": _find_missing_requirement() if is_queued_training else "",
        "phase": job.phase,
        "step": job.step,
        "planned_steps": job.planned_steps,
        "groups": job.group_count,
        "rollouts": job.rollout_count,
        "produced_version_id": job.produced_version_id,
        "stop_reason": job.stop_reason,
        "error": job.error,
        "created_at": job.created_at,
        "started_at": job.started_at,
        "ended_at": job.ended_at,
    }


def _public_config(job: TrainingJobRow) -> dict[str, Any]:
    """Return the configuration without engine options, which may be long and private to the engine."""
    return (
        job.config
        if job.kind != prompt_distillation.JOB_KIND
        else {name: _strip_options(name, value) for name, value in job.config.items()}
    )


def _strip_options(name: str, option: Any) -> Any:
    if name == "engine":
        fallbacks = [_strip_options(name, one) for one in option.get("fallbacks") or ()]
        return option | {"options": {}} | ({"fallbacks": fallbacks} if fallbacks else {})
    if name == "gate" and option:
        return {inner: _strip_options(inner, value) for inner, value in option.items()}
    return option


def _find_missing_requirement() -> str:
    if find_spec("torch") is None:
        return (
            "torch is not installed here: run pip install 'offing[train]', or run `offing trainer` on a "
            "machine that has torch"
        )
    return ""


def _finite_or_none(value: float) -> float | None:
    return value if value == value and abs(value) != float("inf") else None


JOB_EXAMPLE: dict[str, Any] = {
    "id": "01980000-0000-7000-8000-00000000001a",
    "kind": "train",
    "name": "planner",
    "config": {"algorithm": "flow-grpo", "policy": "planner@1"},
    "config_sha256": "9f2c",
    "seed": 0,
    "state": "running",
    "requested_action": None,
    "waiting_for": "",
    "phase": "step 12",
    "step": 12,
    "planned_steps": 60,
    "groups": 384,
    "rollouts": 2950,
    "produced_version_id": None,
    "stop_reason": "",
    "error": "",
    "created_at": "2026-11-21T09:00:00Z",
    "started_at": "2026-11-21T09:00:02Z",
    "ended_at": None,
    "seconds_left": 290.0,
    "judges": {"max_calls": 5000, "max_cost_usd": "10", "calls": 120, "cost_usd": "0.42"},
    "ledger": {"used": 2950, "zero_advantage": 122},
}
"""Example of TrainingJobDetail for the OpenAPI document."""

METRICS_EXAMPLE: dict[str, Any] = {
    "items": [{"step": 12, "name": "reward", "value": 0.61, "at": "2026-11-21T09:04:10Z"}],
    "next": 12,
}
"""Example of TrainingMetricList."""

EVENTS_EXAMPLE: dict[str, Any] = {
    "items": [
        {
            "id": "01980000-0000-7000-8000-00000000001b",
            "job_id": "01980000-0000-7000-8000-00000000001a",
            "policy_id": None,
            "kind": "created",
            "detail": {"policy": "planner@1"},
            "at": "2026-11-21T09:00:00Z",
        }
    ],
    "next": "01980000-0000-7000-8000-00000000001b",
}
"""Example of TrainingEventList."""
