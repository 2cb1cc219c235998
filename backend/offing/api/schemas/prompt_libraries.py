"""API schemas of prompt libraries and distillation, and their serializers."""

from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from offing.api.schemas import ApiModel
from offing.core.model import EngineConfig
from offing.core.prompt_library import Case, Experience
from offing.services.prompt_distillation import (
    MAX_GROUPS,
    MAX_ROLLOUTS_PER_TASK,
    MAX_TASKS,
    DistillationPreview,
    ExperienceChange,
    GateConfig,
    PromptLibraryContents,
)


class GateConfigIn(ApiModel):
    """How the candidate is measured against the active version."""

    dataset: str = Field(min_length=1, max_length=200, description="Of stored tasks, others than those learned from.")
    engine: EngineConfig | None = Field(
        default=None, description="Who reads the library and answers every role. null: the installation's default."
    )
    graph: str = Field(default="agentflow", max_length=100)
    role: str = Field(default="planner", max_length=100, description="Which role is shown the library.")
    max_tasks: int = Field(default=50, ge=1, le=MAX_TASKS, description="Tasks at most.")
    rollouts_per_task: int = Field(default=1, ge=1, le=MAX_ROLLOUTS_PER_TASK, description="Runs of each task.")
    max_turns: int = Field(default=12, ge=0, le=2048)
    max_run_cost_usd: float | None = Field(
        default=None, ge=0, le=100_000, description="Money of one run. null: the daily cap alone."
    )


class DistillIn(ApiModel):
    """What to distill from, and which engine compares runs."""

    engine: EngineConfig | None = Field(
        default=None, description="Who compares. null: the installation's default; extractive takes over corrections."
    )
    graph: str | None = Field(default=None, max_length=100, description="Only runs of this graph. null: of any.")
    tag: str | None = Field(default=None, max_length=100, description="Only rollouts of batches with it. null: any.")
    max_groups: int = Field(default=50, ge=1, le=MAX_GROUPS, description="Comparisons at most.")
    include_cases: bool = Field(default=True, description="Remember runs as cases, too.")
    max_cost_usd: float | None = Field(
        default=None, ge=0, le=100_000, description="Money of all comparisons. null: only the tenant's daily cap."
    )
    gate: GateConfigIn | None = Field(default=None, description="null: the candidate is registered and not measured.")


class DistillationPreviewOut(ApiModel):
    """What a distillation job that is created now would use."""

    name: str
    start_version: str = Field(description="The version that it learns on from. Empty: the name is new.")
    job_id: UUID | None = Field(description="The job that learns for this library. null: there is none.")
    runs: int = Field(description="Rated runs and scored rollouts together.")
    rated_runs: int = Field(description="Of `runs`, those that people asked for, and rated or corrected.")
    new_runs: int = Field(description="Of `runs`, those that `start` has not learned from, as they are judged now.")
    new_rated_runs: int = Field(description="Of `new_runs`, those that people asked for, and rated or corrected.")
    new_groups: int = Field(description="Those, grouped by what can be compared.")
    comparisons: int = Field(description="Groups of them that say something: each is one call of the engine.")
    withheld_runs: int = Field(description="People's rated runs that are left out while `training_opt_in` is off.")
    waiting_candidate: str = Field(
        description="A candidate that was learned from `start` and waits. Empty: there is none."
    )


class ExperienceOut(ApiModel):
    id: str
    text: str = Field(description="Untrusted: a model wrote it.")
    run_ids: list[UUID] = Field(description="The latest runs that it comes from. Empty: a person wrote it.")
    groups: int = Field(description="Comparisons that made or changed it.")


class ExperienceChangeOut(ApiModel):
    """How an experience differs from the previous version."""

    kind: Literal["added", "changed", "removed"]
    id: str
    before: str = Field(description="Its text there. Empty: it is new.")
    after: str = Field(description="Its text here. Empty: it is gone.")
    run_ids: list[UUID]


class CaseOut(ApiModel):
    question: str
    plan: list[str]
    outcome: str
    reward: float
    run_id: UUID | None
    is_new: bool = Field(description="Not in the version before.")


class PromptLibraryOut(ApiModel):
    """The text of a version of a prompt library, and how it differs from the version it was derived from."""

    policy: str = Field(description="NAME@VERSION.")
    previous_version: str = Field(description="NAME@VERSION. Empty: it is a name's first.")
    changes: list[ExperienceChangeOut]
    experiences: list[ExperienceOut]
    cases: list[CaseOut] = Field(description="The newest first.")
    new_cases: int
    removed_cases: int = Field(description="Cases of the version before that are not here any more.")


