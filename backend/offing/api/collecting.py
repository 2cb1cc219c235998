"""The shapes of collecting rollouts on the wire, and how they are made from what services return.

Reference answers come in with a task and never go out.
"""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, StringConstraints, model_validator

from offing.api.schemas import BudgetIn, Page, Wire
from offing.core.model import EngineChoice
from offing.core.run import RunStatus, StopReason
from offing.core.trajectory import Outcome
from offing.services.rollouts import SeenBatch, SeenGroup, SeenRollout
from offing.services.tasks import TaskSpec
from offing.storage.groups import GroupRow, Progress
from offing.storage.policy_versions import VersionRow
from offing.storage.rewards import ScoreRow
from offing.storage.rollouts import RolloutRow
from offing.storage.tasks import TaskRow

PolicyState = Literal["candidate", "canary", "active", "retired", "bad"]

GroupState = Literal["open", "complete", "short"]

Dataset = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]

Tag = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class TasksIn(Wire):
    """Tasks to store. A task that is stored already, by its content, keeps its id."""

    dataset: Dataset
    tasks: list[TaskSpec] = Field(min_length=1, max_length=10_000)


class TasksOut(Wire):
    dataset: str
    ids: list[UUID] = Field(description="In the order sent, each once.")
    new: int


class TaskOut(Wire):
    """A task, without what is known to be right about it."""

    id: UUID
    dataset: str
    split: str
    name: str
    question: str
    scope: dict[str, Any]
    difficulty: float | None
    tags: list[str]
    created_at: datetime


class TaskPage(Page):
    items: list[TaskOut]


class WorldIn(Wire):
    """Tasks of a made-up world."""

    spec: str = Field(max_length=200, examples=["train-12@500"])
    count: int = Field(ge=1, le=10_000)
    hops: tuple[int, int] = Field(default=(1, 4), description="Fewest and most.")
    kinds: list[str] | None = Field(default=None, max_length=20, description="null: all.")
    seed: int = Field(default=0, ge=0, le=2**31 - 1)


class TaskChoice(Wire):
    """Which tasks: exactly one of these."""

    ids: list[UUID] | None = Field(default=None, min_length=1, max_length=20_000)
    dataset: Dataset | None = Field(default=None, description="Its first `count` tasks.")
    items: list[TaskSpec] | None = Field(
        default=None, min_length=1, max_length=10_000, description="Stored under the batch's name, or `inline`."
    )
    world: WorldIn | None = None
    count: int = Field(default=20_000, ge=1, le=20_000, description="With `dataset`: how many at most.")

    @model_validator(mode="after")
    def _exactly_one(self) -> "TaskChoice":
        if sum(given is not None for given in (self.ids, self.dataset, self.items, self.world)) != 1:
            raise ValueError("give exactly one of ids, dataset, items and world")
        return self


class ScorerIn(Wire):
    name: str = Field(max_length=100, examples=["exact_match"])
    weight: float = Field(default=1, ge=-1000, le=1000, description="0: recorded, and no part of the reward.")
    options: dict[str, Any] = Field(default={})


class BatchIn(Wire):
    """Rollouts to collect: a group of `group_size` runs for each task."""

    graph: str = Field(max_length=100, examples=["agentflow"])
    tasks: TaskChoice
    group_size: int = Field(ge=1, le=256)
    policies: dict[str, str] = Field(default={}, description="NAME@VERSION by role, pinned for every group.")
    engines: dict[str, EngineChoice] = Field(default={}, description="By role, for those without a policy.")
    scorers: list[ScorerIn] | None = Field(
        default=None, max_length=20, description="null: exact_match, if every task has a reference."
    )
    budget: BudgetIn = BudgetIn()
    durability: Literal["exit", "sync"] | None = Field(
        default=None, description="null: exit where the turns fit one slice, else sync."
    )
    attempts: int = Field(default=3, ge=1, le=10, description="Runs of a member at most, after infrastructure errors.")
    seed: int = Field(default=0, ge=0, le=2**53)
    tags: list[Tag] = Field(default=[], max_length=50)
    name: str = Field(default="", max_length=200)


class ProgressOut(Wire):
    """Counts; a retry is a rollout of its own."""

    groups: int = Field(description="Asked for.")
    made: int = Field(description="Groups that exist.")
    open: int
    complete: int
    short: int
    rollouts: int
    waiting: int
    running: int
    unsettled: int = Field(description="Ended, and not yet scored by all scorers.")
    settled: int
    failed: int = Field(description="Settled as infrastructure errors.")
    mean_reward: float | None


class BatchOut(Wire):
    id: UUID
    name: str
    graph: str
    group_size: int
    seed: int
    tags: list[str]
    scorers: list[ScorerIn]
    progress: ProgressOut
    created_at: datetime
    cancelled_at: datetime | None


class BatchPage(Page):
    items: list[BatchOut]


class PinnedScorer(ScorerIn):
    version: str


