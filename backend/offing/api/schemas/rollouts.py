"""API schemas of rollout collection, and their serializers.

Reference answers come in with a task and are never returned.
"""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field, StringConstraints, model_validator

from offing.api.schemas.base import ApiModel, Page
from offing.api.schemas.run_requests import BudgetIn
from offing.core.judge_budget import JudgeBudget, JudgeUsage
from offing.core.model import EngineConfig, hide_options
from offing.core.run import RunStatus, StopReason
from offing.core.trajectory import Outcome
from offing.services.rollouts import BatchStatus, GroupWithScores, RolloutWithScores
from offing.services.tasks import TaskSpec
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.rewards import ScoreRow
from offing.storage.rollout_batches import BatchProgress, GroupRow
from offing.storage.rollouts import RolloutRow
from offing.storage.tasks import TaskRow

PolicyState = Literal["candidate", "canary", "active", "retired", "blocked"]

GroupState = Literal["open", "complete", "incomplete"]

Dataset = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]

Tag = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class TasksIn(ApiModel):
    """Tasks to store. A task whose content is already stored keeps its id."""

    dataset: Dataset
    tasks: list[TaskSpec] = Field(min_length=1, max_length=10_000)


class TasksOut(ApiModel):
    dataset: str
    task_ids: list[UUID] = Field(description="In the order sent, without duplicates.")
    new_count: int


class TaskOut(ApiModel):
    """A task without its reference answer."""

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


class EnvironmentTasksIn(ApiModel):
    """Generated tasks of an environment."""

    spec: str = Field(
        max_length=200,
        description="`SPEC` of a world, or `NAME:SPEC` of another environment.",
        examples=["train-12@500"],
    )
    task_count: int = Field(ge=1, le=10_000)
    hops: tuple[int, int] = Field(default=(1, 4), description="Minimum and maximum.")
    kinds: list[str] | None = Field(default=None, max_length=20, description="null: all kinds.")
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    compositions: str = Field(
        default="",
        max_length=50,
        description="Part of the tasks by what they combine: `trained` or `held-out` for worlds. Empty means all.",
    )


class TaskSelectionIn(ApiModel):
    """Which tasks to run. Set exactly one of these fields."""

    task_ids: list[UUID] | None = Field(default=None, min_length=1, max_length=20_000)
    dataset: Dataset | None = Field(default=None, description="The first `max_tasks` tasks of this dataset.")
    items: list[TaskSpec] | None = Field(
        default=None,
        min_length=1,
        max_length=10_000,
        description="Tasks to store under the name of the batch, or under `inline`.",
    )
    environment: EnvironmentTasksIn | None = None
    max_tasks: int = Field(default=20_000, ge=1, le=20_000, description="With `dataset`: how many at most.")

    @model_validator(mode="after")
    def _exactly_one(self) -> "TaskSelectionIn":
        if sum(selection is not None for selection in (self.task_ids, self.dataset, self.items, self.environment)) != 1:
            raise ValueError("set exactly one of `task_ids`, `dataset`, `items` and `environment`")
        return self


class ScorerIn(ApiModel):
    name: str = Field(max_length=100, examples=["exact_match"])
    weight: float = Field(default=1, ge=-1000, le=1000, description="0: recorded, but not part of the reward.")
    options: dict[str, Any] = Field(default={})


class JudgeBudgetIn(ApiModel):
    """What the judges among the scorers may use. A batch that has spent it stops, and nothing is counted as 0."""

    max_calls: int | None = Field(default=None, ge=0, description="Attempts to call a judge. null: no limit.")
    max_cost_usd: Decimal | None = Field(
        default=None, ge=0, le=100_000, decimal_places=6, description="null: no limit."
    )


class JudgeUsageOut(ApiModel):
    max_calls: int | None = Field(description="null: no limit.")
    max_cost_usd: Decimal | None = Field(description="null: no limit.")
    calls: int
    cost_usd: Decimal = Field(description="With the most that the calls which run now may cost.")


class RolloutBatchIn(ApiModel):
    """Rollouts to collect: a group of `group_size` runs for each task."""

    graph: str = Field(max_length=100, examples=["agentflow"])
    tasks: TaskSelectionIn
    group_size: int = Field(ge=1, le=256)
    policies: dict[str, str] = Field(default={}, description="NAME@VERSION by role, pinned for every group.")
    engines: dict[str, EngineConfig] = Field(
        default={}, description="Engine config by role, for roles without a policy."
    )
    scorers: list[ScorerIn] | None = Field(
        default=None, max_length=20, description="null: exact_match, if every task has a reference answer."
    )
    judge_budget: JudgeBudgetIn = JudgeBudgetIn()
    budget: BudgetIn = BudgetIn()
    durability: Literal["exit", "sync"] | None = Field(
        default=None, description="null: exit if the turns fit into one slice, otherwise sync."
    )
    max_attempts: int = Field(
        default=3,
        ge=1,
        le=10,
        description="Maximum number of runs per member, including retries after infrastructure errors.",
    )
    seed: int = Field(default=0, ge=0, le=2**53)
    tags: list[Tag] = Field(default=[], max_length=50)
    name: str = Field(default="", max_length=200)