def build_gate_config(body: GateConfigIn, default: EngineConfig) -> GateConfig:
    """Return the gate configuration of the service.

    `default` is the engine that reads the library if the request names none.
    """
    w = body
    return GateConfig(
        w.dataset,
        w.engine or default,
        w.graph,
        w.role,
        count=w.max_tasks,
        members=w.rollouts_per_task,
        turns=w.max_turns,
        usd=w.max_run_cost_usd,
    )


def serialize_distillation_preview(name: str, preview: DistillationPreview) -> DistillationPreviewOut:
    return DistillationPreviewOut(
        name=name,
        start_version=preview.start.label if preview.start else "",
        job_id=preview.job.id if preview.job else None,
        runs=preview.run_count,
        rated_runs=preview.rated_count,
        new_runs=sum(len(group.runs) for group in preview.new_groups),
        new_rated_runs=sum(len(group.runs) for group in preview.new_groups if group.is_interactive),
        new_groups=len(preview.new_groups),
        comparisons=sum(group.is_informative for group in preview.new_groups),
        withheld_runs=preview.withheld_count,
        waiting_candidate=preview.waiting_candidate.label if preview.waiting_candidate else "",
    )


def serialize_prompt_library(contents: PromptLibraryContents) -> PromptLibraryOut:
    library = contents.stored.library
    new = set(contents.new_cases)
    return PromptLibraryOut(
        policy=contents.stored.version.label,
        previous_version=contents.previous_version.label if contents.previous_version else "",
        changes=[_serialize_change(one) for one in contents.changes],
        experiences=[_serialize_experience(one) for one in library.experiences],
        cases=[_serialize_case(one, one in new) for one in reversed(library.cases)],
        new_cases=len(new),
        removed_cases=contents.removed_case_count,
    )


def _serialize_experience(experience: Experience) -> ExperienceOut:
    return ExperienceOut(
        id=experience.id, text=experience.text, run_ids=_parse_ids(experience.run_ids), groups=experience.groups
    )


def _serialize_change(change: ExperienceChange) -> ExperienceChangeOut:
    there = change.after or change.before
    assert there is not None
    before, after = (side.text if side else "" for side in (change.before, change.after))
    return ExperienceChangeOut.model_validate(
        {"kind": change.kind, "id": there.id, "before": before, "after": after, "run_ids": _parse_ids(there.run_ids)}
    )


def _serialize_case(case: Case, new: bool) -> CaseOut:
    run = next(iter(_parse_ids((case.run_id,))), None)
    return CaseOut(
        question=case.question, plan=list(case.plan), outcome=case.outcome, reward=case.reward, run_id=run, is_new=new
    )


def _parse_ids(texts: tuple[str, ...]) -> list[UUID]:
    """Return the texts that are UUIDs. A library that a person edited by hand may contain any text there."""
    ids: list[UUID] = []
    for text in texts:
        try:
            ids.append(UUID(text))
        except ValueError:
            continue
    return ids


_EXAMPLE_RUN_ID = "01980000-0000-7000-8000-000000000001"

DISTILLATION_PREVIEW_EXAMPLE: dict[str, Any] = {
    "name": "lessons",
    "start_version": "lessons@1",
    "job_id": None,
    "runs": 48,
    "rated_runs": 9,
    "new_runs": 12,
    "new_rated_runs": 4,
    "new_groups": 5,
    "comparisons": 3,
    "withheld_runs": 0,
    "waiting_candidate": "",
}
"""Example of DistillationPreviewOut for the OpenAPI document."""

PROMPT_LIBRARY_EXAMPLE: dict[str, Any] = {
    "policy": "lessons@2",
    "previous_version": "lessons@1",
    "changes": [
        {
            "kind": "added",
            "id": "x1",
            "before": "",
            "after": "Search the library before computing.",
            "run_ids": [_EXAMPLE_RUN_ID],
        }
    ],
    "experiences": [
        {"id": "x1", "text": "Search the library before computing.", "run_ids": [_EXAMPLE_RUN_ID], "groups": 1}
    ],
    "cases": [
        {
            "question": "Who built the third tower?",
            "plan": ["search: third tower"],
            "outcome": "John Smeaton",
            "reward": 1.0,
            "run_id": _EXAMPLE_RUN_ID,
            "is_new": True,
        }
    ],
    "new_cases": 1,
    "removed_cases": 0,
}
"""Example of PromptLibraryOut."""