class GroupOut(Wire):
    """The rollouts of one task under one version of graph and policies."""

    id: UUID
    batch_id: UUID
    task_id: UUID
    question: str
    graph: str
    graph_version: str
    engines: dict[str, EngineChoice]
    policies: dict[str, UUID] = Field(description="Policy version by role.")
    scorers: list[PinnedScorer]
    size: int
    seed: int
    attempts: int
    tags: list[str]
    state: GroupState = Field(description="short: some members left it.")
    created_at: datetime
    completed_at: datetime | None


class GroupPage(Page):
    items: list[GroupOut]


class RolloutOut(Wire):
    """A run that was collected for training."""

    run_id: UUID
    group_id: UUID
    batch_id: UUID
    task_id: UUID
    member: int
    attempt: int
    graph: str
    question: str
    status: RunStatus
    stop_reason: StopReason | None
    seed: int
    turns: int
    tokens: int
    outcome: Outcome | None = Field(description="null: not settled.")
    reward: float | None
    created_at: datetime
    ended_at: datetime | None
    settled_at: datetime | None


class RolloutPage(Page):
    items: list[RolloutOut]


class ScoreOut(Wire):
    """One try of one scorer."""

    run_id: UUID
    scorer: str
    scorer_version: str
    version: int = Field(description="From 1; a try after a failure is the next.")
    value: float | None = Field(description="0 to 1. null: it failed.")
    failure: str
    detail: dict[str, Any]
    created_at: datetime


class GroupDetail(GroupOut):
    rollouts: list[RolloutOut]
    scores: list[ScoreOut]


class RolloutDetail(RolloutOut):
    scores: list[ScoreOut]


class PolicyOut(Wire):
    """A policy version: immutable but for its state."""

    id: UUID
    name: str
    version: int
    parent_id: UUID | None
    kind: Literal["full", "lora", "prompts"]
    base_model: str
    uri: str
    sha256: str
    tokenizer_sha256: str
    template_sha256: str
    state: PolicyState
    lineage: dict[str, Any]
    evaluation: dict[str, Any]
    created_at: datetime
    canary_share: float | None = Field(description="Share of new runs that a canary gets. null: it is none.")


class PolicyPage(Page):
    items: list[PolicyOut]


class PolicyStateIn(Wire):
    state: PolicyState


def task_out(task: TaskRow) -> TaskOut:
    return TaskOut(**{name: getattr(task, name) for name in TaskOut.model_fields})


def batch_out(seen: SeenBatch) -> BatchOut:
    batch, request = seen.batch, seen.batch.request
    return BatchOut(
        id=batch.id,
        name=batch.name,
        graph=request["graph"],
        group_size=request["group_size"],
        seed=request["seed"],
        tags=request["tags"],
        scorers=[ScorerIn(name=s["name"], weight=s["weight"], options=s["options"]) for s in request["scorers"]],
        progress=_progress(batch.groups, seen.progress),
        created_at=batch.created_at,
        cancelled_at=batch.cancelled_at,
    )


def _progress(groups: int, progress: Progress) -> ProgressOut:
    known = {name: getattr(progress, name) for name in ProgressOut.model_fields if name != "groups"}
    return ProgressOut(groups=groups, **known)


def group_out(group: GroupRow) -> GroupOut:
    return GroupOut(**_group(group))


def group_detail(seen: SeenGroup) -> GroupDetail:
    rollouts = [rollout_out(rollout) for rollout in seen.rollouts]
    return GroupDetail(**_group(seen.group), rollouts=rollouts, scores=[score_out(s) for s in seen.scores])


def _group(group: GroupRow) -> dict[str, Any]:
    same = ("id", "question", "graph", "graph_version", "policies", "scorers", "size", "seed", "attempts", "tags",
            "state", "created_at", "completed_at")  # fmt: skip
    # What only an engine knows may be long, and is nobody else's business.
    engines = {role: EngineChoice.model_validate({**choice, "options": {}}) for role, choice in group.engines.items()}
    return {name: getattr(group, name) for name in same} | {
        "batch_id": group.batch,
        "task_id": group.task,
        "engines": engines,
    }


def rollout_out(rollout: RolloutRow) -> RolloutOut:
    return RolloutOut(**_rollout(rollout))


def rollout_detail(seen: SeenRollout) -> RolloutDetail:
    return RolloutDetail(**_rollout(seen.rollout), scores=[score_out(score) for score in seen.scores])


def _rollout(rollout: RolloutRow) -> dict[str, Any]:
    linked = {"run_id": "run", "group_id": "group", "batch_id": "batch", "task_id": "task"}
    return {name: getattr(rollout, linked.get(name, name)) for name in RolloutOut.model_fields}


def score_out(score: ScoreRow) -> ScoreOut:
    linked = {"run_id": "run"}
    return ScoreOut(**{name: getattr(score, linked.get(name, name)) for name in ScoreOut.model_fields})


def policy_out(version: VersionRow) -> PolicyOut:
    linked = {"parent_id": "parent"}
    told: dict[str, Any] = {name: getattr(version, linked.get(name, name)) for name in PolicyOut.model_fields}
    # Thousands of hashes that only the next job needs.
    lineage = {name: value for name, value in version.lineage.items() if name != "seen"}
    told["lineage"] = lineage
    return PolicyOut(**told)