class BatchProgressOut(ApiModel):
    """Counts of groups and rollouts. A retry counts as a separate rollout."""

    groups: int = Field(description="Requested groups.")
    created_groups: int = Field(description="Groups that have been created.")
    open: int
    complete: int
    incomplete: int
    rollouts: int
    waiting: int
    running: int
    unfinalized: int = Field(description="Ended, but not scored by all scorers yet.")
    finalized: int
    failed: int = Field(description="Finalized as infrastructure errors.")
    mean_reward: float | None


class RolloutBatchOut(ApiModel):
    id: UUID
    name: str
    graph: str
    group_size: int
    seed: int
    tags: list[str]
    scorers: list[ScorerIn]
    progress: BatchProgressOut
    pins: dict[str, Any] = Field(
        description="What the names in the scopes of the tasks stand for: `mcp`, hashes of the approved tool lists by "
        "server; `pages`, ids of the recorded texts by URL; `tool_policies` by name."
    )
    judges: JudgeUsageOut
    stop_reason: Literal["", "judge_budget"] = Field(
        description="Why the batch was stopped: `judge_budget` if its judges had spent their budget."
    )
    created_at: datetime
    cancelled_at: datetime | None


class RolloutBatchPage(Page):
    items: list[RolloutBatchOut]


class PinnedScorerOut(ScorerIn):
    version: str


class RolloutGroupOut(ApiModel):
    """The rollouts of one task under the same pinned versions of graph and policies."""

    id: UUID
    batch_id: UUID
    task_id: UUID
    question: str
    graph: str
    graph_version: str
    engines: dict[str, EngineConfig]
    policy_version_ids: dict[str, UUID] = Field(description="Policy version id by role.")
    scorers: list[PinnedScorerOut]
    size: int
    seed: int
    max_attempts: int
    tags: list[str]
    state: GroupState = Field(description="`short`: some members are missing.")
    created_at: datetime
    completed_at: datetime | None


class RolloutGroupPage(Page):
    items: list[RolloutGroupOut]


class RolloutOut(ApiModel):
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
    outcome: Outcome | None = Field(description="null: not finalized.")
    reward: float | None
    created_at: datetime
    ended_at: datetime | None
    finalized_at: datetime | None


class RolloutPage(Page):
    items: list[RolloutOut]


class ScoreOut(ApiModel):
    """One attempt of one scorer."""

    run_id: UUID
    scorer: str
    scorer_version: str
    version: int = Field(description="From 1; a try after a failure is the next.")
    value: float | None = Field(description="0 to 1. null: the scorer failed.")
    failure: str
    detail: dict[str, Any]
    created_at: datetime


class RolloutGroupDetail(RolloutGroupOut):
    rollouts: list[RolloutOut]
    scores: list[ScoreOut]


class RolloutDetail(RolloutOut):
    scores: list[ScoreOut]


class PolicyVersionOut(ApiModel):
    """A policy version. Only its state can change."""

    id: UUID
    name: str
    version: int
    parent_id: UUID | None
    kind: Literal["full", "lora", "prompt_library"]
    base_model: str
    uri: str
    sha256: str
    tokenizer_sha256: str
    template_sha256: str
    state: PolicyState
    lineage: dict[str, Any]
    evaluation: dict[str, Any]
    created_at: datetime
    canary_fraction: float | None = Field(
        description="Fraction of new runs that the canary answers. null: the version is not a canary."
    )


class PolicyVersionPage(Page):
    items: list[PolicyVersionOut]


class PolicyVersionStateIn(ApiModel):
    state: PolicyState


def serialize_task(task: TaskRow) -> TaskOut:
    return TaskOut(**{name: getattr(task, name) for name in TaskOut.model_fields})


def serialize_judge_usage(usage: JudgeUsage) -> JudgeUsageOut:
    return JudgeUsageOut(
        max_calls=usage.budget.max_calls,
        max_cost_usd=usage.budget.max_cost_usd,
        calls=usage.calls,
        cost_usd=usage.cost_usd,
    )


