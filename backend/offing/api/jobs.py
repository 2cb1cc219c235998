"""Training jobs on the wire, and how they are made from what the service returns."""

from collections.abc import Mapping
from datetime import datetime
from importlib.util import find_spec
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from offing.api.schemas import Page, Wire
from offing.services import learning
from offing.services.training import SeenJob
from offing.storage.training_events import Event
from offing.storage.training_jobs import JobRow, Metric

JobState = Literal["queued", "running", "paused", "done", "failed", "cancelled"]


class JobIn(Wire):
    """A training job to queue."""

    config: dict[str, Any] = Field(
        description="As the TOML file of `offing train`: `policy`, `algorithm`, `data`, `chain`, `learner`, `guards`.",
        examples=[{"algorithm": "flow-grpo", "policy": "planner@1"}],
    )


class JobOut(Wire):
    """A training job."""

    id: UUID
    kind: Literal["train", "loop", "prompts"]
    name: str = Field(description="Of the policy that it makes a version of.")
    config: dict[str, Any]
    config_sha256: str
    seed: int
    state: JobState
    wish: Literal["pause", "cancel"] | None = Field(description="Seen after the step that it is in.")
    waits_for: str = Field(
        description="Why a queued job does not begin, as far as this server can tell. Empty: it will."
    )
    phase: str
    step: int = Field(description="Steps that are committed.")
    groups: int = Field(description="Looked at.")
    rollouts: int = Field(description="Trained on.")
    produced_id: UUID | None = Field(description="The policy version that came of it.")
    stop_reason: str
    error: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class JobDetail(JobOut):
    ledger: dict[str, int] = Field(description="Rollouts by what the job decided about them.")


class JobListed(JobOut):
    reward: float | None = Field(description="Mean of the last step's rollouts. null: no step has one.")


class JobPage(Page):
    items: list[JobListed]


class MetricOut(Wire):
    step: int
    name: str
    value: float | None = Field(description="null: it is not a finite number.")
    at: datetime


class MetricList(Wire):
    items: list[MetricOut]
    next: int | None = Field(description="`after` of the next request. null: there was nothing new.")


class EventOut(Wire):
    """A decision, on record for good."""

    id: UUID
    job_id: UUID | None
    policy_id: UUID | None
    kind: str
    detail: dict[str, Any]
    at: datetime


class EventList(Wire):
    items: list[EventOut]
    next: UUID | None = Field(description="`after` of the next request. null: there was nothing new.")


def job_out(job: JobRow) -> JobOut:
    return JobOut(**_fields(job))


def job_listed(job: JobRow, reward: float | None) -> JobListed:
    return JobListed(**_fields(job), reward=None if reward is None else _finite(reward))


def job_detail(seen: SeenJob) -> JobDetail:
    return JobDetail(**_fields(seen.job), ledger=dict(seen.ledger))


def metric_list(found: list[Metric]) -> MetricList:
    items = [MetricOut(step=m.step, name=m.name, value=_finite(m.value), at=m.at) for m in found]
    return MetricList(items=items, next=found[-1].step if found else None)


def event_list(found: list[Event]) -> EventList:
    items = [EventOut(id=e.id, job_id=e.job, policy_id=e.policy, kind=e.kind, detail=e.detail, at=e.at) for e in found]
    return EventList(items=items, next=found[-1].id if found else None)


def _fields(job: JobRow) -> Mapping[str, Any]:
    own = {"produced_id": "produced"}
    names = set(JobOut.model_fields) - {"waits_for"}
    waits = _waits_for() if job.state == "queued" and job.kind != learning.KIND else ""
    told = {name: getattr(job, own.get(name, name)) for name in names} | {"waits_for": waits}
    return told | {"config": _config(job)}


def _config(job: JobRow) -> dict[str, Any]:
    """What only an engine knows may be long, and is nobody else's business."""
    return job.config if job.kind != learning.KIND else {name: _bare(name, told) for name, told in job.config.items()}


def _bare(name: str, told: Any) -> Any:
    if name == "engine":
        return told | {"options": {}}
    if name == "gate" and told:
        return {inner: _bare(inner, value) for inner, value in told.items()}
    return told


def _waits_for() -> str:
    if find_spec("torch") is None:
        return "torch is not installed here: pip install 'offing[train]', or run `offing trainer` where it is"
    return ""


def _finite(value: float) -> float | None:
    return value if value == value and abs(value) != float("inf") else None


EXAMPLE: dict[str, Any] = {
    "id": "01980000-0000-7000-8000-00000000001a",
    "kind": "train",
    "name": "planner",
    "config": {"algorithm": "flow-grpo", "policy": "planner@1"},
    "config_sha256": "9f2c",
    "seed": 0,
    "state": "running",
    "wish": None,
    "waits_for": "",
    "phase": "step 12",
    "step": 12,
    "groups": 384,
    "rollouts": 2950,
    "produced_id": None,
    "stop_reason": "",
    "error": "",
    "created_at": "2026-11-21T09:00:00Z",
    "started_at": "2026-11-21T09:00:02Z",
    "ended_at": None,
    "ledger": {"kept": 2950, "zero_advantage": 122},
}
"""Of JobDetail, for the OpenAPI document."""

METRICS: dict[str, Any] = {
    "items": [{"step": 12, "name": "reward", "value": 0.61, "at": "2026-11-21T09:04:10Z"}],
    "next": 12,
}
"""Of MetricList."""

EVENTS: dict[str, Any] = {
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
"""Of EventList."""