def serialize_batch(status: BatchStatus) -> RolloutBatchOut:
    batch, request = status.batch, status.batch.request
    return RolloutBatchOut(
        id=batch.id,
        name=batch.name,
        graph=request["graph"],
        group_size=request["group_size"],
        seed=request["seed"],
        tags=request["tags"],
        scorers=[ScorerIn(name=s["name"], weight=s["weight"], options=s["options"]) for s in request["scorers"]],
        progress=_serialize_progress(batch.group_count, status.progress),
        pins=request.get("pins", {}),
        judges=serialize_judge_usage(
            JudgeUsage(
                batch.judge_calls,
                batch.judge_cost_usd,
                JudgeBudget(batch.judge_max_calls, batch.judge_max_cost_usd),
            )
        ),
        stop_reason="judge_budget" if batch.stop_reason else "",
        created_at=batch.created_at,
        cancelled_at=batch.cancelled_at,
    )


def _serialize_progress(groups: int, progress: BatchProgress) -> BatchProgressOut:
    return BatchProgressOut(
        groups=groups,
        created_groups=progress.group_count,
        open=progress.open,
        complete=progress.complete,
        incomplete=progress.incomplete,
        rollouts=progress.rollouts,
        waiting=progress.waiting,
        running=progress.running,
        unfinalized=progress.unfinalized,
        finalized=progress.finalized,
        failed=progress.failed,
        mean_reward=progress.mean_reward,
    )


def serialize_group(group: GroupRow) -> RolloutGroupOut:
    return RolloutGroupOut(**_group_fields(group))


def serialize_group_detail(group: GroupWithScores) -> RolloutGroupDetail:
    rollouts = [serialize_rollout(rollout) for rollout in group.rollouts]
    return RolloutGroupDetail(
        **_group_fields(group.group), rollouts=rollouts, scores=[serialize_score(s) for s in group.scores]
    )


def _group_fields(group: GroupRow) -> dict[str, Any]:
    # Engine options may be long and may be private to the engine, so they are not returned.
    engines = {role: hide_options(EngineConfig.model_validate(choice)) for role, choice in group.engines.items()}
    return {
        "id": group.id,
        "batch_id": group.batch_id,
        "task_id": group.task_id,
        "question": group.question,
        "graph": group.graph,
        "graph_version": group.graph_version,
        "engines": engines,
        "policy_version_ids": group.policy_version_ids,
        "scorers": group.scorers,
        "size": group.size,
        "seed": group.seed,
        "max_attempts": group.max_attempts,
        "tags": group.tags,
        "state": group.state,
        "created_at": group.created_at,
        "completed_at": group.completed_at,
    }


def serialize_rollout(rollout: RolloutRow) -> RolloutOut:
    return RolloutOut(**_rollout_fields(rollout))


def serialize_rollout_detail(rollout: RolloutWithScores) -> RolloutDetail:
    return RolloutDetail(
        **_rollout_fields(rollout.rollout), scores=[serialize_score(score) for score in rollout.scores]
    )


def _rollout_fields(rollout: RolloutRow) -> dict[str, Any]:
    return {
        "run_id": rollout.run_id,
        "group_id": rollout.group_id,
        "batch_id": rollout.batch_id,
        "task_id": rollout.task_id,
        "member": rollout.member,
        "attempt": rollout.attempt,
        "graph": rollout.graph,
        "question": rollout.question,
        "status": rollout.status,
        "stop_reason": rollout.stop_reason,
        "seed": rollout.seed,
        "turns": rollout.turns,
        "tokens": rollout.tokens,
        "outcome": rollout.outcome,
        "reward": rollout.reward,
        "created_at": rollout.created_at,
        "ended_at": rollout.ended_at,
        "finalized_at": rollout.finalized_at,
    }


def serialize_score(score: ScoreRow) -> ScoreOut:
    return ScoreOut(
        run_id=score.run_id,
        scorer=score.scorer,
        scorer_version=score.scorer_version,
        version=score.version,
        value=score.value,
        failure=score.failure,
        detail=score.detail,
        created_at=score.created_at,
    )


def serialize_policy_version(version: PolicyVersionRow) -> PolicyVersionOut:
    # These are thousands of hashes that only the next job needs.
    lineage = {name: value for name, value in version.lineage.items() if name != "used_groups"}
    return PolicyVersionOut.model_validate(
        {
            "id": version.id,
            "name": version.name,
            "version": version.version,
            "parent_id": version.parent_id,
            "kind": version.kind,
            "base_model": version.base_model,
            "uri": version.uri,
            "sha256": version.sha256,
            "tokenizer_sha256": version.tokenizer_sha256,
            "template_sha256": version.template_sha256,
            "state": version.state,
            "lineage": lineage,
            "evaluation": version.evaluation,
            "created_at": version.created_at,
            "canary_fraction": version.canary_fraction,
        }
    )
